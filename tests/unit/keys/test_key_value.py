"""Which texts pass as keys, and what a fingerprint tells."""

import secrets

import pytest

from rules import key_value
from rules.fingerprint import fingerprint


@pytest.mark.parametrize(
    "make",
    [
        lambda: "sk-" + secrets.token_hex(24),
        lambda: "sk-" + secrets.token_hex(16),
        lambda: secrets.token_urlsafe(32),
        lambda: "sk-ant-api03-" + secrets.token_urlsafe(40),
        lambda: "ms_live_" + secrets.token_hex(20),
    ],
)
def test_random_keys_of_every_usual_form_are_accepted(make):
    assert [key_value.fault(make()) for _ in range(50)] == [None] * 50


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        ("", "is empty"),
        ("Bearer " + "k" * 40, "carries its own 'Bearer '"),
        (" " + "k" * 40, "starts or ends with blanks"),
        ("k" * 40 + "\n", "line break"),
        ('"' + "k" * 40 + '"', "wrapped in quotes"),
        ("abc def", "has blanks"),
        ("sk-xxxx", "placeholder"),
        ("sk-1234", "placeholder"),
        ("<your-key>", "placeholder"),
        ("${TAOTOKEN_API_KEY}", "placeholder"),
        ("placeholder-channel", "placeholder"),
        ("sk-" + "ab" * 40, "bits of entropy"),
        ("sk-" + "0f9e8d7c6b5a4321" * 4, "bits of entropy"),
        ("Tr0ub4dor&3", "bits of entropy"),
    ],
)
def test_what_is_no_key_is_refused_with_the_reason(value, reason):
    assert reason in (key_value.fault(value) or "")


def test_the_reason_never_holds_the_value():
    value = "Bearer " + secrets.token_hex(24)
    assert value.removeprefix("Bearer ") not in (key_value.fault(value) or "")


def test_a_fingerprint_is_128_bits_stable_and_differs_between_keys():
    one, other = secrets.token_hex(24), secrets.token_hex(24)
    assert len(fingerprint(one)) == 32
    assert fingerprint(one) == fingerprint(one) != fingerprint(other)
    assert fingerprint("moonstack") == "0b6436bff03e61638ef46c676d08eb0e", (
        "lock files hold fingerprints: they may never change"
    )
