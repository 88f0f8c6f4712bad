"""What stands in the comments of a YAML file: no parser gives it, and git keeps a key there as well as anywhere."""

from collections.abc import Iterator

import yaml

from policies.unwrap import LOADER


def comments(text: str) -> Iterator[tuple[int, str]]:
    """Line and text of each block of comments, without its marks; nothing of a text that is no YAML, which is refused elsewhere.

    A comment is what stands between two tokens, so a `#` inside a value is none.
    """
    if "#" not in text:
        return
    block: list[str] = []
    first = 0
    for line, comment in _lines(text):
        if block and line != first + len(block):
            yield first, "\n".join(block)
            block = []
        first = line if not block else first
        block.append(comment)
    if block:
        yield first, "\n".join(block)


def _lines(text: str) -> Iterator[tuple[int, str]]:
    end, counted, number = 0, 0, 1
    for start, following in _tokens(text):
        number, counted = number + text.count("\n", counted, end), end
        for offset, line in enumerate(text[end:start].split("\n")):
            mark = line.find("#")
            if mark >= 0:
                yield number + offset, line[mark:].lstrip("#").removeprefix(" ")
        end = max(end, following)


def _tokens(text: str) -> Iterator[tuple[int, int]]:
    """Where each token begins and ends, and the end of the text."""
    try:
        for token in yaml.scan(text, Loader=LOADER):
            yield token.start_mark.index, token.end_mark.index
    except (yaml.YAMLError, ValueError, RecursionError):
        return
    yield len(text), len(text)
