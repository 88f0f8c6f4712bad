"""Large texts are searched whatever they are made of: a pattern that reads a text again from each of its places never ends."""

import pytest

from policies.checks.key_text import kinds
from policies.unwrap import texts

SIZE = 300_000
PIECES = {
    "a file in base64 on one line": "QUJD",
    "lines of base64": "Q" * 76 + "\n",
    "lines that go on": "Q" * 60 + "\\\n",
    "hexadecimal": "4142",
    "bytes apart": "41 ",
    "quoted-printable": "=41",
    "escapes": "\\x41",
    "entities": "&#65;",
    "sums of texts": '"a" + ',
    "quotes": "'a''b'",
    "assignments": "api_key value = ",
    "names": "a: ",
    "dots": "a.",
    "braces": "${a",
}


@pytest.mark.parametrize("piece", PIECES.values(), ids=PIECES)
def test_a_large_text_of_one_piece_is_searched_and_holds_no_key(piece: str):
    text = piece * (SIZE // len(piece))
    assert [kind for one in texts({"data": text}) for kind in kinds(one)] == []


def test_a_key_behind_a_large_text_is_found():
    key = "sk-" + "".join(f"{number:x}" for number in range(40))
    text = PIECES["a file in base64 on one line"] * (SIZE // 4) + f" {key}"
    assert any(kind for one in texts({"data": text}) for kind in kinds(one))
