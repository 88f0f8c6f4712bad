"""Prod isn't done while its state holds a key in clear text."""

import base64
import json
from typing import Any

import pulumi
import pytest

from policies.audit.gate import with_clean_state
from settings.settings import Settings
from tests.policies.builders import fake_key
from tests.policies.test_audit import FILES, backend, checkpoint, clean
from tests.unit.test_settings import dev

DEV = Settings.from_mapping(dev())
PROD: Any = DEV.model_copy(update={"environment": "prod"})


async def smoke(release: str) -> str:
    return f"smoke saw {release}"


def leaking(key: str) -> dict[str, bytes]:
    readable = {"value": base64.b64encode(key.encode()).decode()}
    return clean() | {FILES["Pulumi state"]: json.dumps(checkpoint(readable)).encode()}


async def test_a_leak_in_prods_state_stops_before_smoke_and_names_the_place(tmp_path, monkeypatch):
    key = fake_key()
    monkeypatch.setenv("PULUMI_BACKEND_URL", backend(tmp_path, leaking(key)))
    with pytest.raises(pulumi.RunError) as refused:
        await with_clean_state(smoke, PROD, "dev")("r1")
    assert FILES["Pulumi state"] in str(refused.value)
    assert "python -m policies audit" in str(refused.value)
    assert key not in str(refused.value)


async def test_a_clean_state_goes_on_to_smoke(tmp_path, monkeypatch):
    monkeypatch.setenv("PULUMI_BACKEND_URL", backend(tmp_path, clean()))
    assert await with_clean_state(smoke, PROD, "dev")("r1") == "smoke saw r1"


async def test_a_backend_that_cannot_be_read_is_a_warning(monkeypatch):
    warned = []
    monkeypatch.setenv("PULUMI_BACKEND_URL", "https://api.example.com")
    monkeypatch.setattr(pulumi.log, "warn", warned.append)
    assert await with_clean_state(smoke, PROD, "dev")("r1") == "smoke saw r1"
    assert len(warned) == 3
    assert "was not searched for keys" in warned[0]


async def test_other_environments_are_not_held_up(tmp_path, monkeypatch):
    monkeypatch.setenv("PULUMI_BACKEND_URL", backend(tmp_path, leaking(fake_key())))
    assert await with_clean_state(smoke, DEV, "dev")("r1") == "smoke saw r1"
