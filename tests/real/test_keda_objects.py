"""KEDA's own definition takes our ScaledObjects in strict mode, and a live Prometheus answers their queries, idle engines too."""

import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any, cast

import pytest
import yaml

from components.context import Context
from components.scaling.keda import query, scaled_object
from components.serving_plan import engine_plans
from local import cluster as local_cluster
from local.cluster.admin import client
from local.cluster.api import Api
from local.cluster.layout import layout
from local.rehearse.cluster import definitions
from local.tools.go import downloaded
from rules import labels
from rules.metrics import served
from settings.local_runtime import LocalRuntime
from settings.settings import Settings
from tests.real.conftest import ROOT, DevStack, kubectl
from tests.real.prometheus import running

MODULE, VERSION = "github.com/kedacore/keda/v2", "v2.20.2"
NAMESPACE = "keda-objects"


def settings() -> Settings:
    """dev with room to scale, by KEDA."""
    config = yaml.safe_load((ROOT / "Pulumi.dev.yaml").read_text())["config"]
    groups = {key.removeprefix("moonstack:"): value for key, value in config.items()}
    keda = {"enabled": True, "implementation": "keda", "prometheusUrl": "http://prometheus.monitoring:9090"}
    groups["nodePools"][0] |= {"mode": "existing", "nodes": [], "count": 100}
    return Settings.from_mapping(groups | {"autoscaling": {"engines": keda}})


def manifests() -> list[dict[str, Any]]:
    """The ScaledObjects of dev's roles, in a namespace of their own."""

    class Stub:
        namespace = NAMESPACE

        def metadata(self, name: str, component: str) -> dict[str, Any]:
            return {"name": name, "namespace": NAMESPACE, "labels": labels.recommended(name, component, "dev")}

    runtime, this = LocalRuntime.load(), settings()
    plans = engine_plans(this, runtime.images, runtime, "dev")
    return [dict(scaled_object(plan, this, cast(Context, Stub()))) for plan in plans]


@pytest.fixture(scope="module")
def api(cluster: Path) -> Iterator[Api]:
    found = local_cluster.connect(layout())
    yield found
    found.close()


@pytest.fixture(scope="module")
def namespace(cluster: Path) -> Iterator[None]:
    kubectl("create", "namespace", NAMESPACE)
    yield
    kubectl("delete", "namespace", NAMESPACE, "--wait=true")


def test_kedas_own_definition_takes_every_scaled_object(api: Api, namespace: None, tmp_path: Path):
    definition = downloaded(MODULE, VERSION) / "config" / "crd" / "bases" / "keda.sh_scaledobjects.yaml"
    objects = manifests()
    assert objects
    for manifest in objects:
        (tmp_path / f"{manifest['metadata']['name']}.yaml").write_text(yaml.safe_dump(manifest))
    with definitions(api, [yaml.safe_load(definition.read_text())]):
        flags = ("--server-side", "--dry-run=server", "--validate=strict")
        said = kubectl("apply", *flags, "-f", str(tmp_path), check=False)
    assert said.count("serverside-applied") == len(objects), said


def test_each_query_gives_keda_one_number_from_idle_engines(dev_stack: DevStack, tmp_path: Path):
    """KEDA takes no answer, several, and NaN for a broken trigger; then replicas stay where they are."""
    this = dev_stack.settings
    plans = engine_plans(this, LocalRuntime.load().images, LocalRuntime.load(), "dev")
    with client() as http, running(tmp_path, http, dev_stack.namespace) as prometheus:
        for plan in plans:
            for metric in (served.QUEUE_DEPTH, served.RUNNING, served.KV_UTILIZATION, served.TTFT):
                text, _, _ = query(this.autoscaling.engines, metric, plan.name, dev_stack.namespace)
                [row] = prometheus.query(text)
                assert math.isfinite(float(row["value"][1])), (plan.name, metric)
