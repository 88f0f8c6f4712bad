"""A drill on a stack that was not deployed as its file says is one line, before anything is taken away."""

from collections.abc import Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import pytest

from rules import labels, names, timing
from settings.content import content_digest
from settings.kv_store import KvStoreSettings
from settings.settings import Settings
from smoke import suite
from smoke.drills.deployed import refuse_other_than_declared
from smoke.errors import PermanentError
from smoke.probe import LiveStack
from tests.unit.smoke.fakes import MODEL, FakeStack, dev_settings


def engines(settings: Settings, role: str) -> dict[str, Any]:
    grace = timing.grace_seconds(settings.models[0].longest_request_seconds)
    own = {labels.MODEL: MODEL, labels.ROLE: role}
    return {"spec": {"template": {"metadata": {"labels": own}, "spec": {"terminationGracePeriodSeconds": grace}}}}


@dataclass
class Deployed:
    """What the API server has."""

    settings: Settings
    content: str | None = None
    deployments: list[dict[str, Any]] = field(default_factory=list)
    serving: Any = None

    def __post_init__(self) -> None:
        master = {"metadata": {"labels": {"app.kubernetes.io/name": names.KV_MASTER}}, "spec": {}}
        self.deployments = [engines(self.settings, role) for role in ("prefill", "decode")]
        self.deployments.append({"spec": {"template": master}})

    def path(self, resource: str, name: str = "", group: str = "") -> str:
        return f"/{resource}/{name}"

    async def items(self, path: str, selector: Any = None) -> list[Any]:
        return self.deployments

    async def get(self, path: str) -> Any:
        if path.startswith("/modelservings/"):
            return self.serving
        if self.content is None:
            return None
        return {"data": {names.CONTENT_KEY: self.content}}


async def said(live: LiveStack, settings: Settings, deployed: Any) -> str:
    try:
        await refuse_other_than_declared(settings, "dev", live.gateway, deployed)
    except PermanentError as error:
        return str(error)
    return ""


@pytest.mark.parametrize("proven", [True, False])
async def test_a_stack_that_is_deployed_as_its_file_says_is_drilled(live: LiveStack, proven: bool):
    content = content_digest(live.settings) if proven else None
    assert await said(live, live.settings, Deployed(live.settings, content)) == ""


def model(**update: Any) -> Callable[[Settings], Settings]:
    return lambda settings: settings.model_copy(update={"models": (settings.models[0].model_copy(update=update),)})


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (model(name="other"), "the gateway does not list other; the gateway lists dev-wide"),
        (model(shape="aggregated"), "dev-wide has decode, prefill engines, not serve"),
        (model(longest_request_seconds=1800), "s of grace, longestRequestSeconds wants"),
        (model(backend="kthena"), f"there is no ModelServing {names.model_serving(MODEL)}"),
        (lambda one: one.model_copy(update={"kv_store": KvStoreSettings(enabled=False)}), "there is a Mooncake master"),
    ],
)
async def test_a_stack_file_that_was_changed_and_not_deployed_is_named(
    live: LiveStack, change: Callable[[Settings], Settings], words: str
):
    line = await said(live, change(live.settings), Deployed(live.settings))
    assert words in line
    assert "pulumi up -s dev first" in line


async def test_a_store_that_is_declared_and_not_there_is_named(live: LiveStack):
    deployed = Deployed(live.settings)
    del deployed.deployments[-1]
    assert "kvStore is on, and there is no Mooncake master" in await said(live, live.settings, deployed)


async def test_engine_settings_that_were_not_deployed_are_told_by_what_was_left_with_it(live: LiveStack):
    deployed = Deployed(live.settings, content_digest(live.settings))
    engine = live.settings.models[0].engine.model_copy(update={"dtype": "bfloat16"})
    assert "images, model revisions or engine settings are others" in await said(
        live, model(engine=engine)(live.settings), deployed
    )


async def test_the_drill_command_asks_before_it_takes_anything(
    live: LiveStack, stack: FakeStack, monkeypatch: pytest.MonkeyPatch
):
    from smoke.commands import drill

    @asynccontextmanager
    async def opened(*_: Any):
        yield live

    async def never(*_: Any) -> Any:
        raise AssertionError("something was taken away")

    monkeypatch.setattr("smoke.suite.live_stack", opened)
    monkeypatch.setattr("smoke.commands.drill.run_drills", never)
    monkeypatch.setattr(live.engines, "cluster", Deployed(dev_settings()))
    with pytest.raises(PermanentError, match="the gateway does not list other"):
        await drill._drill(model(name="other")(dev_settings()), "dev", [])


async def test_a_run_on_content_that_was_not_deployed_proves_nothing_and_leaves_no_report(
    live: LiveStack, monkeypatch: pytest.MonkeyPatch
):
    """Else an image that nobody deployed would be promoted by the proof of the one before it."""

    @asynccontextmanager
    async def opened(*_: Any):
        yield live

    async def never(*_: Any, **__: Any) -> Any:
        raise AssertionError("something was asked or kept")

    monkeypatch.setattr("smoke.suite.live_stack", opened)
    monkeypatch.setattr("smoke.suite.examine", never)
    monkeypatch.setattr(live.engines, "cluster", Deployed(live.settings, "0123456789abcdef"))
    report = await suite.run(live.settings, "dev")
    (only,) = report.probes
    assert (only.name, only.verdict) == (suite.ENTRANCE, "fail")
    assert "0123456789abcdef is deployed" in str(only.cause)
    assert "pulumi up -s dev first" in str(only.fix)
