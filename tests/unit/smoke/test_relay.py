"""The way `job`: a pod that is as restricted as ours, and a relay that passes bytes both ways."""

import asyncio
import socket
import sys
from pathlib import Path

import httpx
import pytest

from rules import flow
from smoke import reach_pod, relay_pod
from smoke.channel.app import Channel
from smoke.channel.plan import ChannelPlan, KeyPlan
from smoke.channel.serve import serve
from smoke.client import GatewayClient
from smoke.errors import PermanentError
from smoke.probes import boundary
from smoke.relay import relay_job
from smoke.ways import open_way
from tests.unit.smoke.fakes import dev_settings


def test_the_job_ends_by_itself_and_is_restricted():
    made = relay_job(dev_settings(), "registry.test/capacity:1", "dev")
    spec = made["spec"]["template"]["spec"]
    assert made["spec"]["backoffLimit"] == 0
    assert made["spec"]["activeDeadlineSeconds"] > 0
    assert spec["automountServiceAccountToken"] is False
    assert spec["securityContext"]["runAsNonRoot"] is True
    assert spec["containers"][0]["securityContext"]["capabilities"] == {"drop": ["ALL"]}


def test_the_network_boundary_lets_the_job_reach_the_gateway():
    made = relay_job(dev_settings(), "i", "dev")
    part = made["spec"]["template"]["metadata"]["labels"]["app.kubernetes.io/component"]
    assert any(one.source == part and one.target == flow.GATEWAY for one in flow.flows(flow.Shape()))


def test_the_job_holds_no_key():
    assert "key" not in str(relay_job(dev_settings(), "i", "dev")).lower()


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return listener.getsockname()[1]


async def test_the_relay_passes_requests_and_streams(tmp_path: Path):
    key = KeyPlan.model_validate({"id": "a", "value": f"sk-{tmp_path.name}-0123456789"})
    async with serve(Channel(ChannelPlan(models=("m",), keys=(key,)))) as url:
        port = free_port()
        target = httpx.URL(url)
        process = await asyncio.create_subprocess_exec(
            sys.executable, "-c", Path(relay_pod.__file__).read_text(), str(port), str(target.host), str(target.port)
        )
        try:
            async with httpx.AsyncClient(base_url=f"http://127.0.0.1:{port}") as http:
                client = GatewayClient(http, key.value.get_secret_value())
                for _ in range(100):
                    try:
                        streamed = await client.stream("m", "x", max_tokens=5)
                        break
                    except Exception:
                        await asyncio.sleep(0.05)
                else:
                    pytest.fail("the relay did not start")
                assert streamed.chunks == 5
        finally:
            process.kill()
            await process.wait()


async def test_ways_through_the_cluster_need_the_cluster():
    for via in ("job", "port-forward"):
        with pytest.raises(PermanentError, match="needs the cluster"):
            async with open_way(dev_settings(via=via), None, "dev"):
                pass


@pytest.mark.parametrize(
    ("reached", "claimed", "otherwise"),
    [
        ({"gateway": True, "engine": False, "router": False}, "pass", "pass"),
        ({"gateway": True, "engine": True, "router": False}, "fail", "fail"),
        ({"gateway": True, "engine": True, "router": True}, "fail", "skip"),
        ({"gateway": False, "engine": False}, "fail", "fail"),
        ({"gateway": True}, "skip", "skip"),
    ],
)
def test_the_boundary_is_open_at_the_gateway_alone_where_it_is_enforced(
    reached: dict[str, bool], claimed: str, otherwise: str
):
    assert boundary.judge(reached, enforced=True).verdict == claimed
    assert boundary.judge(reached, enforced=False).verdict == otherwise


def test_a_cluster_that_enforces_no_policy_is_said_to_be_one():
    outcome = boundary.judge({"gateway": True, "engine": True}, enforced=False)
    assert "does not enforce NetworkPolicies" in (outcome.cause or "")


def test_the_pod_tells_open_from_closed_ports():
    with socket.create_server(("127.0.0.1", 0)) as listener:
        assert reach_pod.reachable(f"127.0.0.1:{listener.getsockname()[1]}")
    assert not reach_pod.reachable(f"127.0.0.1:{free_port()}")
