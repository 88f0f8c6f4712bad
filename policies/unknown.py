"""Values that a preview can't know."""

from typing import Any, Final


class Unknown:
    """Stands where the engine will know the value only during `up`; any use but a test for it is `Undecided`."""

    def __repr__(self) -> str:
        return "(unknown until up)"

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        raise Undecided

    def __iter__(self) -> Any:
        raise Undecided

    def __len__(self) -> int:
        raise Undecided

    def __bool__(self) -> bool:
        raise Undecided

    def __getitem__(self, key: object) -> Any:
        raise Undecided

    def __eq__(self, other: object) -> bool:
        raise Undecided

    __hash__ = None  # pyright: ignore[reportAssignmentType]


class Undecided(Exception):
    """A rule met an unknown value on its way: it is judged again once the value is known."""


UNKNOWN: Final = Unknown()


def is_unknown(value: object) -> bool:
    """Whether a value is unknown until `up`."""
    return isinstance(value, Unknown)


def text(value: object) -> str:
    """A value as text, empty for none. Raises Undecided for an unknown one."""
    if is_unknown(value):
        raise Undecided
    return "" if value is None else str(value)
