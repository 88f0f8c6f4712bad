"""Texts that stand nowhere in an object, and that the kubelet or a shell makes of its parts."""

import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Any, Final

from policies.objects import Object
from policies.unknown import is_unknown
from policies.unwrap import Text

_REFERENCE: Final = re.compile(r"\$\(([\w.-]+)\)")
_HOPS: Final = 5
"""Variables of variables that are followed."""
_LIMIT: Final = 2**16
"""Characters of a composed text; variables of variables can multiply."""


def composed(one: Object) -> Iterator[Text]:
    """For each container: variables and arguments with `$(NAME)` put in as the kubelet does, and arguments side by side."""
    for pod in one.pods:
        for path, container in pod.containers():
            yield from _container(path, container)


def _container(path: str, container: Mapping[str, Any]) -> Iterator[Text]:
    entries = [entry for entry in _list(container.get("env")) if isinstance(entry, Mapping)]
    literals = {
        entry["name"]: entry["value"]
        for entry in entries
        if isinstance(entry.get("name"), str) and isinstance(entry.get("value"), str)
    }
    for index, entry in enumerate(_list(container.get("env"))):
        name = entry.get("name") if isinstance(entry, Mapping) else None
        if isinstance(name, str) and "$(" in literals.get(name, ""):
            yield Text(f"{path}.env[{index}].value", name, expanded(literals[name], literals), ("$(…)",))
    for field in ("command", "args"):
        items = [item for item in _list(container.get(field)) if isinstance(item, str)]
        halves = "\n".join(first + second for first, second in pairwise(items))
        for form in (" ".join(items), halves):
            if len(items) > 1 or "$(" in form:
                yield Text(f"{path}.{field}", "", expanded(form, literals), ("arguments together",))


def expanded(text: str, variables: Mapping[str, str]) -> str:
    """A text with every known `$(NAME)` replaced, a few variables deep."""
    for _ in range(_HOPS):
        further = _REFERENCE.sub(lambda match: variables.get(match[1], match[0]), text)[:_LIMIT]
        if further == text:
            break
        text = further
    return text


def _list(value: Any) -> Sequence[Any]:
    return value if not is_unknown(value) and isinstance(value, Sequence) and not isinstance(value, str) else ()
