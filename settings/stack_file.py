"""YAML files of the user, and which keys of a stack file are not for other programs but misspelt ones of ours."""

import difflib
from collections.abc import Collection, Iterable
from pathlib import Path
from typing import Any, Final

import yaml

from rules.problem import Problem

NAMESPACE: Final = "moonstack"
CLOSE: Final = 0.85
"""How alike a foreign namespace must be to ours to count as misspelt: moonstak and Moonstack are, mooncake and kubernetes are not."""


class UnreadableError(Exception):
    """Why a file can't be read as YAML, in one line without the file's name."""


class _Loader(yaml.SafeLoader):
    """Refuses a key written twice, as Pulumi does: of two groups of one name, the first would silently be lost."""

    def compose_mapping_node(self, anchor: Any) -> yaml.MappingNode:
        node = super().compose_mapping_node(anchor)
        written = [key.value for key, _ in node.value if isinstance(key, yaml.ScalarNode)]
        if twice := next((key for key in written if written.count(key) > 1), None):
            raise yaml.MarkedYAMLError(problem=f"the key {twice} is written twice", problem_mark=node.start_mark)
        return node


def read_yaml(path: Path) -> Any:
    """A YAML file's content. Raises UnreadableError, also for what nests too deep; FileNotFoundError for no file."""
    try:
        return yaml.load(path.read_text(), Loader=_Loader)
    except FileNotFoundError:
        raise
    except OSError as error:
        raise UnreadableError((error.strerror or type(error).__name__).lower()) from None
    except (ValueError, RecursionError, yaml.YAMLError) as error:
        raise UnreadableError(" ".join(str(error).split())) from None


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
