"""Text that looks like a key: the formats of known providers, tokens, private keys, and random text in fields named like keys."""

import base64
import binascii
import math
import re
import unicodedata
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Final

from rules.key_names import may_name_a_key, names_a_key
from rules.key_value import is_placeholder

_START: Final = r"(?:(?<![A-Za-z0-9_])|(?<=\\[bfnrt]))"
"""Not in the middle of a word; a written escape such as \\n is no word."""


@dataclass(frozen=True, slots=True)
class KeyText:
    """Where in a text something looks like a key, and like which; the text itself is never carried along."""

    kind: str
    start: int
    end: int


_FORMATS: Final[tuple[tuple[str, str], ...]] = (
    ("a private key", r"-----BEGIN (?:[A-Z0-9]+ )*PRIVATE KEY(?: BLOCK)?-----(?:\\[rn]|\s)*(?=[A-Za-z0-9+/]|\Z)"),
    ("a provider key (sk-…)", _START + r"sk-[A-Za-z0-9_-]{16,}"),
    ("an AWS access key id", _START + r"(?:AKIA|ASIA)[0-9A-Z]{16}(?![0-9A-Za-z])"),
    ("a GitHub token", _START + r"(?:gh[pousr]_[A-Za-z0-9]{36,}|github_pat_[A-Za-z0-9_]{22,})"),
    ("a GitLab token", _START + r"glpat-[A-Za-z0-9_-]{20,}"),
    ("a Hugging Face token", _START + r"hf_[A-Za-z0-9]{30,}"),
    ("an NVIDIA API key", _START + r"nvapi-[A-Za-z0-9_-]{32,}"),
    ("a Groq key", _START + r"gsk_[A-Za-z0-9]{32,}"),
    ("a Google API key", _START + r"AIza[0-9A-Za-z_-]{35}"),
    ("a Slack token", _START + r"xox[abeoprs]-[A-Za-z0-9-]{10,}"),
    ("a package registry token", _START + r"(?:npm_[A-Za-z0-9]{36}|pypi-[A-Za-z0-9_-]{50,})"),
    ("a Pulumi token", _START + r"pul-[0-9a-f]{40}"),
    ("a Vault token", _START + r"hv[sb]\.[A-Za-z0-9_-]{24,}"),
    ("a JSON Web Token", _START + r"eyJ[A-Za-z0-9_-]{10,}\.eyJ[A-Za-z0-9_-]{10,}\.[A-Za-z0-9_-]{10,}"),
    ("a bearer token", r"(?i:bearer)\s+(?=[A-Za-z0-9._~+/-]*[0-9])[A-Za-z0-9._~+/-]{20,}={0,2}"),
    ("basic credentials", r"(?i:basic)\s+(?P<basic>[A-Za-z0-9+/]{12,}={0,2})"),
    ("a URL with a password", r"[a-z][a-z0-9+.-]{1,20}://(?P<user>[^/\s:@'\"]*)(?::(?P<password>[^/\s:@'\"]{3,}))?@"),
)
_ANY: Final = re.compile("|".join(f"(?P<f{number}>{pattern})" for number, (_, pattern) in enumerate(_FORMATS)))

_ASSIGNMENT: Final = re.compile(
    r"""(?<![A-Za-z0-9_])(?P<name>[A-Za-z][A-Za-z0-9_.-]{2,60})\\?["']?(?P<how>\s*[:=]\s*|(?<=["'])\s*,\s*|>|\s+value\s*=\s*|[ \t]+)"""
    r"""(?=\\?["']?(?P<value>[^\s"',;&<{}\[\]\\]{16,}))"""
)
"""A name and its value; the value is not consumed, as it may be the name of the next one (`set_header X-Api-Key value`)."""
_TAIL: Final = re.compile(r"[A-Za-z0-9]{5,10}")
"""What generators append to names: a hash of Kustomize (10), of Secrets Manager (6), of a ReplicaSet (10)."""
_NAME_OF_WORDS: Final = re.compile(r"sk(?:-[a-z]{2,15}){2,}")
_REFERENCE: Final = re.compile(r"(?:\$\([\w.-]+\)|\$\{[^}]*\}|\$[A-Za-z_]\w*|\{\{[^}]*\}\}|\{\w*\}|%\(\w+\)s|<[^>]*>)+")
"""What stands for a value that comes from elsewhere: $(NAME) as the kubelet reads it, ${NAME}, {{ name }}."""
_WORD: Final = re.compile(r"[A-Za-z]{1,20}[0-9]{0,3}|[0-9]{1,4}|v[0-9]+[a-z]+[0-9]+")
_RANDOM: Final = re.compile(r"[A-Za-z0-9+/_=.~-]{16,}")
_HEX: Final = re.compile(r"[0-9a-f]+|[0-9A-F]+")


def find(text: str) -> Iterator[KeyText]:
    """Everything in a text that has a known key's format, and random values assigned to names such as `api_key`.

    Stand-ins such as `sk-xxxx` don't count.
    """
    for match in _ANY.finditer(text):
        kind = _FORMATS[int((match.lastgroup or "f0")[1:])][0]
        if _PROOFS.get(kind, _is_no_stand_in)(match):
            yield KeyText(kind, match.start(), match.end())
    for match in _ASSIGNMENT.finditer(text):
        named = may_name_a_key if match["how"].strip() else names_a_key
        if named(match["name"]) and looks_random(match["value"]):
            yield KeyText(f"a random value named {match['name']}", match.start("value"), match.end("value"))


def _is_no_stand_in(match: re.Match[str]) -> bool:
    return not is_placeholder(match[0])


def _is_provider_key(match: re.Match[str]) -> bool:
    return not is_placeholder(match[0]) and not _NAME_OF_WORDS.fullmatch(match[0])


def _opens_a_url(match: re.Match[str]) -> bool:
    """A password that is no reference; a user without one counts when it is random, as tokens stand there too."""
    if (password := match["password"]) is None:
        return looks_random(match["user"])
    return not _REFERENCE.fullmatch(password) and not is_placeholder(password)


def _are_credentials(match: re.Match[str]) -> bool:
    try:
        return b":" in base64.b64decode(match["basic"], validate=True)[1:-1]
    except binascii.Error:
        return False


_PROOFS: Final[dict[str, Callable[[re.Match[str]], bool]]] = {
    "a provider key (sk-…)": _is_provider_key,
    "basic credentials": _are_credentials,
    "a URL with a password": _opens_a_url,
}
"""What must hold beside the format; of all others, that it is no stand-in."""


def is_reference(value: str) -> bool:
    """Whether a value is nothing but references, perhaps after `Bearer` or `Basic`."""
    return bool(_REFERENCE.fullmatch(re.sub(r"^(?i:bearer|basic)\s+", "", value)))


def readable(text: str) -> str:
    """The text as a reader would type it: full-width letters narrow, hyphens plain, and nothing invisible in between."""
    if text.isascii():
        return text
    typed = unicodedata.normalize("NFKC", text)
    return "".join(
        "-" if kind == "Pd" else letter for letter in typed if (kind := unicodedata.category(letter)) != "Cf"
    )


def looks_random(value: str) -> bool:
    """Whether a value is one word of at least 16 characters with letters and digits mixed as in random text.

    Threshold: 3.2 bits a character by frequency, which names, paths and versions don't reach. Hex has less to choose from:
    six different digits are enough, which all but one in 10,000 random texts of 16 have.
    """
    if (
        not _RANDOM.fullmatch(value)
        or value.startswith(("/", "."))
        or is_placeholder(value)
        or _hides_a_stand_in(value)
    ):
        return False
    if not re.search(r"[0-9]", value) or not re.search(r"[A-Za-z]", value) or _is_words(value):
        return False
    if _HEX.fullmatch(value):
        return len(set(value)) >= 6
    counts = Counter(value).values()
    return -sum(n / len(value) * math.log2(n / len(value)) for n in counts) >= 3.2


def redact(text: str, mark: str = "[redacted]") -> str:
    """The text with everything that `find` finds replaced."""
    if any(find(typed := readable(text))) and not any(find(text)):
        text = typed
    for found in sorted(find(text), key=lambda one: one.start, reverse=True):
        text = text[: found.start] + mark + text[found.end :]
    return text


def _hides_a_stand_in(value: str) -> bool:
    """Base64 of a stand-in, as Envoy's configuration dump shows bytes that it keeps to itself: `[redacted]`."""
    try:
        return is_placeholder(base64.b64decode(value, validate=True).decode("ascii"))
    except ValueError:
        return False


def _is_words(value: str) -> bool:
    """Names such as gateway-client-keys-2: parts of letters or short numbers, joined by hyphens, dots or slashes.

    The last part may be what a generator appended: under 60 bits, while a key has 128.
    """
    *parts, last = [part for part in re.split(r"[-_./]+", value) if part]
    words = all(_WORD.fullmatch(part) for part in parts)
    return words and bool(_WORD.fullmatch(last) or (parts and _TAIL.fullmatch(last)))
