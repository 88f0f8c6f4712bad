"""One finding of a rule, worded for the person who has to fix it."""

from collections.abc import Iterable
from dataclasses import dataclass, replace


@dataclass(frozen=True, slots=True)
class Problem:
    """What is wrong: the configuration path, the value found there, the limit it breaks, and the fix."""

    path: str
    value: object
    limit: str
    fix: str

    def under(self, prefix: str) -> "Problem":
        """The same problem with its path put below `prefix`."""
        return replace(self, path=f"{prefix}.{self.path}" if self.path else prefix)

    def line(self) -> str:
        """One line: path, value where there is one, limit, fix."""
        value = "" if self.value is None else f"{self.value!r}: "
        return f"{self.path}: {value}{self.limit}; {self.fix}"


def duplicates(path: str, names: Iterable[str], what: str) -> list[Problem]:
    """A problem for each name that occurs more than once in a list that must have unique names."""
    seen: set[str] = set()
    problems = []
    for index, name in enumerate(names):
        if name in seen:
            problems.append(
                Problem(f"{path}[{index}].name", name, f"a {what} of this name exists already", "rename one of them")
            )
        seen.add(name)
    return problems
