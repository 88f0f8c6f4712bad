"""The real API server takes every object of the production stack, for both releases of Kthena, in strict mode."""

from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from local import cluster as local_cluster
from local.cluster.api import Api
from local.cluster.layout import layout
from local.rehearse.cluster import definitions
from local.rehearse.crds import custom_resources
from local.rehearse.render import file_name, stack_manifests
from rules.kthena import Release
from settings.settings import Settings
from tests.real.conftest import ROOT, kubectl
from tests.unit.serving.kthena_crds import crds

RELEASES: tuple[Release, ...] = ("0.4", "1.0")


@pytest.fixture(scope="module")
def api(cluster: Path) -> Iterator[Api]:
    client = local_cluster.connect(layout())
    yield client
    client.close()


@pytest.fixture(scope="module")
def namespace(cluster: Path) -> Iterator[None]:
    kubectl("create", "namespace", "moonstack")
    yield
    kubectl("delete", "namespace", "moonstack", "--wait=true")


def kthena(release: Release) -> dict[str, object]:
    config = yaml.safe_load((ROOT / "Pulumi.prod.yaml").read_text())["config"]
    return {**config["moonstack:kthena"], "release": release}


def settings(release: Release) -> Settings:
    config = yaml.safe_load((ROOT / "Pulumi.prod.yaml").read_text())["config"]
    groups = {key.removeprefix("moonstack:"): value for key, value in config.items()}
    return Settings.from_mapping(groups | {"kthena": kthena(release)})


def rendered(release: Release, folder: Path) -> Path:
    for manifest in stack_manifests("prod", {"kthena": kthena(release)}):
        (folder / file_name(manifest)).write_text(yaml.safe_dump(manifest))
    return folder


def dry_run(folder: Path) -> str:
    # Forced: dev, which may run beside, owns cluster-scoped objects of the same names; nothing is written.
    flags = ("--server-side", "--dry-run=server", "--validate=strict", "--force-conflicts")
    return kubectl("apply", *flags, "-f", str(folder), check=False)


@pytest.mark.parametrize("release", RELEASES)
def test_every_object_of_prod_is_accepted(release: Release, api: Api, namespace: None, tmp_path: Path):
    crds(release)
    folder = rendered(release, tmp_path)
    with definitions(api, custom_resources(settings(release))):
        said = dry_run(folder)
    assert said.count("serverside-applied") == len(list(folder.iterdir())), said


def test_scaling_of_0_4_is_refused_by_1_0(api: Api, namespace: None, tmp_path: Path):
    crds("1.0")
    folder = rendered("0.4", tmp_path)
    for path in folder.iterdir():
        if not path.name.startswith("autoscaling"):
            path.unlink()
    with definitions(api, custom_resources(settings("1.0"))):
        assert "serverside-applied" not in dry_run(folder)
