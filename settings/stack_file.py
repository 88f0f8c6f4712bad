"""YAML files of the user, and which keys of a stack file are not for other programs but misspelt ones of ours."""

import difflib
from collections.abc import Collection, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, Final

import yaml
from yaml.reader import ReaderError

from rules.problem import Problem

NAMESPACE: Final = "moonstack"
CLOSE: Final = 0.85
"""How alike a foreign namespace must be to ours to count as misspelt: moonstak and Moonstack are, mooncake and kubernetes are not."""


class UnreadableError(Exception):
    """Why a file can't be read as YAML, in one line without the file's name."""


class Unquoted(str):
    """A text that YAML 1.1 takes for a date, or for a number of base 60, where it stands without quotes.

    Pulumi reads it otherwise than Python does, so neither reading is used.
    """

    __slots__ = ("line",)
    line: int

    def __new__(cls, text: str, line: int) -> "Unquoted":
        """The text as it is written, and the line that it stands in."""
        self = super().__new__(cls, text)
        self.line = line
        return self


class _Loader(yaml.SafeLoader):
    """Refuses a key written twice, as Pulumi does: of two groups of one name, the first would silently be lost."""

    def compose_mapping_node(self, anchor: Any) -> yaml.MappingNode:
        node = super().compose_mapping_node(anchor)
        written = [key.value for key, _ in node.value if isinstance(key, yaml.ScalarNode)]
        if twice := next((key for key in written if written.count(key) > 1), None):
            raise yaml.MarkedYAMLError(problem=f"the key {twice} is written twice", problem_mark=node.start_mark)
        return node

    def construct_object(self, node: yaml.Node, deep: bool = False) -> Any:
        if isinstance(node, yaml.ScalarNode):
            kind = node.tag.rpartition(":")[2]
            if kind == "timestamp" or (kind in ("int", "float") and ":" in node.value):
                return Unquoted(node.value, node.start_mark.line + 1)
        try:
            return super().construct_object(node, deep)
        except ValueError as error:
            raise yaml.MarkedYAMLError(problem=str(error), problem_mark=node.start_mark) from None


def read_yaml(path: Path) -> Any:
    """A YAML file's content. Raises UnreadableError, also for what nests too deep; FileNotFoundError for no file."""
    try:
        return yaml.load(path.read_bytes().decode(), Loader=_Loader)
    except FileNotFoundError:
        raise
    except OSError as error:
        raise UnreadableError((error.strerror or type(error).__name__).lower()) from None
    except UnicodeDecodeError as error:
        line = error.object.count(b"\n", 0, error.start) + 1
        raise UnreadableError(f"it is no UTF-8 text, line {line}") from None
    except RecursionError:
        raise UnreadableError("it nests too deep") from None
    except ReaderError as error:
        raise UnreadableError(f"holds the character U+{int(error.character):04X}, which YAML does not take") from None
    except yaml.MarkedYAMLError as error:
        raise UnreadableError(_told(error)) from None
    except (ValueError, yaml.YAMLError) as error:
        raise UnreadableError(" ".join(str(error).split())) from None


def _told(error: yaml.MarkedYAMLError) -> str:
    """What the parser says and where, in one line."""
    text = " ".join(" ".join(filter(None, (error.context, error.problem))).split())
    mark = error.problem_mark or error.context_mark
    return f"{text}, line {mark.line + 1}, column {mark.column + 1}" if mark else text


def unquoted_texts(path: str, value: Any) -> list[Problem]:
    """Every text below a key that needs quotes to be read as it is written."""
    found: list[Problem] = []
    left = [(path, value)]
    seen: set[int] = set()
    while left:
        at, one = left.pop()
        if isinstance(one, Unquoted):
            limit = f"is a date, a time or another number to YAML (line {one.line})"
            found.append(Problem(at, str(one), limit, "put it in quotes"))
        elif isinstance(one, dict | list) and id(one) not in seen:
            seen.add(id(one))
            parts = ((f".{key}", each) for key, each in one.items()) if isinstance(one, dict) else _items(one)
            left += [(f"{at}{part}", each) for part, each in parts]
    return found


def _items(values: list[Any]) -> Iterator[tuple[str, Any]]:
    return ((f"[{index}]", each) for index, each in enumerate(values))


def own(config: Mapping[Any, Any]) -> dict[str, Any]:
    """What a configuration holds under our namespace, by the name after it."""
    prefix = f"{NAMESPACE}:"
    return {str(key).removeprefix(prefix): value for key, value in config.items() if str(key).startswith(prefix)}


def groups_by_name(document: Mapping[Any, Any]) -> dict[str, Any]:
    """Groups by name, whether they are written as `nodePools` or `moonstack:nodePools`. Raises ValueError for one that is both."""
    prefix = f"{NAMESPACE}:"
    names = [str(key).removeprefix(prefix) for key in document]
    if twice := next((name for name in names if names.count(name) > 1), None):
        raise ValueError(f"{twice} is written twice, with and without {prefix}; remove one of them")
    return dict(zip(names, document.values(), strict=True))


def misplaced_keys(document: Collection[Any]) -> list[Problem]:
    """Keys of ours that stand beside `config` instead of below it, where nobody reads them."""
    return [
        Problem(str(key), None, "stands outside of config, so it is not read", "indent it, to stand below config")
        for key in document
        if str(key).partition(":")[0] == NAMESPACE
    ]


def misspelt_keys(keys: Iterable[str], groups: Collection[str]) -> list[Problem]:
    """Configuration keys without our namespace that seem to be meant for us: `moonstak:models`, or `models` alone."""
    problems = []
    for key in keys:
        namespace, colon, name = key.partition(":")
        if namespace == NAMESPACE and colon:
            continue
        if not colon:
            meant = difflib.get_close_matches(key, groups, n=1)
            fix = f"did you mean {NAMESPACE}:{meant[0]}?" if meant else f"write one of ours as {NAMESPACE}:<group>"
            problems.append(Problem(key, None, "has no namespace", fix))
        elif difflib.SequenceMatcher(None, namespace.lower(), NAMESPACE).ratio() >= CLOSE:
            problems.append(
                Problem(key, None, f"is not read: its namespace is {namespace}", f"did you mean {NAMESPACE}:{name}?")
            )
    return problems
