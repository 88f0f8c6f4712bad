"""Clients with a quota are counted whatever they ask and whenever they leave; what they get is what they asked for, byte by byte."""

import json
import math
import re
import threading

import pytest

from bench.simulated.gateway import Gateway
from tests.envoy.stacks import ASK, CHAT, CLIENTS, stack
from tests.envoy.upstream import Upstream
from tests.envoy.waiting import wait_for

KEYS = ({**CLIENTS[0], "tokensPerDay": 10_000}, CLIENTS[1])
STREAM = {**ASK, "stream": True}
WANTED = {"include_usage": True}
CONTENT = tuple(b'data: {"choices":[{"delta":{"content":"%d"}}]}\n\n' % index for index in range(3))
USAGE = b'data: {"id":"a\\/b","choices": [ ],"usage":{"prompt_tokens":21,"completion_tokens":5}}\n\n'
DONE = b"data: [DONE]\n\n"
WHOLE = (*CONTENT, USAGE, DONE)


@pytest.fixture
def router(start) -> Upstream:
    return start(Upstream("router", parts=WHOLE))


@pytest.fixture
def gateway(make, router: Upstream) -> Gateway:
    return make(stack(keys=KEYS), {"chat": router.port})


def text_of(gateway: Gateway, text: str, path: str = CHAT) -> bytes:
    with gateway.client() as client:
        return client.post(path, content=text).content


def counted(gateway: Gateway, served_by: str = "cluster/chat") -> dict[str, int]:
    """Tokens of the only client, by direction."""
    pattern = rf'envoy_moonstack_(\w+)_tokens\{{model="\w+",client="client",served_by="{served_by}"\}} (\d+)'
    return {direction: int(value) for direction, value in re.findall(pattern, gateway.metrics())}


def length(text: str) -> int:
    return math.ceil(len(text) / 4)


@pytest.mark.parametrize(
    ("options", "sent"),
    [
        (None, '{"stream_options":{"include_usage":true},"model"'),
        ('"stream_options":{}', '"stream_options":{"include_usage":true}}'),
        ('"stream_options":null', '"stream_options":{"include_usage":true}}'),
        ('"stream_options" : { "include_usage" : false }', '"stream_options" : { "include_usage" : true }}'),
        ('"stream_options":{"more":[{}],"include_usage":null}', '"stream_options":{"more":[{}],"include_usage":true}}'),
        ('"stream_options":{"more":"}"}', '"stream_options":{"include_usage":true,"more":"}"}}'),
    ],
)
def test_who_does_not_ask_for_the_usage_does_not_see_it_and_is_counted(gateway, router, options, sent):
    text = json.dumps(STREAM, separators=(",", ":"))
    if options:
        text = f"{text[:-1]},{options}}}"
    assert text_of(gateway, text) == b"".join((*CONTENT, DONE))
    body = router.seen[-1].body.decode()
    assert sent in body
    assert {**router.seen[-1].json, "stream_options": None} == {**json.loads(text), "stream_options": None}
    wait_for(lambda: counted(gateway) == {"prompt": 21, "completion": 5})


@pytest.mark.parametrize("options", [WANTED, "nonsense", {"include_usage": 1}])
def test_who_asks_or_writes_nonsense_gets_what_the_target_says(gateway, router, options):
    text = json.dumps({**STREAM, "stream_options": options})
    assert text_of(gateway, text) == b"".join(WHOLE)
    assert router.seen[-1].body.decode() == text
    wait_for(lambda: counted(gateway) == {"prompt": 21, "completion": 5})


def test_clients_without_a_quota_are_left_alone(make, router):
    gateway = make(stack(keys=(CLIENTS[0], {**CLIENTS[1], "tokensPerDay": 1})), {"chat": router.port})
    text = json.dumps(STREAM)
    assert text_of(gateway, text) == b"".join(WHOLE)
    assert router.seen[-1].body.decode() == text


KEPT = (
    b": a comment\r\n\r\n",
    b'data: {"choices":[{"delta":{"content":"\\"choices\\":[],\\"usage\\":{}"}}]}\n\n',
    b'event: x\r\ndata:{"choices":[],"usage":null}\r\n\r\n',
    b'data: {"choices":[{"delta":{},"finish_reason":"stop"}],"usage":{"prompt_tokens":21,"completion_tokens":5}}\n\n',
    b'data: {"choices":[],"filter":[{"usage":{}}]}\n\n',
    b'data: {"choices":[],"usage":{}',
)


@pytest.mark.parametrize("size", [1, 3, 7, 1000])
@pytest.mark.parametrize("end", [b"\n\n", b"\r\n\r\n"])
def test_all_but_the_usage_passes_byte_by_byte_however_it_is_cut(gateway, router, size, end):
    whole = b"".join((*KEPT[:-1], USAGE.replace(b"\n\n", end), b"\n", DONE, KEPT[-1]))
    router.parts = [whole[at : at + size] for at in range(0, len(whole), size)]
    router.chunk_gap = 0.001
    assert text_of(gateway, json.dumps(STREAM)) == b"".join((*KEPT[:-1], b"\n", DONE, KEPT[-1]))


def test_a_line_too_long_to_be_the_usage_passes_while_it_comes(gateway, router):
    begun = b'data: {"choices":[],"filler":"' + b"x" * 80_000
    router.parts = (begun, b'","usage":{}}\n\n', USAGE, DONE)
    router.go_on = threading.Event()
    with gateway.client() as client, client.stream("POST", CHAT, json=STREAM) as answer:
        came = b""
        for part in answer.iter_raw():
            came += part
            if len(came) >= len(begun):
                router.go_on.set()
    assert came == b"".join((*router.parts[:2], DONE))


def test_a_stream_that_hides_the_usage_is_not_held_back(gateway, router):
    """The target goes on only once the caller has what came before."""
    router.go_on = threading.Event()
    with gateway.client() as client, client.stream("POST", CHAT, json=STREAM) as answer:
        parts = answer.iter_raw()
        assert next(parts) == CONTENT[0]
        router.go_on.set()
        assert b"".join(parts) == b"".join((*CONTENT[1:], DONE))


@pytest.mark.parametrize("asked", [None, WANTED, {"include_usage": False}])
def test_who_leaves_in_the_middle_is_counted_by_events_and_by_the_prompts_length(gateway, router, asked):
    router.parts = (b"".join(CONTENT), *WHOLE)
    router.go_on = threading.Event()
    text = json.dumps({**STREAM, "stream_options": asked})
    with gateway.client() as client, client.stream("POST", CHAT, content=text) as answer:
        assert next(answer.iter_raw()) == b"".join(CONTENT)
    wait_for(lambda: counted(gateway) == {"prompt": length(text), "completion": 3})


@pytest.mark.parametrize("stream", [True, False])
def test_who_leaves_before_the_answer_begins_is_counted_by_the_prompts_length(gateway, router, stream):
    router.fault = "hang"
    text = json.dumps({**ASK, "stream": stream})
    with gateway.client() as client, pytest.raises(Exception, match="timed out"):
        client.post(CHAT, content=text, timeout=0.5)
    wait_for(lambda: counted(gateway) == {"prompt": length(text), "completion": 0})


def test_a_target_that_is_silent_about_its_usage_is_counted_too(world):
    this = world(keys=KEYS)
    this.channel.parts = (*CONTENT, DONE)
    this.router.fault = 503
    with this.gateway.client() as client:
        client.post(CHAT, json=STREAM)
    wait_for(lambda: counted(this.gateway, "channel/MiniMax-M2.5").get("completion") == 3)
    assert counted(this.gateway, "channel/MiniMax-M2.5")["prompt"] > 10


@pytest.mark.parametrize("fault", [500, 400])
def test_what_failed_is_not_counted(gateway, router, fault):
    router.fault = fault
    for body in (STREAM, ASK, {**STREAM, "model": "nobody"}):
        assert b"error" in text_of(gateway, json.dumps(body))
    wait_for(lambda: gateway.access_log().count('"path":"/v1/chat/completions"') >= 3)
    assert counted(gateway, ".*") == {}


def test_what_says_its_usage_is_counted_once_as_it_says(gateway):
    for body in (STREAM, ASK, {**STREAM, "stream_options": WANTED}):
        text_of(gateway, json.dumps(body))
    wait_for(lambda: counted(gateway) == {"prompt": 21 + 11 + 21, "completion": 5 + 7 + 5})


def test_answers_are_never_compressed_as_their_usage_could_not_be_read(make, start):
    router = start(Upstream("router", compress=True))
    gateway = make(stack(), {"chat": router.port})
    with gateway.client() as client:
        answer = client.post(CHAT, json=ASK, headers={"accept-encoding": "gzip"})
    assert "content-encoding" not in answer.headers
    wait_for(lambda: counted(gateway) == {"prompt": 11, "completion": 7})
