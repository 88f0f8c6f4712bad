"""Runner, report, errors, redaction and keys."""

import asyncio
import base64
import json
import logging
import secrets
from pathlib import Path
from typing import Any

import httpx
import pytest
from pydantic import SecretStr

from rules import labels
from smoke.channel.app import Channel
from smoke.channel.plan import ChannelPlan, KeyPlan
from smoke.channel.serve import serve
from smoke.errors import PermanentError, TemporaryError, from_transport
from smoke.keys import read_smoke_key, smoke_key
from smoke.probe import Probe, failed, passed, skipped
from smoke.redact import Redactor
from smoke.report import ProbeResult, Report, verdict_of
from smoke.runner import run_probes
from smoke.suite import run
from smoke.ways import Address, connection, open_way
from tests.unit.smoke.fakes import MODEL, dev_settings


def probe(check: Any, name: str = "x") -> Probe:
    return Probe(name=name, proves="something", check=check)


async def outcome(check: Any, deadline: float = 5) -> ProbeResult:
    results, _ = await run_probes([probe(check)], None, deadline)  # type: ignore[arg-type]
    return results[0]


@pytest.fixture
def no_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("smoke.runner.PAUSES", (0.0, 0.0))


async def test_a_temporary_error_is_tried_three_times(no_pauses: None):
    calls = []

    async def check(_: Any) -> Any:
        calls.append(1)
        raise TemporaryError("busy", "wait")

    result = await outcome(check)
    assert len(calls) == 3
    assert (result.verdict, result.cause) == ("fail", "busy, three times in a row")


async def test_a_temporary_error_that_passes_is_a_pass(no_pauses: None):
    calls = []

    async def check(_: Any) -> Any:
        calls.append(1)
        if len(calls) < 3:
            raise TemporaryError("busy", "wait")
        return passed(1, "call")

    assert (await outcome(check)).verdict == "pass"


async def test_a_permanent_error_is_not_tried_again(no_pauses: None):
    calls = []

    async def check(_: Any) -> Any:
        calls.append(1)
        raise PermanentError("wrong name", "correct it")

    assert (await outcome(check)).fix == "correct it"
    assert len(calls) == 1


async def test_what_does_not_fit_into_the_deadline_fails_and_names_the_setting():
    async def slow(_: Any) -> Any:
        await asyncio.sleep(10)

    async def quick(_: Any) -> Any:
        return passed()

    results, _ = await run_probes([probe(slow), probe(quick)], None, 0.05)  # type: ignore[arg-type]
    assert [r.verdict for r in results] == ["fail", "fail"]
    assert all("smoke.deadlineSeconds" in (r.fix or "") for r in results)


def results(*verdicts: str) -> tuple[ProbeResult, ...]:
    return tuple(ProbeResult.model_validate({"name": "p", "class": "safe", "verdict": v}) for v in verdicts)


@pytest.mark.parametrize(
    ("verdicts", "whole"),
    [(("pass", "skip"), "pass"), (("pass", "fail"), "fail"), ((), "fail"), (("skip",), "fail")],
)
def test_a_run_passes_only_when_something_passed_and_nothing_failed(verdicts: tuple[str, ...], whole: str):
    assert verdict_of(results(*verdicts)) == whole


async def test_the_report_has_schema_1(monkeypatch: pytest.MonkeyPatch):
    async def unreachable(settings: Any) -> Any:
        raise TemporaryError("no cluster", "start it")

    monkeypatch.setattr("smoke.suite._cluster", unreachable)
    report = await run(dev_settings(), "dev")
    document = json.loads(report.to_json())
    assert document["schema"] == 1
    assert document["verdict"] == "fail"
    assert set(document["probes"][0]) == {"name", "class", "verdict", "figure", "unit", "threshold", "cause", "fix"}
    assert Report.model_validate_json(report.to_json()) == report


def test_a_key_never_reaches_a_report_or_a_log(caplog: pytest.LogCaptureFixture):
    value, redactor = secrets.token_urlsafe(24), Redactor()
    redactor.learn(value)
    assert value not in redactor.text(f"GET /?k={value}")
    other = "sk-" + secrets.token_hex(24)
    assert other not in redactor.text(f"Authorization: Bearer {other}") and "Bearer [redacted]" in redactor.text(
        f"Bearer {other}"
    )
    record = logging.LogRecord("x", logging.INFO, "f", 1, "sent %s", (value,), None)
    assert redactor.filter(record)
    assert value not in record.getMessage()


def test_prose_about_bearer_is_left_alone():
    for text in ("carries its own 'Bearer '; store it bare", "a second &#39;Bearer &#39; is refused", "Bearer keys"):
        assert Redactor().text(text) == text


def test_an_exception_in_a_log_is_masked_too():
    value, redactor = secrets.token_urlsafe(24), Redactor()
    redactor.learn(value)
    try:
        raise ValueError(value)
    except ValueError as error:
        record = logging.LogRecord("x", logging.ERROR, "f", 1, "broke", None, (type(error), error, None))
    redactor.filter(record)
    assert value not in logging.Formatter().format(record)


def test_outcomes_of_probes_are_told_apart():
    assert failed("c", "f").verdict == "fail"
    assert skipped("c", "f").verdict == "skip"


def test_refused_and_slow_are_temporary_and_a_bad_certificate_is_permanent():
    assert isinstance(from_transport(httpx.ConnectError("refused"), "u"), TemporaryError)
    assert isinstance(from_transport(httpx.ReadTimeout("slow"), "u"), TemporaryError)
    broken = httpx.ConnectError("[SSL: CERTIFICATE_VERIFY_FAILED] unable to get local issuer")
    assert isinstance(from_transport(broken, "u"), PermanentError)


async def test_the_key_comes_from_the_environment_first(monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    value = "sk-" + secrets.token_hex(24)
    monkeypatch.setenv("MOONSTACK_SMOKE_KEY", value)
    assert await read_smoke_key(dev_settings(), None) == value


async def test_devs_key_comes_from_the_state_folder(monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    value = "sk-" + secrets.token_hex(24)
    monkeypatch.setenv("MOONSTACK_STATE", str(tmp_path))
    monkeypatch.delenv("MOONSTACK_SMOKE_KEY", raising=False)
    (tmp_path / "keys").mkdir()
    (tmp_path / "keys" / "dev-smoke").write_text(value + "\n")
    assert await read_smoke_key(dev_settings(), None) == value


async def test_the_key_comes_from_the_cluster_last(monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    value = "sk-" + secrets.token_hex(24)
    monkeypatch.setenv("MOONSTACK_STATE", str(tmp_path))
    monkeypatch.delenv("MOONSTACK_SMOKE_KEY", raising=False)

    class Secrets:
        namespace = "moonstack-dev"

        def path(self, resource: str) -> str:
            return resource

        async def items(self, path: str, selector: dict[str, str]) -> list[dict[str, Any]]:
            assert selector == {labels.KEY_ID: "dev-smoke", labels.KEY_STAGE: "current"}
            return [{"data": {"value": base64.b64encode(value.encode()).decode()}}]

    assert await read_smoke_key(dev_settings(), Secrets()) == value  # type: ignore[arg-type]


async def test_a_missing_key_names_where_it_was_looked_for(monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    monkeypatch.setenv("MOONSTACK_STATE", str(tmp_path))
    monkeypatch.delenv("MOONSTACK_SMOKE_KEY", raising=False)
    with pytest.raises(PermanentError, match="MOONSTACK_SMOKE_KEY, the file keys/dev-smoke of the state directory"):
        await read_smoke_key(dev_settings(), None)


def test_a_stack_without_a_smoke_key_says_so():
    settings = dev_settings()
    bare = settings.model_copy(update={"keys": settings.keys.model_copy(update={"keys": ()})})
    with pytest.raises(PermanentError, match="no key of purpose smoke"):
        smoke_key(bare)


async def test_a_stack_without_an_endpoint_says_which_key_to_set():
    settings = dev_settings()
    bare = settings.model_copy(update={"smoke": settings.smoke.model_copy(update={"endpoint": None})})
    with pytest.raises(PermanentError, match=r"smoke\.endpoint"):
        async with open_way(bare, None, "dev"):
            pass


async def test_the_local_ca_is_trusted_and_another_is_not(monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    monkeypatch.setenv("MOONSTACK_STATE", str(tmp_path))
    value = "sk-" + secrets.token_hex(24)
    channel = Channel(ChannelPlan(models=(MODEL,), keys=(KeyPlan(id="a", value=SecretStr(value)),)))
    async with serve(channel, tls=tmp_path / "cert") as url:
        async with connection(dev_settings(), Address(base_url=url)) as http:
            with pytest.raises(httpx.ConnectError, match="CERTIFICATE_VERIFY_FAILED"):
                await http.get("/v1/models")
        (tmp_path / "gateway").mkdir()
        (tmp_path / "gateway" / "ca.crt").write_bytes((tmp_path / "cert" / "tls.crt").read_bytes())
        by_name = Address(base_url=url, server_name="localhost")
        for address in (Address(base_url=url), by_name):
            async with connection(dev_settings(), address) as http:
                answer = await http.get("/v1/models", headers={"Authorization": f"Bearer {value}"})
                assert answer.status_code == 200
        async with connection(dev_settings(), Address(base_url=url, server_name="gateway.example")) as http:
            with pytest.raises(httpx.ConnectError, match="CERTIFICATE_VERIFY_FAILED"):
                await http.get("/v1/models")
