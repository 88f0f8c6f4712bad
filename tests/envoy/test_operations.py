"""Changes under load, the end of a pod, and what operators see."""

import json
import re
import socket
import ssl
import subprocess
import threading
import time
from itertools import pairwise
from pathlib import Path

import httpx
import pytest

from bench.simulated.gateway import Gateway, fake_key
from components.envoy.process import drain_script
from rules.envoy_keys import FILE, ClientKey, version_name
from tests.envoy.authority import Authority
from tests.envoy.load import Load
from tests.envoy.stacks import ASK, CHAT, CLIENTS, MODEL, stack
from tests.envoy.upstream import Upstream
from tests.envoy.waiting import wait_for

STREAM = {**ASK, "stream": True}


def call(client: httpx.Client) -> str | None:
    answer = client.post(CHAT, json=ASK)
    return None if answer.status_code == 200 else f"{answer.status_code} {answer.text}"


def stream(client: httpx.Client) -> str | None:
    answer = client.post(CHAT, json=STREAM)
    return None if answer.text.endswith("[DONE]\n\n") else f"{answer.status_code} {answer.text[-80:]}"


def test_keys_are_exchanged_under_load_without_a_failed_request(fresh: Gateway):
    kept = fresh.key
    with Load(call, lambda: fresh.client(kept)) as load:
        for _ in range(6):
            new = fake_key()
            fresh.write_keys([ClientKey("client", kept), ClientKey("other", new)])
            with fresh.client(new) as client:
                wait_for(lambda client=client: client.get("/v1/models").status_code == 200)
    assert load.failures == [] and load.done > 5


def test_certificates_are_exchanged_under_load_without_a_failed_request(start, router: Upstream, tmp_path: Path):
    authority = Authority(tmp_path)
    gateway = Gateway(stack(gateway={"tls": {"source": "secret"}}), tmp_path / "gateway", {"chat": router.port})
    gateway.tls.write(authority.issue("localhost"))
    start(gateway)
    serials = set()
    with Load(
        call, lambda: gateway.client(verify=authority.context(), limits=httpx.Limits(max_keepalive_connections=0))
    ) as load:
        for _ in range(4):
            gateway.tls.write(authority.issue("localhost"))
            seen = len(serials)
            wait_for(lambda seen=seen: serials.add(_certificate(gateway)) or len(serials) > seen)
    assert load.failures == [] and load.done > 5
    assert len(serials) >= 4


def _certificate(gateway: Gateway) -> str:
    return ssl.get_server_certificate(("localhost", gateway.settings.gateway.http_port))


def test_only_tls_1_2_and_newer_are_spoken(start, router: Upstream, tmp_path: Path):
    gateway = Gateway(stack(gateway={"tls": {"source": "secret"}}), tmp_path / "gateway", {"chat": router.port})
    gateway.tls.write(Authority(tmp_path).issue("localhost"))
    start(gateway)
    for version, accepted in (("1", False), ("1_1", False), ("1_2", True), ("1_3", True)):
        option = f"-tls{version}"
        address = f"localhost:{gateway.settings.gateway.http_port}"
        done = subprocess.run(
            ["openssl", "s_client", "-connect", address, option, "-cipher", "DEFAULT@SECLEVEL=0"],
            input=b"",
            capture_output=True,
            check=False,
        )
        assert (b"BEGIN CERTIFICATE" in done.stdout) is accepted, version


def test_models_and_limits_change_under_load_without_a_failed_request(fresh: Gateway):
    with Load(call, fresh.client) as load, Load(stream, fresh.client) as streams:
        for turn in range(4):
            added = {**MODEL, "name": f"added-{turn}"}
            fresh.write_config(stack(models=(MODEL, added), keys=({**CLIENTS[0], "qps": 5000 + turn}, CLIENTS[1])))
            with fresh.client() as client:
                wait_for(lambda client=client, turn=turn: client.get(f"/v1/models/added-{turn}").status_code == 200)
    assert load.failures == [] and streams.failures == []


@pytest.mark.parametrize("name", ["routes.yaml", "clusters.yaml", "limits.yaml", "listeners.yaml"])
def test_a_broken_file_never_replaces_a_good_one(fresh: Gateway, name: str):
    fresh.config.write({name: "resources: [{broken"})
    time.sleep(0.3)
    with fresh.client() as client:
        assert client.post(CHAT, json=ASK).status_code == 200


def test_broken_or_empty_keys_never_open_the_gateway(fresh: Gateway):
    fresh.keys.write({FILE: "resources: [{broken"})
    time.sleep(0.3)
    with fresh.client() as client:
        assert client.post(CHAT, json=ASK).status_code == 200
    with httpx.Client(base_url=fresh.url) as client:
        assert client.post(CHAT, json=ASK).status_code == 401
    fresh.write_keys([])
    with fresh.client() as client:
        wait_for(lambda: client.post(CHAT, json=ASK).status_code == 401)


def test_without_its_keys_the_data_port_stays_shut(start, router: Upstream, tmp_path: Path):
    gateway = Gateway(stack(), tmp_path / "gateway", {"chat": router.port})
    (gateway.keys.path / FILE).unlink()
    with pytest.raises(AssertionError, match="the data port never opened"):
        start(gateway, seconds=2)


def test_an_unknown_field_keeps_the_data_port_shut(start, router: Upstream, tmp_path: Path):
    gateway = Gateway(stack(), tmp_path / "gateway", {"chat": router.port})
    file = gateway.config.path / "listeners.yaml"
    file.write_text(file.read_text().replace("use_remote_address: true", "use_remote_adress: true"))
    with pytest.raises(AssertionError, match="the data port never opened"):
        start(gateway, seconds=2)


def test_a_pods_end_loses_no_request_and_no_stream(start, router: Upstream, tmp_path: Path):
    """Two pods behind a list that takes the first off when its health check fails, as an endpoint controller does."""
    router.chunk_gap = 0.6
    first, second = (start(Gateway(stack(), tmp_path / name, {"chat": router.port})) for name in ("one", "two"))
    second.write_keys([ClientKey("client", first.key)])
    with second.client(first.key) as client:
        wait_for(lambda: client.get("/v1/models").status_code == 200)
    listed = [first, second]

    def each(ask):
        def through(_: httpx.Client) -> str | None:
            with listed[0].client(first.key) as client:
                return ask(client)

        return through

    script = drain_script(first.settings, first.pod).replace("sleep 10", "sleep 1")
    with Load(each(call), first.client) as load, Load(each(stream), first.client) as streams:
        time.sleep(0.5)
        draining = subprocess.Popen(["/bin/bash", "-c", script])
        wait_for(lambda: httpx.get(f"http://127.0.0.1:{first.pod.health_port}/healthz").status_code == 503)
        assert httpx.get(f"{first.url}/healthz").status_code == 503
        time.sleep(0.5)
        listed.pop(0)
        assert draining.wait(15) == 0
        first.stop()
        time.sleep(0.5)
    router.chunk_gap = 0
    assert load.failures == [] and streams.failures == []
    assert load.done > 5 and streams.done > 1


def test_streams_pass_chunk_by_chunk(gateway: Gateway, router: Upstream):
    router.chunk_gap = 0.2
    arrived = []
    with gateway.client() as client, client.stream("POST", CHAT, json=STREAM) as answer:
        began = time.monotonic()
        for line in answer.iter_lines():
            if line.startswith("data: {"):
                arrived.append(time.monotonic() - began)
    router.chunk_gap = 0
    assert len(arrived) == 5
    assert arrived[0] < 0.15
    assert all(later - earlier > 0.1 for earlier, later in pairwise(arrived))


def test_grpc_style_clients_speak_http_2_in_clear_text(gateway: Gateway):
    url = f"http://localhost:{gateway.settings.gateway.grpc_port}{CHAT}"
    with httpx.Client(http1=False, http2=True, headers={"authorization": f"Bearer {gateway.key}"}) as client:
        answer = client.post(url, json=ASK)
    assert (answer.status_code, answer.http_version) == (200, "HTTP/2")


def test_streams_of_one_connection_are_capped(make, start):
    router = start(Upstream("router", delay=0.5))
    gateway = make(stack(gateway={"maxConcurrentStreams": 2}), {"chat": router.port})
    url = f"http://localhost:{gateway.settings.gateway.grpc_port}{CHAT}"
    most = []
    with httpx.Client(http1=False, http2=True, headers={"authorization": f"Bearer {gateway.key}"}) as client:
        threads = [threading.Thread(target=lambda: client.post(url, json=ASK, timeout=20)) for _ in range(6)]
        client.get(url.replace(CHAT, "/v1/models"))
        for thread in threads:
            thread.start()
        for _ in range(20):
            most.append(router.active)
            time.sleep(0.05)
        for thread in threads:
            thread.join()
    assert max(most) == 2


def test_metrics_name_model_client_target_and_tokens(make, router: Upstream):
    fresh = make(stack(channelModels={"observability": {"exportIntervalSeconds": 1}}), {"chat": router.port})
    with fresh.client() as client:
        client.post(CHAT, json=ASK)
        client.post(CHAT, json=STREAM)
        client.post(CHAT, json={**ASK, "model": "nobody"})
    httpx.post(f"{fresh.url}{CHAT}", json=ASK)
    wait_for(lambda: 'first_byte_count{model="chat",client="client",served_by="cluster/chat"} 2' in fresh.metrics())
    text = fresh.metrics()
    of_chat = r'\{model="chat",client="client",served_by="cluster/chat"\}'
    assert float(_one(text, rf"envoy_moonstack_prompt_tokens{of_chat} (\d+)")) == 22
    assert float(_one(text, rf"envoy_moonstack_completion_tokens{of_chat} (\d+)")) == 11
    assert float(_one(text, rf"envoy_moonstack_first_byte_count{of_chat} (\d+)")) == 2
    assert float(_one(text, r'envoy_moonstack_requests\{[^}]*code="401"[^}]*\} (\d+)')) == 1
    assert "nobody" not in text


def test_what_a_target_answers_is_timed_whatever_its_status_and_what_the_gateway_answers_is_not(make, start):
    refusing = start(Upstream("router", fault=422))
    gateway = make(
        stack(channelModels={"observability": {"exportIntervalSeconds": 1, "recordTokenUsage": False}}),
        {"chat": refusing.port},
    )
    with gateway.client() as client:
        assert client.get("/v1/models").status_code == 200
        assert client.post(CHAT, json={**ASK, "model": "nobody"}).status_code == 404
        assert client.post("/v1/embeddings", json={}).status_code == 400
        assert client.post(CHAT, json=ASK).status_code == 422
    wait_for(lambda: bool(re.search(r"envoy_moonstack_duration_count\{.*\} [1-9]", gateway.metrics())))
    counts = re.findall(r"envoy_moonstack_duration_count\{(.*)\} (\d+)", gateway.metrics())
    assert counts == [('model="chat",client="client",served_by="cluster/chat"', "1")]


def test_each_request_is_written_down_once_with_who_asked_however_it_ends(make, router: Upstream):
    """Those that a target answered well and all others are told of by loggers of their own."""
    fresh = make(
        stack(keys=({**CLIENTS[0], "qps": 1000}, CLIENTS[1]), gateway={"maxBodyBytes": 20_000}), {"chat": router.port}
    )
    with fresh.client() as client:
        asked = [
            client.post(CHAT, json=ASK),
            client.post(CHAT, json=STREAM),
            client.post("/v1/embeddings", json=ASK),
            client.post(CHAT, json={}),
            client.post(CHAT, json={**ASK, "model": "nobody"}),
            client.post(CHAT, json={**ASK, "x": "y" * 30_000}),
            client.get(CHAT),
            client.get("/v1/models"),
            client.get("/nowhere"),
        ]
    asked.append(httpx.post(f"{fresh.url}{CHAT}", json=ASK))
    wait_for(lambda: fresh.access_log().count('"request_id"') >= len(asked))
    lines = [json.loads(line) for line in fresh.access_log().splitlines() if line.startswith("{")]
    assert [line["status"] for line in lines] == [200, 200, 200, 400, 404, 413, 405, 200, 404, 401]
    callers = {(line["client"], line["key_version"]) for line in lines[:-1]}
    assert callers == {("client", version_name("client", fresh.key).removeprefix("client@"))}
    assert (lines[-1]["client"], lines[-1]["key_version"]) == (None, None)
    text = fresh.metrics()
    counts = {
        name: sum(map(float, re.findall(rf"envoy_moonstack_{name}\{{.*\}} (\d+)", text)))
        for name in ("requests", "key_requests")
    }
    assert counts == {"requests": 10, "key_requests": 9}
    assert "@" not in "".join(line for line in text.splitlines() if "moonstack" in line)


def test_a_caller_names_no_metric_by_headers_that_the_gateway_reads_itself(fresh: Gateway):
    """Envoy refuses HTTP/1.0 and requests without a host before it has taken our headers away from them."""
    forged = "x-moonstack-client: forged@0123\r\nx-moonstack-model: forged\r\nx-moonstack-served-by: forged\r\n"
    for line in ("HTTP/1.0\r\nhost: a", "HTTP/1.1\r\nx-a: b", "HTTP/1.1\r\nhost: a"):
        with socket.create_connection(("127.0.0.1", fresh.settings.gateway.http_port), timeout=10) as connection:
            connection.sendall(f"POST {CHAT} {line}\r\n{forged}content-length: 0\r\n\r\n".encode())
            assert connection.recv(12) in (b"HTTP/1.1 426", b"HTTP/1.1 400", b"HTTP/1.1 401")
    wait_for(lambda: all(f'code="{code}"' in fresh.metrics() for code in (400, 401, 426)))
    assert "forged" not in fresh.metrics()


def test_latencies_are_exported_at_the_declared_interval(make, router: Upstream):
    gateway = make(stack(channelModels={"observability": {"exportIntervalSeconds": 200}}), {"chat": router.port})
    with gateway.client() as client:
        client.post(CHAT, json=ASK)
    time.sleep(1)
    assert not re.search(r"envoy_moonstack_first_byte_count\{.*\} 1", gateway.metrics())


def _one(text: str, pattern: str) -> str:
    found = re.findall(pattern, text)
    assert len(found) == 1, (pattern, [line for line in text.splitlines() if "moonstack" in line])
    return found[0]


def test_token_and_latency_metrics_can_be_switched_off(make, router: Upstream):
    names = {"observability": {"recordTokenUsage": False, "recordLatencyPerModel": False}}
    gateway = make(stack(channelModels=names), {"chat": router.port})
    with gateway.client() as client:
        client.post(CHAT, json=ASK)
    text = gateway.metrics()
    assert "envoy_moonstack_requests{" in text
    assert "prompt_tokens" not in text and "envoy_moonstack_duration" not in text


@pytest.mark.parametrize(
    "path", ["/", "/config_dump", "/stats", "/quitquitquit", "/clusters", "/stats/prometheus/../../config_dump"]
)
def test_nothing_of_the_admin_interface_is_exposed_but_the_metrics(gateway: Gateway, path: str):
    for port in (gateway.pod.metrics_port, gateway.pod.health_port, gateway.pod.drain_port):
        for method in ("GET", "POST"):
            answer = httpx.request(method, f"http://127.0.0.1:{port}{path}")
            assert answer.status_code in (400, 404), (port, method, path)
    assert httpx.post(f"http://127.0.0.1:{gateway.pod.metrics_port}/stats/prometheus").status_code == 404


def test_no_key_prompt_or_answer_is_in_a_log_a_metric_or_the_configuration_dump(world):
    this = world()
    secret_words = "a-very-private-prompt"
    with this.gateway.client() as client:
        client.post(f"{CHAT}?api_key={this.gateway.key}", json={**ASK, "messages": [{"content": secret_words}]})
        client.post(CHAT, json=ASK, headers={"authorization": f"Bearer {this.key}"})
        this.router.fault = 503
        client.post(CHAT, json=ASK)
    wait_for(lambda: this.gateway.access_log().count('"path":"/v1/chat/completions"') >= 3)
    dump = this.gateway.admin("GET", "/config_dump?include_eds").text
    seen = this.gateway.access_log() + this.gateway.metrics() + this.gateway.admin("GET", "/clusters").text
    for word in (this.key, secret_words, "from router", "from channel"):
        assert word not in seen + dump
    assert this.gateway.key not in seen
    line = json.loads(next(line for line in this.gateway.access_log().splitlines() if '"served_by":"channel' in line))
    assert line["client"] == "client" and line["attempts"] == 3 and line["tokens_out"] == 7


def test_health_needs_no_key_on_either_port(gateway: Gateway):
    assert httpx.get(f"{gateway.url}/healthz").status_code == 200
    assert httpx.get(f"http://127.0.0.1:{gateway.pod.health_port}/healthz").status_code == 200


def test_more_connections_than_allowed_are_refused(make, router: Upstream):
    gateway = make(stack(gateway={"limits": {"connections": 16}}), {"chat": router.port})
    clients = [gateway.client() for _ in range(30)]
    outcomes = [_outcome(client) for client in clients]
    for client in clients:
        client.close()
    assert 8 <= outcomes.count(200) <= 16


def _outcome(client: httpx.Client) -> int | None:
    try:
        return client.get("/v1/models").status_code
    except httpx.HTTPError:
        return None
