"""The dry run: the HPA's behaviour as measured on a real one, queues, findings, and the command line."""

import itertools
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml
from typer.testing import CliRunner

from capacity.__main__ import app
from capacity.simulate import cli, report
from capacity.simulate.hpa import HpaModel
from capacity.simulate.judge import findings, reversals, summary
from capacity.simulate.report import as_svg, sparkline
from capacity.simulate.run import Point, Replay, replay
from capacity.simulate.scenario import Scenario, Work, scenarios
from capacity.simulate.score import score
from capacity.simulate.trace import Trace, TraceError, pulse, read, surge
from rules.scaling import Behaviour
from settings.settings import Settings
from tests.unit.capacity.test_scaling_settings import scaled
from tests.unit.test_settings import dev

UP = Behaviour(window_seconds=30, pods=2, period_seconds=60)
DOWN = Behaviour(window_seconds=300, pods=1, period_seconds=120)


def course(hpa: HpaModel, metric: Any, seconds: int, replicas: int = 2) -> list[tuple[int, int]]:
    """(second, replicas) at each change; `metric(second, replicas)` is the average with target 10."""
    changes = []
    for second in range(0, seconds, 5):
        now = hpa.decide(second, replicas, [(metric(second, replicas), 10)])
        if now != replicas:
            changes.append((second, now))
        replicas = now
    return changes


def test_two_pods_a_minute_after_a_window_of_thirty_seconds():
    hpa = HpaModel(2, 10, UP, DOWN, sync=5)
    later = course(hpa, lambda second, n: 80 / n if second else 10, 200)
    assert [n for _, n in later] == [4, 6, 8]
    assert later[0][0] <= 35 and later[1][0] - later[0][0] == 60 == later[2][0] - later[1][0]


def test_a_short_spike_never_scales():
    hpa = HpaModel(2, 10, UP, DOWN, sync=5)
    assert course(hpa, lambda second, n: 40 if 100 <= second < 120 else 10, 400) == []


def test_a_floor_escapes_the_policy():
    hpa = HpaModel(2, 10, UP, DOWN, sync=5)
    hpa.low = 9
    assert hpa.decide(0, 2, [(10, 10)]) == 9


def test_pods_of_a_floor_that_falls_within_the_period_go_all_at_once():
    hpa = HpaModel(9, 10, UP, Behaviour(window_seconds=0, pods=1, period_seconds=120), sync=5)
    assert hpa.decide(0, 2, [(1, 10)]) == 9
    hpa.low = 2
    assert hpa.decide(15, 9, [(5, 10)]) == 5
    held = HpaModel(9, 10, UP, Behaviour(window_seconds=0, pods=1, period_seconds=120), sync=5)
    held.decide(0, 2, [(1, 10)])
    held.low = 2
    assert held.decide(140, 9, [(5, 10)]) == 8


def test_down_by_one_every_two_minutes_after_five():
    hpa = HpaModel(1, 10, UP, DOWN, sync=5)
    hpa.decide(0, 5, [(10, 10)])
    changes = course(hpa, lambda second, n: 1, 900, replicas=5)
    assert changes[0][0] >= 295
    assert all(b[0] - a[0] >= 120 and a[1] - b[1] == 1 for a, b in itertools.pairwise(changes))


def simulated(trace: Trace, *, warm: bool = False, predict: bool = True, **engines: Any):
    values = scaled(prediction={"enabled": predict}, **engines)
    values["nodePools"][0]["count"] = 200
    values["warmPool"] = {"enabled": warm}
    decode = scenarios(Settings.from_mapping(values), Work(prefill_seconds=0.5, decode_seconds=8))[1]
    return replay(decode, trace), decode


def test_warm_pods_shorten_the_wait():
    cold, scenario = simulated(pulse(0.4), maxReplicas=20)
    warm, _ = simulated(pulse(0.4), maxReplicas=20, warm=True)
    ttft = scenario.config.ttft
    assert summary(warm, ttft).warm_activations >= 2
    assert summary(warm, ttft).over_ttft_seconds < 0.8 * summary(cold, ttft).over_ttft_seconds


def test_prediction_adds_replicas_where_the_policy_alone_is_slow():
    reactive, _ = simulated(surge(0.2), predict=False, maxReplicas=40)
    predicted, _ = simulated(surge(0.2), predict=True, maxReplicas=40)
    assert max(p.queue for p in predicted.points) < 0.6 * max(p.queue for p in reactive.points)


def test_a_rule_that_never_fires_is_named():
    result, scenario = simulated(Trace((0, 600), (0.1, 0.1)))
    found = findings(result, scenario.hpa.high)
    assert {(f.rule, f.verdict) for f in found} == {
        ("gpu_memory_utilization", "never fires"),
        ("inference_running_requests", "never fires"),
    }


def test_a_rule_that_oscillates_is_named():
    rates = tuple(8.0 if minute // 4 % 2 else 0.5 for minute in range(60))
    nervous: dict[str, Any] = {"scaleUpWindowSeconds": 0, "scaleUpPods": 10, "scaleDownWindowSeconds": 0}
    nervous |= {"scaleDownPods": 10, "scaleDownPeriodSeconds": 15, "scaleUpPeriodSeconds": 15}
    result, scenario = simulated(Trace(tuple(60.0 * m for m in range(60)), rates), predict=False, **nervous)
    assert reversals(result.points) > 2
    assert any(f.verdict == "oscillates" for f in findings(result, scenario.hpa.high))
    calm, _ = simulated(Trace(tuple(60.0 * m for m in range(60)), rates), predict=False)
    assert reversals(calm.points) <= 2


def test_a_maximum_that_is_too_low_is_named():
    result, scenario = simulated(pulse(1), maxReplicas=3)
    assert any(f.verdict == "hits its maximum" for f in findings(result, scenario.hpa.high))


def test_a_plot_has_one_line_a_figure():
    result, _ = simulated(pulse(0.2))
    assert as_svg(result).count("<polyline") == 5
    assert sparkline([0, 1, 8], 3) == " ▁█"


@pytest.mark.parametrize("step", [1, 7.5, 10, 60])
def test_a_burst_shorter_than_a_step_is_not_lost(step: float):
    trace = Trace((0, 0.25, 0.75, 301.5, 302), (0, 1000, 2, 400, 0))
    sampled = trace.sampled(step)
    assert sum(sampled) * step == pytest.approx(1000 * 0.5 + 2 * 300.75 + 400 * 0.5)
    assert Trace((0, 60), (5, 5)).sampled(step)[0] == 5


def test_models_that_are_not_simulated_are_named(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.chdir(Path(__file__).parents[3])
    result = CliRunner().invoke(app, ["simulate", "--stack", "prod", "--generate", "pulse", "--scale", "0.1"])
    assert "not simulated, as Kthena's own scaler moves them: DeepSeek" in result.output.replace("\n", " ")


def test_a_peak_of_one_second_is_in_the_plot_and_the_series_of_a_long_replay():
    quiet = Point(second=0, rate=1, replicas=2, ready=2, active_warm=0, floor=2, queue=0, ttft=0.5, cost=1)
    points = [replace(quiet, second=float(second)) for second in range(3001)]
    points[1003] = replace(points[1003], queue=77.0, ttft=9.0)
    long = Replay("m", 1.0, tuple(points), {})
    series = report.as_json([(long, summary(long, 2), [])])["targets"][0]["series"]
    assert len(series) <= 500 and max(point["queue"] for point in series) == 77
    assert [point["second"] for point in series] == sorted({point["second"] for point in series})
    svg = report.as_svg(long)
    assert "queue, most 77<" in svg and "ttft, most 9<" in svg and "0 s<" in svg


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("seconds,requests_per_second\n0,1\n0,2\n", "sort the lines"),
        ("seconds,requests_per_second\n0,x\n", "needs two numbers"),
        ("seconds,requests_per_second\n0,-1\n", "not negative"),
        ("seconds,requests_per_second\n0,nan\n", "must be finite"),
        ("a,b\n1,2\n", "columns: seconds,requests_per_second"),
        ("seconds,requests_per_second\n", "no line below"),
    ],
)
def test_a_broken_trace_is_one_clear_line(tmp_path: Path, text: str, said: str):
    (tmp_path / "t.csv").write_text(text)
    with pytest.raises(TraceError, match=said):
        read(tmp_path / "t.csv")


def test_a_trace_that_is_not_there_is_said_in_words(tmp_path: Path):
    with pytest.raises(TraceError, match=r"t\.csv: cannot be read: No such file or directory; give a CSV file"):
        read(tmp_path / "t.csv")


@pytest.mark.parametrize(("line", "said"), [("1e15,5", "more than 60 days"), ("60,1e308", "a rate above 1,000,000")])
def test_a_trace_that_no_machine_could_replay_is_refused_at_its_line(tmp_path: Path, line: str, said: str):
    (tmp_path / "t.csv").write_text(f"seconds,requests_per_second\n0,5\n{line}\n")
    with pytest.raises(TraceError, match=f"t.csv:3.*{said}"):
        read(tmp_path / "t.csv")


def test_an_endless_scale_is_refused():
    result = CliRunner().invoke(app, ["score", "--generate", "pulse", "--scale", "inf"])
    assert (result.exit_code, "--scale" in result.output) == (2, True)


def test_a_load_too_short_to_forecast_has_no_score(tmp_path: Path):
    (tmp_path / "t.csv").write_text("seconds,requests_per_second\n0,5\n")
    result = CliRunner().invoke(app, ["score", "--trace", str(tmp_path / "t.csv")])
    assert (result.exit_code, "too short for lastValue, sameTimeOfDay" in result.output) == (2, True)


def test_a_path_that_cannot_be_written_is_one_line(tmp_path: Path):
    result = CliRunner().invoke(app, ["score", "--generate", "day", "--json", str(tmp_path)])
    said = " ".join(result.output.replace("│", " ").split())
    assert (result.exit_code, "can't be written" in said) == (2, True)


def test_the_score_prefers_the_method_that_knows_the_day():
    minutes = tuple(range(0, 6 * 1440))
    trace = Trace(
        tuple(60.0 * m for m in minutes), tuple(60.0 if m % 1440 in range(540, 600) else 10.0 for m in minutes)
    )
    naive, daily = score(trace, ahead=5, margin_percent=20)
    assert (naive.method, daily.method) == ("lastValue", "sameTimeOfDay")
    assert daily.lost < naive.lost


def test_the_command_writes_json_and_fails_on_findings_only_when_strict(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    config = {f"moonstack:{key}": value for key, value in scaled().items()}
    (tmp_path / "Pulumi.x.yaml").write_text(yaml.safe_dump({"config": config}))
    (tmp_path / "t.csv").write_text("seconds,requests_per_second\n0,1\n300,1\n")
    monkeypatch.chdir(tmp_path)
    arguments = ["simulate", "--stack", "x", "--trace", "t.csv", "--json", "o.json"]
    result = CliRunner().invoke(app, arguments)
    assert result.exit_code == 0, result.output
    assert "never fires" in result.output
    written = json.loads(Path("o.json").read_text())
    assert [t["target"] for t in written["targets"]] == ["dev-wide-prefill-ascend", "dev-wide-decode-ascend"]
    assert {"second", "replicas", "queue", "ttft", "cost"} <= written["targets"][0]["series"][0].keys()
    assert CliRunner().invoke(app, [*arguments, "--strict"]).exit_code == 1


def test_a_stack_without_scalers_shows_what_they_would_do(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    config = {f"moonstack:{key}": value for key, value in dev().items()}
    (tmp_path / "Pulumi.dev.yaml").write_text(yaml.safe_dump({"config": config}))
    monkeypatch.chdir(tmp_path)
    result = CliRunner().invoke(app, ["simulate", "--stack", "dev", "--generate", "pulse", "--scale", "0.2"])
    assert result.exit_code == 0, result.output
    assert "scalers are off" in result.output and "dev-wide-decode-ascend" in result.output


def test_a_stack_that_is_not_there_is_one_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.chdir(tmp_path)
    result = CliRunner().invoke(app, ["simulate", "--stack", "nowhere", "--generate", "pulse"])
    assert result.exit_code == 2
    assert "Traceback" not in result.output


@pytest.mark.parametrize("option", ["--scale", "--prefill-seconds", "--decode-seconds", "--margin"])
@pytest.mark.parametrize("value", ["inf", "nan", "-inf"])
def test_a_number_that_is_none_is_refused_by_its_options_name(option: str, value: str):
    command = ["score"] if option == "--margin" else ["simulate", "--stack", "dev"]
    result = CliRunner().invoke(app, [*command, "--generate", "pulse", option, value])
    assert (result.exit_code, option in result.output) == (2, True), result.output


def test_a_load_is_as_long_as_it_is_replayed_with_the_last_rates_step(tmp_path: Path):
    (tmp_path / "t.csv").write_text("seconds,requests_per_second\n0,1\n5000000,3\n")
    with pytest.raises(TraceError, match=r"t\.csv:3.*more than 60 days in all"):
        read(tmp_path / "t.csv")


def test_a_load_too_long_to_replay_is_said_at_once_and_a_long_one_before_it_begins(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    config = {f"moonstack:{key}": value for key, value in scaled().items()}
    (tmp_path / "Pulumi.x.yaml").write_text(yaml.safe_dump({"config": config}))
    monkeypatch.chdir(tmp_path)
    replayed: list[Trace] = []

    def walked(scenario: Scenario, trace: Trace):
        replayed.append(trace)
        return replay(scenario, Trace((0.0, 60.0), (1.0, 1.0)))

    monkeypatch.setattr(cli, "replay", walked)
    for days, code, said in ((20, 2, "a replay 15 at most: cut it"), (2, 0, "replaying 2.0 days in steps of 10 s")):
        Path("t.csv").write_text(f"seconds,requests_per_second\n0,1\n{days * 43200},3\n")
        result = CliRunner().invoke(app, ["simulate", "--stack", "x", "--trace", "t.csv"])
        assert (result.exit_code, said in result.output, bool(replayed)) == (code, True, code == 0), result.output


def test_a_trace_with_a_byte_order_mark_is_read(tmp_path: Path):
    (tmp_path / "t.csv").write_text("seconds,requests_per_second\n0,5\n60,7\n", encoding="utf-8-sig")
    assert read(tmp_path / "t.csv").rates == (5.0, 7.0)


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("seconds,requests_per_second,users\n0,1,2\n", 1),
        ("requests_per_second,seconds\n0,1\n", 1),
        ("seconds,requests_per_second\n\n0,1,2\n", 3),
        ("seconds,requests_per_second\n0\n", 2),
    ],
)
def test_other_columns_than_the_two_are_refused_at_their_line(tmp_path: Path, text: str, line: int):
    (tmp_path / "t.csv").write_text(text)
    with pytest.raises(TraceError, match=rf"t\.csv:{line}: .*columns: seconds,requests_per_second"):
        read(tmp_path / "t.csv")


@pytest.mark.parametrize("option", ["--json", "--svg"])
def test_no_folder_is_made_above_what_is_written(tmp_path: Path, option: str):
    target = tmp_path / "missing" / "folder" / "x.json"
    result = CliRunner().invoke(app, ["simulate", "--stack", "dev", "--generate", "pulse", option, str(target)])
    assert (result.exit_code, option in result.output, list(tmp_path.iterdir())) == (2, True, []), result.output


def test_a_path_is_no_stacks_name():
    result = CliRunner().invoke(app, ["lint", "--stack", "../../etc/passwd"])
    assert (result.exit_code, "is no stack's name" in result.output) == (2, True), result.output
