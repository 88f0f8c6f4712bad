"""What editors, the Pulumi CLI and the reference know of the settings."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import yaml
from typer.testing import CliRunner

from settings.__main__ import app
from settings.reference import reference
from settings.schema import project_config, stack_file_schema
from settings.settings import Settings

ROOT = Path(__file__).parents[2]
STACKS = sorted(ROOT.glob("Pulumi.*.yaml"))


def faults(document: Any) -> list[str]:
    validator = jsonschema.Draft202012Validator(stack_file_schema())
    return [error.json_path for error in validator.iter_errors(document)]


def stack(path: Path = ROOT / "Pulumi.dev.yaml") -> Any:
    return yaml.safe_load(path.read_text())


def described() -> Iterator[tuple[str, bool]]:
    schema = Settings.model_json_schema()
    for name, definition in {"Settings": schema, **schema["$defs"]}.items():
        for key, field in definition["properties"].items():
            yield f"{name}.{key}", "description" in field or "$ref" in field


def test_pulumis_project_file_declares_what_is_required():
    assert yaml.safe_load((ROOT / "Pulumi.yaml").read_text())["config"] == project_config()


@pytest.mark.parametrize("path", STACKS, ids=lambda path: path.name)
def test_the_schema_accepts_every_stack_file(path: Path):
    assert faults(stack(path)) == []


def test_the_schema_marks_unknown_keys_wrong_types_and_values_out_of_range():
    document = stack()
    document["config"]["moonstack:kvStor"] = {}
    document["config"]["moonstack:gateway"]["replica"] = 2
    document["config"]["moonstack:models"][0]["decode"]["replicas"] = "two"
    document["config"]["moonstack:smoke"]["warmOverColdTtft"] = 2
    assert sorted(faults(document)) == [
        "$.config",
        "$.config['moonstack:gateway']",
        "$.config['moonstack:models'][0].decode",
        "$.config['moonstack:smoke'].warmOverColdTtft",
    ]


def test_the_schema_allows_encrypted_key_values_and_refuses_plain_ones():
    document = stack()
    document["config"]["moonstack:keyValue-one"] = {"secure": "v1:abc"}
    document["config"]["aws:region"] = "eu-west-1"
    assert faults(document) == []
    document["config"]["moonstack:keyValue-two"] = "in plain"
    assert faults(document) == ["$.config['moonstack:keyValue-two']"]


def test_every_setting_has_a_meaning():
    assert [name for name, has_meaning in described() if not has_meaning] == []


def unbounded(path: str, field: dict[str, Any]) -> Iterator[str]:
    """Numbers below a field of the schema that may be as large as they like."""
    if field.get("type") in ("integer", "number") and not field.keys() & {"maximum", "exclusiveMaximum"}:
        yield path
    for each in (
        *field.get("anyOf", ()),
        *field.get("prefixItems", ()),
        field.get("items"),
        field.get("additionalProperties"),
    ):
        if isinstance(each, dict):
            yield from unbounded(path, each)


def test_every_number_has_a_largest_value():
    fields = {
        f"{name}.{key}": field
        for name, definition in stack_file_schema()["$defs"].items()
        for key, field in definition["properties"].items()
    }
    assert [path for name, field in fields.items() for path in unbounded(name, field)] == []


def test_the_reference_is_up_to_date():
    assert (ROOT / "docs" / "settings.md").read_text() == reference(), "run `python -m settings reference`"


def test_the_schema_is_printed_as_json():
    assert json.loads(CliRunner().invoke(app, ["schema"]).stdout) == stack_file_schema()


def test_check_says_the_problems_of_every_file_and_exits_with_2(tmp_path: Path):
    broken = tmp_path / "Pulumi.broken.yaml"
    document = stack()
    document["config"]["moonstack:gateway"]["replicas"] = 0
    broken.write_text(yaml.safe_dump(document))
    files = [str(broken), str(tmp_path / "Pulumi.none.yaml"), str(ROOT / "Pulumi.dev.yaml")]
    result = CliRunner().invoke(app, ["check", *files])
    assert result.exit_code == 2
    assert "moonstack:gateway.replicas: 0: must be at least 1" in result.stderr
    assert "no such stack file" in result.stderr
    assert result.stdout == f"{files[2]}: valid\n"


def test_check_of_valid_files_exits_with_0():
    assert CliRunner().invoke(app, ["check", *map(str, STACKS)]).exit_code == 0
