"""The clients' keys as Envoy reads them."""

import json
import secrets

import pytest

from rules.envoy_keys import EXHAUSTED, FILTER, ClientKey, client_keys, client_keys_file
from rules.fingerprint import fingerprint


def value() -> str:
    return "sk-" + secrets.token_hex(24)


def test_the_file_reads_back_as_the_same_keys():
    keys = [ClientKey("a", value()), ClientKey("b", value(), exhausted=True)]
    assert client_keys(client_keys_file(reversed(keys))) == keys


def test_the_resource_carries_the_name_of_the_filter():
    resource = json.loads(client_keys_file([ClientKey("a", value())]))["resources"][0]
    assert resource["name"] == FILTER


def test_two_values_of_one_id_are_both_valid():
    values = sorted([value(), value()])
    text = client_keys_file([ClientKey("a", one) for one in values])
    credentials = json.loads(text)["resources"][0]["typed_config"]["credentials"]
    assert [entry["client"] for entry in credentials] == [f"a@{fingerprint(one)[:8]}" for one in values]


def test_the_order_of_entries_does_not_change_the_file():
    keys = [ClientKey("b", value()), ClientKey("a", value())]
    assert client_keys_file(keys) == client_keys_file(reversed(keys))


def test_an_exhausted_key_gets_a_client_name_that_no_id_can_have():
    one = value()
    assert f'"a@{fingerprint(one)[:8]}{EXHAUSTED}"' in client_keys_file([ClientKey("a", one, exhausted=True)])


@pytest.mark.parametrize("bad", ["", "{} ", "{}\n", "Bearer {}", "{}\u00e9"])
def test_a_value_that_is_no_bare_key_is_refused_without_showing_it(bad: str):
    key = value()
    with pytest.raises(ValueError, match="key a: the value is empty or has blanks") as caught:
        client_keys_file([ClientKey("a", bad.format(key))])
    assert key not in str(caught.value)


def test_a_value_that_two_ids_share_is_refused_without_showing_it():
    key = value()
    with pytest.raises(ValueError, match="key b: its value is also the value of key a") as caught:
        client_keys_file([ClientKey("a", key), ClientKey("b", key)])
    assert key not in str(caught.value)


def test_a_key_shows_no_value_when_printed():
    key = value()
    assert key not in repr(ClientKey("a", key))


def test_another_file_is_refused():
    with pytest.raises(ValueError, match=r"not a keys\.yaml"):
        client_keys('{"resources": []}')
