"""Values that a preview can't know."""

from typing import Any, Final


class Unknown:
    """Stands where the engine will know the value only during `up`; any use but a test for it is `Undecided`."""

    def __init__(self, path: str = "") -> None:
        self.path = path
        """Where in the object it stands, if that is known."""

    def __repr__(self) -> str:
        return "(unknown until up)"

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        raise Undecided(self.path)

    def __iter__(self) -> Any:
        raise Undecided(self.path)

    def __len__(self) -> int:
        raise Undecided(self.path)

    def __bool__(self) -> bool:
        raise Undecided(self.path)

    def __getitem__(self, key: object) -> Any:
        raise Undecided(self.path)

    def __eq__(self, other: object) -> bool:
        raise Undecided(self.path)

    def __hash__(self) -> int:
        raise Undecided(self.path)


class Undecided(Exception):
    """A rule met an unknown value on its way: it is judged again once the value is known."""

    def __init__(self, path: str = "") -> None:
        super().__init__(path)
        self.path = path


UNKNOWN: Final = Unknown()


def is_unknown(value: object) -> bool:
    """Whether a value is unknown until `up`."""
    return isinstance(value, Unknown)


def known(value: Any) -> Any:
    """The value itself. Raises Undecided for an unknown one, which `is` would take for any other."""
    if isinstance(value, Unknown):
        raise Undecided(value.path)
    return value


def text(value: object) -> str:
    """A value as text, empty for none. Raises Undecided for an unknown one."""
    return "" if known(value) is None else str(value)
