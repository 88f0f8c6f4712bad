"""Keys that ended, that don't say when they end, or that end before they begin."""

from datetime import UTC, datetime, timedelta

import pytest

from settings.errors import SettingsError
from settings.settings import Settings
from tests.unit.test_settings import dev


def stack(environment: str = "dev", **key) -> dict:
    keys = {"source": "config", "keys": [{"id": "app", "purpose": "client", "owner": "shop"} | key]}
    gateway = {"exposure": "internal", "tls": {"source": "secret"}}
    return dev() | {"environment": environment, "keys": keys, "gateway": gateway, "network": {}}


def day(days: int) -> str:
    return (datetime.now(UTC) + timedelta(days=days)).isoformat()


@pytest.mark.parametrize(
    ("values", "said"),
    [
        (
            stack(expires=day(-1)),
            "key app has expired; write the next version's end here, then rotate it: make rotate STACK=dev ID=app",
        ),
        (stack(notBefore=day(2), expires=day(1)), "must be after notBefore"),
        (stack("prod"), "moonstack:keys.keys[0].expires: is required in prod"),
    ],
)
def test_a_key_that_cannot_serve_is_refused_with_the_way_out(values, said):
    with pytest.raises(SettingsError, match="problem") as caught:
        Settings.from_mapping(values)
    assert said in str(caught.value)


@pytest.mark.parametrize("values", [stack(), stack(expires=day(1)), stack("prod", expires=day(30))])
def test_a_key_that_serves_is_accepted(values):
    assert Settings.from_mapping(values).keys.keys[0].id == "app"


def test_a_date_without_a_zone_counts_in_utc():
    key = Settings.from_mapping(stack(expires="2999-01-01")).keys.keys[0]
    assert key.expires == datetime(2999, 1, 1, tzinfo=UTC)


def test_a_running_stack_with_an_expired_key_can_be_looked_at_and_nothing_else_is_let_through():
    assert Settings.from_mapping(stack(expires=day(-1)), as_deployed=True).keys.keys[0].expires
    with pytest.raises(SettingsError, match="must be after notBefore"):
        Settings.from_mapping(stack(notBefore=day(2), expires=day(-1)), as_deployed=True)
