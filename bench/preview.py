"""What a preview costs: an empty program, prod with the policy pack, generated stacks of up to 2,000 resources, and Pulumi's own floor."""

import json
import os
import re
import tempfile
import time
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Annotated, Any, Final

import typer
import yaml
from rich.console import Console
from rich.table import Table

from bench.output import JsonFile
from local.errors import LocalError
from local.workspace import CHECKOUT, Workspace, offline, stack_config
from smoke.console import write

SECONDS_A_RESOURCE: Final = 0.021
"""What a ConfigMap costs in a preview on a real cluster, CLI 3.274.1 without checkpoints."""
EMPTY_FACTOR: Final = 3
LARGE_SECONDS: Final = 45.0
LARGE_MEBIBYTES: Final = 1024
"""Limits of 2,000 resources; the memory is that of the largest process."""
PACK_RESOURCES: Final = 1000
PACK_SECONDS: Final = 10.0
"""What the policies may take over so many resources."""
LINEAR_WITHIN: Final = 1.5
"""A resource of the largest stack costs at most so many times one of the smallest."""
RESOURCES_A_MODEL: Final = 14
RESOURCES_BESIDE: Final = 70
"""What a stack of no model declares, about."""
_CREATED: Final = re.compile(r"\+ (\d+) to create")
_MAPS: Final = """\
import pulumi, pulumi_kubernetes as kubernetes
cluster = kubernetes.Provider("cluster", cluster_identifier="bench", kubeconfig="")
for index in range({count}):
    metadata = {{"name": f"map-{{index}}", "namespace": "bench"}}
    opts = pulumi.ResourceOptions(provider=cluster)
    kubernetes.core.v1.ConfigMap(f"map-{{index}}", metadata=metadata, data={{"index": str(index)}}, opts=opts)
"""


@dataclass(frozen=True, kw_only=True)
class Cost:
    """One preview: resources, seconds on the clock and of all processes' CPU, and MiB of the largest process."""

    name: str
    resources: int
    seconds: float
    cpu_seconds: float
    mebibytes: int


def measure(
    sizes: Annotated[list[int] | None, typer.Option("--resources", min=100, help="Sizes of generated stacks.")] = None,
    json_file: JsonFile = None,
) -> None:
    """Preview each program from nothing, offline; exit 1 when a limit is passed. Seconds count on a quiet machine only."""
    wanted = sizes or [500, 1000, 2000]
    try:
        empty = preview_of("empty program", program="")
        prod = preview_of("prod, with the pack", pack=True)
        floor = preview_of(f"{wanted[-1]} plain ConfigMaps", program=_MAPS.format(count=wanted[-1]))
        grown = [preview_of(f"generated, {size}", generated(size), pack=True) for size in wanted]
        unjudged = [
            preview_of(f"generated, {size}, without the pack", generated(size))
            for size in wanted
            if size == PACK_RESOURCES
        ]
    except LocalError as error:
        typer.echo(f"bench preview: {error}", err=True)
        raise typer.Exit(2) from None
    verdicts = judge(empty, prod, grown) | judge_pack(unjudged, grown)
    costs = [empty, prod, floor, *grown, *unjudged]
    _show(costs, verdicts)
    if json_file:
        document = {"previews": [asdict(cost) for cost in costs], "goals": verdicts}
        write(json_file, json.dumps(document, indent=2))
    raise typer.Exit(0 if all(verdicts.values()) else 1)


def generated(resources: int) -> dict[str, Any]:
    """Groups that make prod a stack of about so many resources: one native model after the other on enough H100 nodes."""
    count = max(1, round((resources - RESOURCES_BESIDE) / RESOURCES_A_MODEL))
    config = stack_config("prod")
    native = next(model for model in config["moonstack:models"] if model["connector"] == "nixl")
    roles = {role: native[role] | {"replicas": 2} for role in ("prefill", "decode")}
    pools = [pool | {"count": pool["count"] + 2 * count} for pool in config["moonstack:nodePools"]]
    return {
        "models": [native | roles | {"name": f"model-{index}"} for index in range(count)],
        "nodePools": pools,
        "kvStore": {"protocol": "rdma"},
        "autoscaling": {"engines": {"maxReplicas": 2}},
    }


def judge(empty: Cost, prod: Cost, grown: list[Cost]) -> dict[str, bool]:
    """Limit → whether it was kept."""
    limit = EMPTY_FACTOR * empty.seconds + SECONDS_A_RESOURCE * prod.resources
    verdicts = {f"prod within {EMPTY_FACTOR} × empty + 21 ms a resource = {limit:.1f} s": prod.seconds <= limit}
    large = grown[-1]
    if large.resources >= 1900:
        verdicts[f"{large.resources} resources within {LARGE_SECONDS:g} s"] = large.seconds <= LARGE_SECONDS
        verdicts[f"{large.resources} resources within {LARGE_MEBIBYTES} MiB"] = large.mebibytes <= LARGE_MEBIBYTES
    if len(grown) > 1:
        first, last = (_each(cost, empty) for cost in (grown[0], large))
        verdicts[f"linear: {first * 1000:.0f}, then {last * 1000:.0f} ms CPU a resource"] = (
            last <= LINEAR_WITHIN * first
        )
    return verdicts


def judge_pack(unjudged: list[Cost], grown: list[Cost]) -> dict[str, bool]:
    """Limit of the pack → whether it was kept, for each stack that was previewed with it and without."""
    pairs = [(with_pack, plain) for plain in unjudged for with_pack in grown if with_pack.resources == plain.resources]
    spent = {plain.resources: with_pack.cpu_seconds - plain.cpu_seconds for with_pack, plain in pairs}
    return {
        f"the pack over {size} resources: {seconds:.1f} s of CPU, within {PACK_SECONDS:g} s": seconds <= PACK_SECONDS
        for size, seconds in spent.items()
    }


def preview_of(
    name: str, overrides: Mapping[str, Any] | None = None, *, program: str | None = None, pack: bool = False
) -> Cost:
    """Preview prod with the overridden groups, or a program of one's own in its place. Raises LocalError with what Pulumi said."""
    more = {} if pack else {"PULUMI_OPTION_POLICY_PACK": ""}
    with offline("prod", overrides or {}, more) as here, tempfile.TemporaryDirectory() as folder:
        if program is not None:
            _replace_program(here, Path(folder), program)
        return _run(name, here)


def _replace_program(here: Workspace, folder: Path, text: str) -> None:
    (folder / "__main__.py").write_text(text)
    (folder / ".venv").symlink_to(CHECKOUT / ".venv")
    project = here.folder / "Pulumi.yaml"
    project.write_text(yaml.safe_dump(yaml.safe_load(project.read_text()) | {"main": str(folder)}))


def _run(name: str, here: Workspace) -> Cost:
    began = time.monotonic()
    process = here.start("preview", "--suppress-progress")
    text = process.stdout.read() if process.stdout else ""
    _, status, usage = os.wait4(process.pid, 0)
    seconds = time.monotonic() - began
    process.returncode = os.waitstatus_to_exitcode(status)
    found = _CREATED.search(text)
    if process.returncode or found is None:
        raise LocalError(f"preview of {name}: {' '.join(text.split())[-600:]}")
    return Cost(
        name=name,
        resources=int(found[1]),
        seconds=round(seconds, 2),
        cpu_seconds=round(usage.ru_utime + usage.ru_stime, 2),
        mebibytes=usage.ru_maxrss // 1024,
    )


def _each(cost: Cost, empty: Cost) -> float:
    return (cost.cpu_seconds - empty.cpu_seconds) / cost.resources


def _show(costs: list[Cost], verdicts: Mapping[str, bool]) -> None:
    console = Console(highlight=False)
    table = Table("preview", "resources", "seconds", "CPU seconds", "CPU ms a resource", "largest process, MiB")
    for cost in costs:
        each = f"{1000 * cost.cpu_seconds / cost.resources:.1f}"
        table.add_row(
            cost.name, str(cost.resources), f"{cost.seconds:.1f}", f"{cost.cpu_seconds:.1f}", each, str(cost.mebibytes)
        )
    console.print(table)
    for limit, kept in verdicts.items():
        console.print(f"{'[green]✓[/]' if kept else '[red]✗[/]'} {limit}")
