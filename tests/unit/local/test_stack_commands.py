"""On a machine that has nothing yet, each verb that asks Pulumi first makes what Pulumi needs."""

from contextlib import contextmanager

import pytest
from typer.testing import CliRunner

from local import dev, stack_commands, tools
from local.cli import app
from local.errors import LocalError
from local.tools.catalogue import ENGINE

VERBS = {
    "pulumi": ["pulumi", "--stack", "prod", "stack"],
    "preview": ["preview", "--stack", "prod"],
    "deploy": ["deploy", "--stack", "prod"],
    "env": ["env", "--stack", "prod"],
    "render": ["render", "--stack", "prod"],
    "rehearse": ["rehearse", "--stack", "prod"],
}


@pytest.mark.parametrize("verb", VERBS)
def test_the_cli_and_the_provider_are_made_first(verb, monkeypatch, tmp_path):
    asked = []

    def ensure(names, progress=None):
        asked.append(tuple(names))
        raise LocalError("stop here")

    monkeypatch.setenv("PULUMI_BACKEND_URL", f"file://{tmp_path}")
    monkeypatch.setattr(tools, "ensure", ensure)
    result = CliRunner().invoke(app, VERBS[verb])
    assert asked == [ENGINE]
    assert isinstance(result.exception, LocalError)


def test_then_the_policy_packs_environment(monkeypatch):
    done = []
    monkeypatch.setattr(tools, "ensure", lambda names, progress=None: done.append("tools"))
    monkeypatch.setattr(dev, "prepare_pack", lambda progress: done.append("pack"))
    dev.prepare_engine(dev.Progress())
    assert done == ["tools", "pack"]


def test_an_empty_backend_is_previewed_from_nothing(monkeypatch):
    asked = []

    @contextmanager
    def offline(stack, overrides):
        asked.append(stack)
        raise LocalError("stop here")
        yield

    monkeypatch.setenv("PULUMI_BACKEND_URL", "")
    monkeypatch.setattr(dev, "prepare_engine", lambda progress: None)
    monkeypatch.setattr(stack_commands, "offline", offline)
    result = CliRunner().invoke(app, ["preview", "--stack", "prod"])
    assert (asked, str(result.exception)) == (["prod"], "stop here")
