"""What every command line refuses of its options before anything is done."""

from pathlib import Path

import pytest
import typer

from local.completion import command_of
from settings.command_line import finite, stack_name, writable, writable_folder

MODULES = ("local", "smoke", "capacity", "policies", "rotation")


def options():
    """(command, parameter) of every command of ours."""
    for module in MODULES:
        root = command_of(module)
        for name, command in {"": root, **getattr(root, "commands", {})}.items():
            yield from (
                (f"{module} {name}", parameter) for parameter in command.params if parameter.opts[0].startswith("-")
            )


def test_every_number_every_stack_and_every_result_is_judged_before_the_run():
    every = list(options())
    numbers = {(c, p.opts[0]) for c, p in every if p.type_descriptor.annotation is float}
    stacks = {(c, p.opts[0]) for c, p in every if p.opts[0] in ("--stack", "--from", "--to")}
    files = {(c, p.opts[0]) for c, p in every if p.opts[0] in ("--json", "--html") and not p.is_flag}
    for judge, wanted, least in (("finite", numbers, 6), ("stack_name", stacks, 15), ("writable", files, 7)):
        judged = {(c, p.opts[0]) for c, p in every if p.callback and p.callback.__name__ == judge}
        assert (judged, len(wanted) >= least) == (wanted, True)


@pytest.mark.parametrize("name", ["dev", "prod", "x", "eu-west_1.b", None])
def test_a_stacks_name_is_one(name: str | None):
    assert stack_name(name) == name


@pytest.mark.parametrize("name", ["", "../../etc/passwd", "a/b", "..", "-x", "a b", "dev\n", "名", "x" * 101])
def test_what_is_no_stacks_name_is_refused_as_a_name(name: str):
    with pytest.raises(typer.BadParameter, match="is no stack's name"):
        stack_name(name)


def test_infinite_and_undefined_numbers_are_none():
    assert (finite(0.5), finite(None)) == (0.5, None)
    for number in (float("inf"), float("-inf"), float("nan")):
        with pytest.raises(typer.BadParameter, match="no finite number"):
            finite(number)


def test_a_file_is_written_into_a_folder_that_is_there_and_none_is_made(tmp_path: Path):
    (tmp_path / "file").touch()
    for path in (tmp_path / "new.json", tmp_path / "file", Path("-"), Path("new.json"), None):
        assert writable(path) == path
    for path in (tmp_path, tmp_path / "none" / "x.json", tmp_path / "file" / "x.json"):
        with pytest.raises(typer.BadParameter, match="can't be written"):
            writable(path)
    assert [each.name for each in tmp_path.iterdir()] == ["file"]


def test_a_folder_of_results_is_there_or_is_made_in_one_that_is(tmp_path: Path):
    (tmp_path / "file").touch()
    for path in (tmp_path, tmp_path / "new", None):
        assert writable_folder(path) == path
    for path in (tmp_path / "file", tmp_path / "none" / "new", tmp_path / "file" / "new"):
        with pytest.raises(typer.BadParameter, match="can't be made"):
            writable_folder(path)
