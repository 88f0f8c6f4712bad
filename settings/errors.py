"""Configuration errors, all at once, one line each: key path, value, limit, fix."""

import difflib
import re
from collections.abc import Iterable
from typing import Any, Final

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from rules import key_text
from rules.problem import Problem


class SettingsError(Exception):
    """The stack configuration is not usable; `problems` says where, why and what to do."""

    def __init__(self, problems: Iterable[Problem], source: str) -> None:
        self.problems = tuple(problems)
        self.source = source
        super().__init__(
            "\n".join([f"{len(self.problems)} problem(s) in {source}:", *(f"  {p.line()}" for p in self.problems)])
        )


_LONGEST_TEXT: Final = 200
"""Characters of a text, or bits of a number, that a problem shows."""
_USER_INFO: Final = re.compile(r"://.*@", re.DOTALL)
"""Up to the last @: a password with a slash in it is no URL any more, and a secret all the same."""

_FIX = {
    "missing": ("is required", "add it"),
    "greater_than": ("must be greater than {gt}", "raise it"),
    "greater_than_equal": ("must be at least {ge}", "raise it"),
    "less_than": ("must be less than {lt}", "lower it"),
    "less_than_equal": ("must be at most {le}", "lower it"),
    "literal_error": ("must be one of {expected}", "choose one of them"),
    "string_pattern_mismatch": ("must match {pattern}", "correct the spelling"),
    "string_too_long": ("must have at most {max_length} characters", "shorten it"),
    "string_too_short": ("must not be empty", "give a value"),
    "string_type": ("must be text", "put it in quotes"),
    "model_type": ("must be a mapping", "write its keys below it"),
    "dict_type": ("must be a mapping", "write its keys below it"),
    "tuple_type": ("must be a list", "write one item a line, each after a dash"),
    "int_type": ("must be a whole number", "write digits only"),
    "int_parsing": ("must be a whole number", "write digits only"),
    "int_from_float": ("must be a whole number", "round it"),
    "float_type": ("must be a number", "write digits"),
    "float_parsing": ("must be a number", "write digits"),
    "finite_number": ("must be a finite number", "write digits"),
    "bool_type": ("must be true or false", "write one of them"),
    "bool_parsing": ("must be true or false", "write one of them"),
    "url_type": ("must be a URL", "write it as https://host"),
    "url_parsing": ("must be a URL ({error})", "write it as https://host"),
    "url_scheme": ("must begin with one of {expected_schemes}", "write it as https://host"),
}


def from_pydantic(error: ValidationError, key: str, root: Any = None) -> list[Problem]:
    """Problems from a pydantic error; `key` is the configuration key that was parsed, e.g. `moonstack:models`."""
    return [_problem(detail, key, root) for detail in error.errors(include_url=False)]


def _problem(detail: ErrorDetails, key: str, root: Any) -> Problem:
    path = _path(key, detail["loc"])
    value: Any = detail["input"]
    kind = detail["type"]
    context = detail.get("ctx", {})
    if kind == "extra_forbidden":
        return Problem(path, brief(value), "is not a known key", _suggestion(detail["loc"], root))
    if kind == "missing":
        return Problem(path, None, "is required", "add it")
    if kind == "value_error":
        limit, _, fix = str(context["error"]).partition("; ")
        return Problem(path, brief(value), limit, fix or "correct it")
    if kind in _FIX:
        limit, fix = _FIX[kind]
        return Problem(path, brief(value), limit.format(**context), fix)
    return Problem(path, brief(value), detail["msg"][0].lower() + detail["msg"][1:], "correct the type or value")


def _path(key: str, location: tuple[int | str, ...]) -> str:
    path = key
    for part in location:
        if isinstance(part, str) and "[" in part:  # pydantic's name of a union's branch, no key of the user's
            continue
        path += f"[{part}]" if isinstance(part, int) else f".{part}"
    return path


def brief(value: Any) -> Any:
    """The value itself without what may be secret in it, or its kind and size if a line can't hold it."""
    if isinstance(value, str):
        shown = key_text.redact(_USER_INFO.sub("://…@", value), "…")
        return shown if len(shown) <= _LONGEST_TEXT else f"{shown[:_LONGEST_TEXT]}…"
    if isinstance(value, int) and value.bit_length() > _LONGEST_TEXT:
        return f"a number of {value.bit_length()} bits"
    if isinstance(value, dict | list | tuple) and _is_long(value):
        return f"{type(value).__name__} of {len(value)}"
    if isinstance(value, dict):
        return {brief(key): brief(one) for key, one in value.items()}
    if isinstance(value, list | tuple):
        return [brief(one) for one in value]
    return value


def _is_long(value: Any) -> bool:
    """Whether a collection takes more than 80 characters; stops there, however far YAML aliases multiply it."""
    room, left = 80, [value]
    while left and room >= 0:
        one = left.pop()
        if isinstance(one, dict):
            left += [*one, *one.values()]
        elif isinstance(one, list | tuple):
            left += one
        else:
            room -= len(str(brief(one)))
        room -= 2
    return room < 0


def _suggestion(location: tuple[int | str, ...], root: Any) -> str:
    known = sorted(_known_keys(location[:-1], root)) if root else []
    close = difflib.get_close_matches(str(location[-1]), known, n=1)
    if close:
        return f"did you mean {close[0]}?"
    return f"remove it; known here: {', '.join(known)}" if known else "remove it"


def _known_keys(location: tuple[int | str, ...], root: Any) -> set[str]:
    model = _inner_model(root)
    for part in location:
        if isinstance(part, int) or model is None:
            continue
        field = next((f for n, f in model.model_fields.items() if part in (n, f.alias)), None)
        model = _inner_model(field.annotation) if field else None
    return {field.alias or name for name, field in model.model_fields.items()} if model else set()


def _inner_model(annotation: Any) -> type[BaseModel] | None:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return annotation
    for argument in getattr(annotation, "__args__", ()):
        if found := _inner_model(argument):
            return found
    return None
