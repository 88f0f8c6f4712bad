"""How each source of weights reaches a pod."""

from typing import Any

import pytest

from components.pods.engine import engine_spec
from components.serving_plan import engine_plans
from components.weights import fetch_seconds
from settings.settings import Settings
from tests.unit.components.conftest import IMAGES
from tests.unit.serving.stacks import REVISION, accepted, refused, stack

COMMIT = "0123456789abcdef0123456789abcdef01234567"
S3 = {"source": "s3", "location": "s3://bucket/prefix", "revision": REVISION, "size": "16Gi", "checksums": "a" * 64}


def with_weights(**weights: Any) -> dict[str, Any]:
    values = stack()
    values["models"] = values["models"][1:]
    values["models"][0]["weights"] = {"revision": REVISION, "size": "16Gi", **weights}
    values["kvStore"] = {"protocol": "rdma"}
    return values


def pod(**weights: Any) -> dict[str, Any]:
    settings = Settings.from_mapping(with_weights(**weights))
    return engine_spec(engine_plans(settings, IMAGES, None, "pre")[0].pod)


def volume(spec: dict[str, Any]) -> dict[str, Any]:
    return next(each for each in spec["volumes"] if each["name"] == "weights")


def mount(spec: dict[str, Any]) -> dict[str, Any]:
    return next(each for each in spec["containers"][0]["volumeMounts"] if each["name"] == "weights")


def test_the_mount_path_tells_revisions_apart():
    assert mount(pod(source="hostPath", location="/models/small"))["mountPath"] == "/models/small-0123456789ab"


def test_a_folder_of_a_claim_is_mounted_alone():
    spec = pod(source="pvc", location="weights/small")
    assert volume(spec)["persistentVolumeClaim"] == {"claimName": "weights", "readOnly": True}
    assert mount(spec)["subPath"] == "small"


def test_an_image_is_mounted_as_a_volume_and_pinned_by_digest():
    reference = f"example.com/weights@sha256:{'a' * 64}"
    assert volume(pod(source="image", location=reference))["image"]["reference"] == reference
    assert refused(with_weights(source="image", location="example.com/weights:1"), "models[0].weights", "by digest")


def test_fetched_weights_come_from_a_sidecar_that_holds_no_key_in_its_arguments():
    spec = pod(
        **S3,
        credentialsSecret="bucket-key",
        cache={"path": "/data/weights", "limit": "100Gi"},
        endpoint="https://s3.example.com",
    )
    sidecar = spec["initContainers"][0]
    assert sidecar["restartPolicy"] == "Always"
    assert sidecar["envFrom"] == [{"secretRef": {"name": "bucket-key"}}]
    assert volume(spec)["hostPath"]["path"] == "/data/weights"
    arguments = dict(zip(sidecar["command"][4::2], sidecar["command"][5::2], strict=False))
    assert arguments["--source"] == "s3://bucket/prefix"
    assert arguments["--checksums"] == "a" * 64
    assert arguments["--endpoint"] == "https://s3.example.com/"
    assert arguments["--limit"] == str(100 * 2**30)
    assert mount(spec)["subPath"] == arguments["--entry"] == "small-0123456789ab"
    assert mount(spec)["readOnly"] is True


def test_the_fetchs_budget_follows_size_and_bandwidth():
    slow = Settings.from_mapping(with_weights(**S3, downloadBandwidth="1Mi"))
    assert fetch_seconds(slow.models[0].weights) == 16 * 1024
    probe = pod(**S3, downloadBandwidth="1Mi")["initContainers"][0]["startupProbe"]
    assert probe["periodSeconds"] * probe["failureThreshold"] >= 3 * 16 * 1024


def test_without_a_cache_each_pod_has_its_own_copy():
    spec = pod(**S3)
    assert int(volume(spec)["emptyDir"]["sizeLimit"]) > 16 * 2**30
    assert "--limit" not in spec["initContainers"][0]["command"]


@pytest.mark.parametrize(
    ("weights", "words"),
    [
        ({"source": "s3", "location": "s3://bucket/prefix"}, "needs checksums"),
        (S3 | {"location": "bucket/prefix"}, "s3://bucket/prefix"),
        ({"source": "hub", "location": "a/b"}, "whole commit of 40 digits"),
        ({"source": "hostPath", "location": "models"}, "absolute folder"),
        ({"source": "pvc", "location": "claim/../other"}, "leaves its folder"),
        ({"source": "pvc", "location": "claim", "cache": {"limit": "1Gi"}}, "cache is for s3, hub"),
        (S3 | {"offline": True}, "offline needs a cache"),
        ({"source": "hostPath", "location": "/models", "revision": "local"}, "revision local"),
    ],
)
def test_options_that_do_not_fit_a_source_are_refused(weights: dict[str, Any], words: str):
    assert refused(with_weights(**weights), "models[0].weights", words)


def test_hub_and_modelscope_are_accepted_with_a_pinned_revision():
    assert accepted(with_weights(source="hub", location="a/b", revision=COMMIT))
    assert accepted(with_weights(source="modelscope", location="a/b"))
