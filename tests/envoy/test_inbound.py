"""What a client meets: keys, paths, models, sizes, limits."""

import json
import random
import socket
import time

import httpx
import pytest

from bench.simulated.gateway import Gateway, fake_key
from rules.envoy_keys import ClientKey
from tests.envoy.stacks import ASK, CHAT, CLIENTS, MODEL, stack
from tests.envoy.upstream import Upstream
from tests.envoy.waiting import wait_for


def code(answer: httpx.Response) -> str:
    assert answer.headers["content-type"].startswith("application/json")
    return answer.json()["error"]["code"]


def raw(gateway: Gateway, request: bytes, wait: float = 3) -> bytes:
    """What comes back for bytes that no HTTP client would send."""
    answer = b""
    with socket.create_connection(("127.0.0.1", gateway.settings.gateway.http_port), timeout=wait) as connection:
        connection.sendall(request)
        try:
            while b"\r\n\r\n" not in answer and (part := connection.recv(65536)):
                answer += part
        except TimeoutError:
            pass
    return answer


def test_a_request_with_a_key_reaches_the_model_and_says_who_served_it(gateway: Gateway, router: Upstream):
    with gateway.client() as client:
        answer = client.post(CHAT, json=ASK)
    assert answer.status_code == 200
    assert answer.json()["choices"][0]["message"]["content"] == "from router"
    assert answer.headers["x-moonstack-served-by"] == "cluster/chat"
    assert answer.headers["x-request-id"]
    assert router.seen[0].path == CHAT
    assert "authorization" not in router.seen[0].headers


def test_no_malformed_no_unknown_and_no_removed_key_gets_past_401(gateway: Gateway, router: Upstream):
    wrong = ["", "Bearer", f"Bearer {fake_key()}", f"Bearer Bearer {gateway.key}", f"Basic {gateway.key}x"]
    with httpx.Client(base_url=gateway.url) as client:
        answers = [client.post(CHAT, json=ASK, headers={"authorization": value}) for value in wrong]
        answers += [client.post(CHAT, json=ASK), client.get("/v1/models"), client.get("/nowhere")]
    assert [answer.status_code for answer in answers] == [401] * len(answers)
    assert {code(answer) for answer in answers} == {"invalid_api_key"}
    assert not router.seen


def test_a_key_is_taken_with_the_schemes_exact_word_or_none(gateway: Gateway):
    """Envoy compares `Bearer ` to the letter, and takes what has no scheme for a key."""
    with httpx.Client(base_url=gateway.url) as client:
        words = {"Bearer ": 200, "": 200, "bearer ": 401, "BEARER ": 401, "Bearer  ": 401, "Basic ": 401}
        found = {
            word: client.get("/v1/models", headers={"authorization": word + gateway.key}).status_code for word in words
        }
    assert found == words


def test_two_keys_of_one_client_are_valid_until_one_is_taken_away(fresh: Gateway):
    second = fake_key()
    fresh.write_keys([ClientKey("client", fresh.key), ClientKey("client", second)])
    with fresh.client(second) as client:
        wait_for(lambda: client.post(CHAT, json=ASK).status_code == 200)
    fresh.write_keys([ClientKey("client", second)])
    with fresh.client() as client:
        wait_for(lambda: client.post(CHAT, json=ASK).status_code == 401)
    with fresh.client(second) as client:
        assert client.post(CHAT, json=ASK).status_code == 200


def test_a_key_whose_tokens_are_used_up_is_told_so_with_429(fresh: Gateway):
    fresh.write_keys([ClientKey("client", fresh.key, exhausted=True)])
    with fresh.client() as client:
        wait_for(lambda: client.post(CHAT, json=ASK).status_code == 429)
        assert code(client.post(CHAT, json=ASK)) == "insufficient_quota"


def test_the_model_list_and_each_model_are_answered_by_the_gateway(gateway: Gateway, router: Upstream):
    with gateway.client() as client:
        listed = client.get("/v1/models").json()
        assert [entry["id"] for entry in listed["data"]] == ["chat"]
        assert client.get("/v1/models/chat").json()["id"] == "chat"
        missing = client.get("/v1/models/chats")
    assert missing.status_code == 404 and code(missing) == "model_not_found"
    assert not router.seen


def test_a_model_name_with_a_slash_is_found_plain_and_encoded(make, start):
    router = start(Upstream("router"))
    model = {**stack().models[0].model_dump(mode="json", by_alias=True, exclude_none=True), "name": "lab/chat:1.0"}
    gateway = make(stack(models=(model,)), {"lab/chat:1.0": router.port})
    with gateway.client() as client:
        assert client.get("/v1/models/lab/chat:1.0").json()["id"] == "lab/chat:1.0"
        assert client.get("/v1/models/lab%2Fchat:1.0").json()["id"] == "lab/chat:1.0"
        assert client.post(CHAT, json={**ASK, "model": "lab/chat:1.0"}).status_code == 200


def test_an_unknown_model_is_404_with_the_names_that_exist(gateway: Gateway, router: Upstream):
    with gateway.client() as client:
        for name in ("Chat", "chat ", "chat2", "cha"):
            answer = client.post(CHAT, json={**ASK, "model": name})
            assert answer.status_code in (400, 404), name
        answer = client.post(CHAT, json={**ASK, "model": "gpt"})
    assert answer.status_code == 404 and code(answer) == "model_not_found"
    assert "Models: chat." in answer.json()["error"]["message"]
    assert not router.seen


@pytest.mark.parametrize("path", ["/v1/completions", "/v1/embeddings", "/v1/responses", CHAT])
def test_the_openai_paths_reach_the_model(gateway: Gateway, router: Upstream, path: str):
    with gateway.client() as client:
        assert client.post(path, json=ASK).status_code == 200
        wrong = client.get(path)
    assert [seen.path for seen in router.seen] == [path]
    assert wrong.status_code == 405 and code(wrong) == "method_not_allowed"


@pytest.mark.parametrize(
    "path",
    [
        "/", "/metrics", "/invocations", "/tokenize", "/detokenize", "/pooling", "/score", "/sleep", "/wake_up", "/reset_prefix_cache",
        "/v1/load_lora_adapter", "/server_info", "/workers", "/docs", "/openapi.json", "/v1", "/v1/chat", "/v1/chat/completions/",
        "/v1/chat/completions/x", "/V1/chat/completions", "//metrics", "/v1/../metrics", "/v1/%2e%2e/metrics", "/v1%2Fchat%2Fcompletions",
        "/v1/chat/completions;x", "/v1/chat/completions%00", "/v1/models/../../sleep", "/stats", "/healthcheck/fail",
    ],
)  # fmt: skip
def test_every_other_path_is_404_and_reaches_nobody(gateway: Gateway, router: Upstream, path: str):
    body = json.dumps(ASK)
    request = (
        f"POST {path} HTTP/1.1\r\nhost: gateway\r\nauthorization: Bearer {gateway.key}\r\ncontent-type: application/json\r\n"
        f"content-length: {len(body)}\r\nconnection: close\r\n\r\n{body}"
    )
    status = raw(gateway, request.encode()).split(b" ")[1]
    assert status in (b"404", b"400"), status
    assert not router.seen


@pytest.mark.parametrize(
    "body",
    [
        b"", b"{}", b"[]", b"null", b'"chat"', b'{"model":1}', b'{"model":null}', b'{"model":["chat"]}', b'{"model":{"model":"chat"}}',
        b'{"model":"chat","model":"chat"}', b'{"model":"x","model":"chat"}', b'{"mod\\u0065l":"x","model":"chat"}',
        b'{"model":"ch\\u0061t"}',
        b'{"messages":[{"model":"chat"}]}', b'{"metadata":{"model":"chat"}}',
        b'[{"model":"chat"}]', b'{"model":"chat"', b'{"model":"chat}',
        b'{"model":"chat"}{"model":"chat"}', b'{"model":"chat"}}', b'{"model":"chat","x":[}', b"model=chat", b'\xff\xfe{"model":"chat"}',
        b'{"model":""}', b'{"x":' + b"[" * 200 + b"]" * 200 + b',"model":"chat"}', b'{"model":"' + b"a" * 200 + b'"}',
    ],
)  # fmt: skip
def test_a_body_without_exactly_one_plain_model_is_400_and_reaches_nobody(
    gateway: Gateway, router: Upstream, body: bytes
):
    with gateway.client() as client:
        answer = client.post(CHAT, content=body, headers={"content-type": "application/json"})
    assert answer.status_code == 400 and code(answer) == "invalid_body"
    assert not router.seen


@pytest.mark.parametrize(
    "body",
    [
        b'{"metadata":{"model":"x"},"model":"chat"}', b' \n{ "model" :\t"chat" }\n', 
        b'{"messages":[{"content":"\\"model\\":\\"x\\" {["}],"model":"chat"}',
        b'{"n":9223372036854775807,"f":1.0,"model":"chat","u":"\\u00e9\xc3\xa9"}',
        b'{"tools":[{"model":"x"}],"model":"chat","b":"model"}',
        b'{"x":"model","model":"chat","y":"model"}', b'{"q":"\\\\","model":"chat"}',
    ],
)  # fmt: skip
def test_a_body_with_one_plain_model_arrives_byte_for_byte(gateway: Gateway, router: Upstream, body: bytes):
    with gateway.client() as client:
        answer = client.post(CHAT, content=body, headers={"content-type": "application/json"})
    assert answer.status_code == 200, answer.text
    assert router.seen[0].body == body


def test_a_compressed_body_is_told_to_come_plain(gateway: Gateway, router: Upstream):
    with gateway.client() as client:
        answer = client.post(CHAT, content=b"\x1f\x8b", headers={"content-encoding": "gzip"})
    assert answer.status_code == 415 and code(answer) == "unsupported_encoding"
    assert not router.seen


def test_a_prompt_of_a_megabyte_passes_and_a_larger_body_than_allowed_is_413(make, router: Upstream):
    gateway = make(stack(gateway={"maxBodyBytes": 2 * 2**20}), {"chat": router.port})
    large = {**ASK, "messages": [{"role": "user", "content": "x" * 2**20}]}
    huge = json.dumps({**ASK, "messages": "x" * (2 * 2**20)}).encode()

    def chunks():
        yield from (huge[i : i + 65536] for i in range(0, len(huge), 65536))

    with gateway.client() as client:
        assert client.post(CHAT, json=large).status_code == 200
        answers = [client.post(CHAT, content=huge), client.post(CHAT, content=chunks())]
    assert len(router.seen[0].body) > 2**20
    assert [answer.status_code for answer in answers] == [413, 413]
    assert code(answers[0]) == "request_too_large"
    assert len(router.seen) == 1


def test_a_large_answer_passes_whole_and_is_counted(make, start):
    router = start(Upstream("router", filler=9_000_000))
    gateway = make(stack(gateway={"maxAnswerBytes": 2**20}), {"chat": router.port})
    with gateway.client() as client:
        assert len(client.post("/v1/embeddings", json=ASK).content) > 9_000_000
    wait_for(lambda: "envoy_moonstack_prompt_tokens" in gateway.metrics())


def test_a_client_can_choose_neither_its_identity_nor_its_route(gateway: Gateway, router: Upstream):
    forged = {
        "x-moonstack-client": "other", "x-moonstack-model": "chat", "x-moonstack-stream": "true", "x-moonstack-cluster": "admin",
        "x-moonstack-first": "true", "x-envoy-max-retries": "9", "x-envoy-upstream-rq-timeout-ms": "1", "x-envoy-retry-on": "5xx",
    }  # fmt: skip
    with gateway.client() as client:
        assert client.post(CHAT, json={**ASK, "model": "gpt"}, headers=forged).status_code == 404
        assert client.post(CHAT, json=ASK, headers=forged).status_code == 200
    seen = router.seen[0].headers
    assert seen["x-moonstack-client"] == "client" and seen["x-moonstack-stream"] == "false"
    assert not {"x-envoy-max-retries", "x-envoy-retry-on", "x-moonstack-cluster"} & seen.keys()


@pytest.mark.parametrize(
    "request_text",
    [
        "POST {chat} HTTP/1.1\r\nhost: a\r\n{key}\r\ncontent-length: 5\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\n",
        "POST {chat} HTTP/1.1\r\nhost: a\r\n{key}\r\ncontent-length: 5\r\ncontent-length: 6\r\n\r\nhello",
        "POST {chat} HTTP/1.1\r\n{key}\r\n\r\n",
        "POST {chat} HTTP/1.1\r\nhost: a\r\n{key}\r\nx_under: score\r\ncontent-length: 0\r\n\r\n",
        "POST {chat} HTTP/1.1\r\nhost: a\r\n{key}\r\n bad: fold\r\ncontent-length: 0\r\n\r\n",
        "NONSENSE\r\n\r\n",
    ],
)
def test_smuggled_and_broken_requests_are_refused_and_reach_nobody(
    gateway: Gateway, router: Upstream, request_text: str
):
    answer = raw(gateway, request_text.format(chat=CHAT, key=f"authorization: Bearer {gateway.key}").encode(), wait=2)
    assert answer[:12] in (b"HTTP/1.1 400", b"HTTP/1.1 401", b""), answer[:200]
    assert not router.seen


@pytest.mark.parametrize(
    ("line", "more", "status"),
    [
        (f"GET {CHAT}", "connection: upgrade\r\nupgrade: websocket\r\n", 403),
        (f"POST {CHAT}#x", "", 400),
        (f"POST {CHAT}", "content-length: 5, 5\r\n", 400),
        (f"POST {CHAT}", "transfer-encoding: gzip, chunked\r\n", 501),
        ("POST https://gateway/sleep", "", 403),
        ("CONNECT gateway:443", "", 404),
        (f"POST {CHAT} HTTP/1.0", "", 426),
    ],
)
def test_what_envoy_itself_refuses_is_worded_as_the_api_words_its_errors(
    gateway: Gateway, router: Upstream, line: str, more: str, status: int
):
    head = f"{line}{'' if ' HTTP/' in line else ' HTTP/1.1'}\r\nhost: gateway:443\r\nauthorization: Bearer {gateway.key}\r\n{more}\r\n"
    answer = b""
    with socket.create_connection(("127.0.0.1", gateway.settings.gateway.http_port), timeout=10) as connection:
        connection.sendall(head.encode())
        while not answer.endswith(b"}") and (part := connection.recv(65536)):
            answer += part
    assert answer.startswith(f"HTTP/1.1 {status} ".encode()), answer[:200]
    assert json.loads(answer.partition(b"\r\n\r\n")[2])["error"]["code"]
    assert not router.seen


def test_a_request_that_names_two_hosts_reaches_nobody(gateway: Gateway, router: Upstream):
    body = json.dumps(ASK)
    head = f"POST {CHAT} HTTP/1.1\r\nhost: a\r\nhost: b\r\nauthorization: Bearer {gateway.key}\r\ncontent-length: {len(body)}"
    assert raw(gateway, f"{head}\r\n\r\n{body}".encode()).startswith(b"HTTP/1.1 400 ")
    assert not router.seen


def test_too_many_and_too_large_headers_are_refused(gateway: Gateway, router: Upstream):
    with gateway.client() as client:
        many = client.post(CHAT, json=ASK, headers={f"x-h{i}": "1" for i in range(80)})
        large = client.post(CHAT, json=ASK, headers={"x-large": "x" * 40_000})
    assert [many.status_code, large.status_code] == [431, 431]
    assert not router.seen


def test_a_client_that_sends_slowly_is_cut_off(make, router: Upstream):
    gateway = make(stack(gateway={"streamTimeoutSeconds": 1, "limits": {"headerSeconds": 1}}), {"chat": router.port})
    began = time.monotonic()
    head = f"POST {CHAT} HTTP/1.1\r\nhost: a\r\nauthorization: Bearer {gateway.key}\r\n"
    assert raw(gateway, head.encode(), wait=5).startswith(b"HTTP/1.1 408")
    assert raw(gateway, f"{head}content-length: 100\r\n\r\n{{".encode(), wait=5).startswith(b"HTTP/1.1 408")
    assert time.monotonic() - began < 6
    assert not router.seen


def test_a_keys_own_limit_answers_429_with_retry_after_and_leaves_other_keys_alone(make, router: Upstream):
    gateway = make(stack(keys=({**CLIENTS[0], "qps": 5}, CLIENTS[1])), {"chat": router.port})
    other = fake_key()
    gateway.write_keys([ClientKey("client", gateway.key), ClientKey("other", other)])
    with gateway.client(other) as client:
        wait_for(lambda: client.get("/v1/models").status_code == 200)
    with gateway.client() as client:
        answers = [client.post(CHAT, json=ASK) for _ in range(20)]
    refused = [answer for answer in answers if answer.status_code == 429]
    assert 10 <= sum(answer.status_code == 200 for answer in answers) <= 15
    assert code(refused[0]) == "rate_limit_exceeded"
    assert int(refused[0].headers["retry-after"]) >= 1
    assert refused[0].headers["x-ratelimit-limit"].startswith("10")
    with gateway.client(other) as client:
        free = [client.post(CHAT, json=ASK) for _ in range(20)]
    assert {answer.status_code for answer in free} == {200}
    assert not any("x-ratelimit-limit" in answer.headers for answer in free)


def test_a_flood_from_one_address_is_limited_before_its_key_is_looked_at(make, router: Upstream):
    gateway = make(stack(gateway={"limits": {"addressQps": 1, "addressBurst": 30}}), {"chat": router.port})
    with httpx.Client(base_url=gateway.url) as client:
        began = time.monotonic()
        statuses = [client.post(CHAT, json=ASK).status_code for _ in range(60)]
    assert set(statuses) == {401, 429}
    assert statuses.count(401) <= 31 + time.monotonic() - began


def test_limits_of_keys_change_without_a_restart(fresh: Gateway):
    fresh.write_config(stack(keys=({**CLIENTS[0], "qps": 1}, CLIENTS[1])))
    with fresh.client() as client:
        wait_for(lambda: client.get("/v1/models").status_code == 429)


def test_a_model_behind_kthenas_router_is_served_the_same_way(make, start):
    router = start(Upstream("kthena"))
    model = {**MODEL, "backend": "kthena"}
    gateway = make(stack(models=(model,), gateway={"kthenaRouter": f"127.0.0.1:{router.port}"}), {})
    with gateway.client() as client:
        assert client.post(CHAT, json=ASK).json()["choices"][0]["message"]["content"] == "from kthena"


def test_random_bodies_are_read_as_a_json_parser_reads_them(gateway: Gateway, router: Upstream):
    chance = random.Random(7)
    bodies = [_random_body(chance) for _ in range(300)]
    with gateway.client() as client:
        statuses = [client.post(CHAT, content=body.encode()).status_code for body in bodies]
    expected = [200 if _one_plain_model(body) else 400 for body in bodies]
    assert 60 < expected.count(200) < 240
    assert [body for body, status, wanted in zip(bodies, statuses, expected, strict=True) if status != wanted] == []


def _random_body(chance: random.Random) -> str:
    """A JSON object with one, no or two members `model` among others that look like it, now and then cut short."""
    look = ['"model"', "model", '\\"model\\":\\"x\\"', "{[", "]}", "\\\\", "\\u006d", ",", ":", " "]
    members = [f'"k{i}":"{"".join(chance.choices(look[1:], k=4))}"' for i in range(chance.randint(0, 3))]
    members += [f'"n{i}":{{"model":"x","l":[1,{{"model":2}}]}}' for i in range(chance.randint(0, 2))]
    members += ['"model":"chat"'] * chance.choices([0, 1, 2], [2, 6, 1])[0]
    chance.shuffle(members)
    blank = chance.choice(["", " ", "\n\t"])
    text = blank + "{" + f"{blank},{blank}".join(members) + blank + "}"
    return text[: chance.randrange(1, len(text))] if chance.random() < 0.15 else text


def _one_plain_model(body: str) -> bool:
    try:
        pairs = json.loads(body, object_pairs_hook=list)
    except json.JSONDecodeError:
        return False
    return [value for key, value in pairs if key == "model"] == ["chat"]
