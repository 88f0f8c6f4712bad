"""A small stack for elasticity on the local cluster: our controller, HPA, router and warm pool around simulated engines.

Simulated: the engines alone. Their pods answer as vLLM does, with metrics that a test sets; no model is loaded.
"""

import base64
import json
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, cast

import httpx

from bench.at_once import leaving_at_once
from capacity.config import ControllerConfig
from components import router
from components.context import Context
from components.scaling import controller
from components.scaling.certificates import new_authority, new_certificate
from components.scaling.controller_rights import admission, rights
from components.scaling.hpa import behaviour, pods_metric, target
from local.cluster import connect
from local.cluster.admin import client
from local.cluster.api import Api
from local.cluster.layout import layout
from rules import labels, names, ports, quantity
from rules.metrics import served
from rules.warm_pool import RESTING
from settings.local_runtime import LocalRuntime
from settings.scaling_rules import scale_down, scale_up
from settings.settings import Settings

NAMESPACE = "moonstack-elastic"
GONE_SECONDS = 180.0
"""A router drains 41 s; the namespace's controller, which looks again after half of what remains, sees it a minute or more later."""
MODEL, POOL = "sim", "ascend"
SERVE, WARM = names.engine(MODEL, "serve", POOL), names.warm(MODEL, "serve", POOL)
HPA_PATH = f"/apis/autoscaling/v2/namespaces/{NAMESPACE}/horizontalpodautoscalers/{SERVE}"
METRICS = f"/apis/custom.metrics.k8s.io/v1beta2/namespaces/{NAMESPACE}/pods/*"
API_SERVICE = "/apis/apiregistration.k8s.io/v1/apiservices/v1beta2.custom.metrics.k8s.io"

ENGINE = """
import asyncio, json, os, urllib.parse
state = {"waiting": 0.0, "running": 0.0, "kv": 0.0, "hang": 0.0}
own = '{engine="0",model_name="sim"}'
def page():
    return (f"vllm:num_requests_waiting{own} {state['waiting']}\\n"
            f"vllm:num_requests_running{own} {state['running']}\\n"
            f"vllm:kv_cache_usage_perc{own} {state['kv']}\\n")
async def serve(reader, writer):
    try:
        while True:
            head = (await reader.readuntil(b"\\r\\n\\r\\n")).decode()
            line, *headers = head.split("\\r\\n")
            length = next((int(h[15:]) for h in headers if h.lower().startswith("content-length:")), 0)
            await reader.readexactly(length)
            path, _, query = line.split(" ")[1].partition("?")
            if path == "/simulate":
                state.update({k: float(v) for k, v in urllib.parse.parse_qsl(query)})
            if path == "/metrics" and state["hang"]:
                await asyncio.sleep(3600)
            kind, body = ("text/plain", page()) if path == "/metrics" else ("application/json", json.dumps({
                "served_by": os.environ["POD"], "object": "list", "data": [{"id": "sim", "object": "model"}], "status": "ok"}))
            writer.write(f"HTTP/1.1 200 OK\\r\\ncontent-type: {kind}\\r\\ncontent-length: {len(body)}\\r\\n\\r\\n{body}".encode())
            await writer.drain()
            if "connection: close" in head.lower():
                break
    except (asyncio.IncompleteReadError, ConnectionError):
        pass
    finally:
        writer.close()
async def main():
    server = await asyncio.start_server(serve, "0.0.0.0", 8000)
    await server.serve_forever()
asyncio.run(main())
"""


@dataclass
class Elastic:
    """The running stack."""

    api: Api
    http: httpx.Client

    def get(self, path: str, **parameters: str) -> Any:
        answer = self.http.get(path, params=parameters)
        answer.raise_for_status()
        return answer.json()

    def pods(self, **wanted: str) -> list[dict[str, Any]]:
        """Pods that carry the labels and are not on their way out."""
        selector = ",".join(f"{key.replace('__', '/')}={value}" for key, value in wanted.items())
        items = self.get(f"/api/v1/namespaces/{NAMESPACE}/pods", labelSelector=selector)["items"]
        return [pod for pod in items if "deletionTimestamp" not in pod["metadata"]]

    def engines(self, deployment: str) -> list[str]:
        """Names of the Ready engines of a Deployment."""
        pods = self.pods(**{"app.kubernetes.io/name": deployment})
        return [pod["metadata"]["name"] for pod in pods if is_ready(pod)]

    def simulate(self, pod: str, **state: float) -> None:
        """Set what an engine reports."""
        path = f"/api/v1/namespaces/{NAMESPACE}/pods/{pod}:{ports.ENGINE}/proxy/simulate"
        self.http.get(path, params={key: str(value) for key, value in state.items()}).raise_for_status()

    def simulate_all(self, **state: float) -> None:
        """Set what all engines report."""
        for pod in (*self.engines(SERVE), *self.engines(WARM)):
            self.simulate(pod, **state)

    def values(self, metric: str = served.QUEUE_DEPTH) -> dict[str, float]:
        """What the HPA would read now."""
        selector = ",".join(f"{k}={v}" for k, v in labels.engine_selector(MODEL, "serve", POOL).items())
        items = self.get(f"{METRICS}/{metric}", labelSelector=selector)["items"]
        return {item["describedObject"]["name"]: float(quantity.parse(item["value"])) for item in items}

    def answered_by(self) -> str | None:
        """Which engine answers a request through the router."""
        path = (
            f"/api/v1/namespaces/{NAMESPACE}/services/{names.router_service(MODEL)}:{ports.ROUTER}/proxy/v1/completions"
        )
        answer = self.http.post(path, json={"model": MODEL, "prompt": "x", "max_tokens": 1})
        return answer.json().get("served_by") if answer.status_code == 200 else None

    @property
    def hpa(self) -> dict[str, Any]:
        return self.get(HPA_PATH)


def until(condition: Callable[[], Any], seconds: float, what: str = "") -> float:
    """Wait for a condition; returns the seconds it took."""
    started = time.monotonic()
    while time.monotonic() - started < seconds:
        try:
            if condition():
                return time.monotonic() - started
        except httpx.HTTPError:
            pass
        time.sleep(0.03)
    raise AssertionError(f"not within {seconds} s: {what}")


def is_ready(pod: dict[str, Any]) -> bool:
    conditions = {c["type"]: c["status"] for c in pod.get("status", {}).get("conditions", [])}
    return conditions.get("Ready") == "True"


def settings() -> Settings:
    """Aggregated, one role, quick to scale; no window on the way up, so that a test sees the pure delay."""
    return Settings.from_mapping(
        {
            "environment": "dev",
            "cluster": {"namespace": NAMESPACE, "kubeconfig": "local", "identifier": "moonstack-local"},
            "nodePools": [
                {"name": POOL, "mode": "existing", "chip": "ascend-910b", "driverStack": "mindcluster", "arch": "amd64", "chipsPerNode": 32}
            ],
            "models": [
                {
                    "name": MODEL,
                    "shape": "aggregated",
                    "connector": "none",
                    "weights": {"source": "development", "location": "dev-tiny", "revision": "local", "size": "10Mi"},
                    "engine": {"build": "cpu", "dtype": "float32", "blockSize": 32, "maxModelLen": 1024, "maxNumSeqs": 16},
                    "serve": {"pool": POOL, "replicas": 2, "chips": 1, "cpu": "50m", "memory": "64Mi"},
                    "longestRequestSeconds": 5,
                    "router": {"replicas": 1, "policy": "round_robin"},
                }
            ],
            "gateway": {"tls": {"source": "none"}},
            "channel": {"enabled": False},
            "kvStore": {"enabled": False},
            "smoke": {"via": "port-forward"},
            "autoscaling": {
                "gateway": {"enabled": False},
                "engines": {
                    "enabled": True, "minReplicas": 2, "maxReplicas": 5, "scaleUpWindowSeconds": 0,
                    "scaleUpPeriodSeconds": 15, "scaleDownWindowSeconds": 5, "scaleDownPeriodSeconds": 5,
                    "prediction": {"enabled": False},
                },
            },
            "warmPool": {"enabled": True, "replicas": 1, "maxReplicas": 1, "calmSeconds": 4},
        }
    )  # fmt: skip


def manifests(images: dict[str, str]) -> list[dict[str, Any]]:
    """Everything in order of creation; the APIService last."""
    chosen = settings()
    context = Context(stack="elastic", environment="dev", namespace=NAMESPACE, provider=cast(Any, None), images=images)
    config = ControllerConfig.from_settings(chosen)
    authority = new_authority(names.CAPACITY)
    pair = new_certificate(authority, [controller.host(context)])
    secret = {
        "apiVersion": "v1", "kind": "Secret", "type": "kubernetes.io/tls", "metadata": context.metadata("tls", "capacity"),
        "stringData": {"tls.crt": pair.certificate, "tls.key": pair.key},
    }  # fmt: skip
    model = chosen.models[0]
    routing = [router.service_account(model, context), router.role_of(model, context), router.role_binding(model, context),
               router.service(model, context), router.deployment(model, context)]  # fmt: skip
    control = [*rights(config, context), *admission(context), controller.config_map(config, context), controller.state_map(context),
               secret, controller.budget(context), controller.service(context),
               controller.deployment(config, "tls", context), controller.floor_expiry(context)]  # fmt: skip
    bundle = base64.b64encode(authority.certificate.encode()).decode()
    selectors = (labels.engine_selector(MODEL, "serve", POOL), labels.warm_selector(MODEL, "serve", POOL))
    engines = [
        _engine(context, SERVE, 2, selectors[0], {labels.ROUTED: "true"}),
        _engine(context, WARM, 1, selectors[1], RESTING),
    ]
    made = [*routing, *control, *engines, controller.api_service(context, bundle), _hpa(chosen, context)]
    return [cast(dict[str, Any], json.loads(json.dumps(manifest))) for manifest in made]


def _engine(
    context: Context, name: str, replicas: int, selector: dict[str, str], more: dict[str, str]
) -> dict[str, Any]:
    probe = {"httpGet": {"path": "/health", "port": 8000}, "periodSeconds": 1}
    container = {
        "name": "engine", "image": context.image("capacity"), "imagePullPolicy": "IfNotPresent", "command": ["python3", "-c", ENGINE],
        "env": [{"name": "POD", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}}],
        "readinessProbe": probe, "resources": {"requests": {"cpu": "10m", "memory": "32Mi"}},
    }  # fmt: skip
    own = labels.recommended(name, "engine", "elastic") | selector | more
    return {
        "apiVersion": "apps/v1", "kind": "Deployment", "metadata": context.metadata(name, "engine"),
        "spec": {
            "replicas": replicas, "selector": {"matchLabels": selector},
            "template": {"metadata": {"labels": own}, "spec": {"terminationGracePeriodSeconds": 1, "containers": [container]}},
        },
    }  # fmt: skip


def _hpa(chosen: Settings, context: Context) -> dict[str, Any]:
    engines = chosen.autoscaling.engines
    return {
        "apiVersion": "autoscaling/v2", "kind": "HorizontalPodAutoscaler", "metadata": context.metadata(SERVE, "autoscaling"),
        "spec": {
            "scaleTargetRef": target(SERVE), "minReplicas": 2, "maxReplicas": 5,
            "metrics": [pods_metric(served.QUEUE_DEPTH, engines.queue_depth)],
            "behavior": behaviour(scale_up(engines), scale_down(engines)),
        },
    }  # fmt: skip


@contextmanager
def deployed() -> Iterator[Elastic]:
    """The stack, up and answering; all of it is gone afterwards, the APIService first."""
    api = connect(layout())
    with client() as http:
        running = Elastic(api, http)
        try:
            api.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}})
            for manifest in manifests(dict(LocalRuntime.load().images)):
                api.apply(manifest, _path(manifest))
            until(lambda: len(running.engines(SERVE)) == 2 and len(running.engines(WARM)) == 1, 120, "engines")
            until(lambda: len(running.values()) == 2, 90, "metrics of both engines")
            until(running.answered_by, 60, "an answer through the router")
            yield running
        finally:
            with leaving_at_once(NAMESPACE):
                _remove(http)
            api.close()


def _remove(http: httpx.Client) -> None:
    for path in (
        HPA_PATH,
        API_SERVICE,
        f"/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicybindings/{names.CAPACITY}-{NAMESPACE}",
        f"/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicies/{names.CAPACITY}-{NAMESPACE}",
        f"/apis/rbac.authorization.k8s.io/v1/namespaces/kube-system/rolebindings/{names.CAPACITY}-{NAMESPACE}",
        f"/api/v1/namespaces/{NAMESPACE}",
    ):
        http.delete(path)
    until(lambda: http.get(f"/api/v1/namespaces/{NAMESPACE}").status_code == 404, GONE_SECONDS, "the namespace is gone")


def _path(manifest: dict[str, Any]) -> str:
    version, kind, meta = manifest["apiVersion"], manifest["kind"], manifest["metadata"]
    root = "/api/v1" if version == "v1" else f"/apis/{version}"
    within = f"/namespaces/{meta['namespace']}" if "namespace" in meta else ""
    plural = {"ValidatingAdmissionPolicy": "validatingadmissionpolicies"}.get(kind, f"{kind.lower()}s")
    return f"{root}{within}/{plural}/{meta['name']}"
