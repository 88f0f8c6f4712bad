"""What a client meets: keys, paths, models, sizes."""

from tests.envoy.gateway import Gateway
from tests.envoy.upstream import Upstream

CHAT = "/v1/chat/completions"
ASK = {"model": "chat", "messages": [{"role": "user", "content": "hello"}]}


def test_a_request_with_a_key_reaches_the_model_and_says_who_served_it(gateway: Gateway, router: Upstream):
    with gateway.client() as client:
        answer = client.post(CHAT, json=ASK)
    assert answer.status_code == 200
    assert answer.json()["choices"][0]["message"]["content"] == "from router"
    assert answer.headers["x-moonstack-served-by"] == "cluster/chat"
    assert answer.headers["x-request-id"]
    assert router.seen[0].path == CHAT
    assert "authorization" not in router.seen[0].headers
