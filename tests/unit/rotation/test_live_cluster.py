"""What a rotation reads of the running stack: since when the old version of a key is out of use."""

import json
import secrets
from datetime import UTC, datetime, timedelta
from types import SimpleNamespace

import kr8s
import pytest

from rotation.cluster import LiveCluster
from rotation.run import RotationError
from rules import labels, names
from rules.envoy_keys import version_name
from rules.fingerprint import fingerprint
from rules.key_use import FILE, LAST_USE
from settings.key_values import Versions
from settings.settings import Settings
from tests.unit.test_settings import dev

BORN = datetime(2026, 6, 1, 12, tzinfo=UTC)
USED = BORN + timedelta(hours=3)


class Api:
    """Objects by kind and name; `ready` is what the key agent's pod says."""

    def __init__(self) -> None:
        self.ready = True
        self.objects: dict[tuple[str, str], dict] = {}

    def get(self, kind, name=None, label_selector=None):
        if kind == "secrets" and label_selector:
            metadata = [one["metadata"] for (of, _), one in self.objects.items() if of == kind]
            wanted = label_selector.items()
            return iter(
                [SimpleNamespace(raw={"metadata": m}) for m in metadata if wanted <= m.get("labels", {}).items()]
            )
        if label_selector:
            assert label_selector == {"app.kubernetes.io/name": names.KEY_AGENT}
            return iter([SimpleNamespace(ready=lambda: self.ready)])
        found = self.objects.get((kind, name or ""))
        return iter([SimpleNamespace(raw=found)] if found else [])


@pytest.fixture
def api(monkeypatch) -> Api:
    made = Api()
    monkeypatch.setattr(kr8s, "api", lambda **options: made)
    return made


@pytest.fixture
def versions(api) -> Versions:
    found: Versions = {"current": "sk-" + secrets.token_hex(24), "previous": "sk-" + secrets.token_hex(24)}
    secret = names.key_version("dev-client", fingerprint(found["current"]))
    api.objects["secrets", secret] = {"metadata": {"creationTimestamp": "2026-06-01T12:00:00Z"}}
    return found


def used(api: Api, value: str) -> None:
    text = json.dumps({LAST_USE: {version_name("dev-client", value): USED.isoformat()}})
    api.objects["configmaps", names.KEY_AGENT] = {"data": {FILE: text}}


def ask(versions: Versions, agent: bool = True) -> datetime | None:
    settings = Settings.from_mapping(dev())
    told = settings.model_copy(update={"keys": settings.keys.model_copy(update={"agent": agent})})
    key = next(key for key in told.keys.keys if key.id == "dev-client")
    return LiveCluster(told, ("pulumi",)).unseen_since(key, versions)


def test_an_old_version_that_was_never_used_counts_from_the_new_ones_birth(api, versions):
    assert ask(versions) == BORN
    used(api, versions["current"])
    assert ask(versions) == BORN, "the new one's use is none of the old one's"


def test_each_use_of_the_old_version_moves_the_moment(api, versions):
    used(api, versions["previous"])
    assert ask(versions) == USED


def test_while_the_agent_is_away_nobody_sees_and_the_rotation_says_so(api, versions):
    api.ready = False
    with pytest.raises(RotationError, match="the key agent is not ready"):
        ask(versions)


def test_without_an_agent_the_time_alone_counts(api, versions):
    api.ready = False
    used(api, versions["previous"])
    assert ask(versions, agent=False) == BORN


def test_the_versions_that_have_a_secret_of_their_own_are_told_by_their_annotation(api):
    for number, (key_id, fingerprint_of) in enumerate({"dev-client": "a" * 32, "other": "b" * 32}.items()):
        shown = {"labels": {labels.KEY_ID: key_id}, "annotations": {labels.KEY_FINGERPRINT: fingerprint_of}}
        api.objects["secrets", f"key-{number}"] = {"metadata": shown}
    api.objects["secrets", "bare"] = {"metadata": {"labels": {labels.KEY_ID: "dev-client"}}}
    settings = Settings.from_mapping(dev())
    key = next(key for key in settings.keys.keys if key.id == "dev-client")
    assert LiveCluster(settings, ("pulumi",)).kept(key) == {"a" * 32}
