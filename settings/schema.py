"""The settings as machines read them: a JSON schema of stack files for editors, and what Pulumi.yaml declares."""

from typing import Any

from settings.secret_values import KEY_VALUE_PREFIX
from settings.settings import NAMESPACE, Settings


def stack_file_schema() -> dict[str, Any]:
    """The JSON schema of a Pulumi.<stack>.yaml, with the meaning of each key.

    Rules across keys are not in it: `python -m settings check` tells them.
    """
    settings = Settings.model_json_schema()
    group_of = f"{NAMESPACE}:{{}}".format
    config = {
        "type": "object",
        "properties": {group_of(key): group for key, group in settings["properties"].items()},
        "patternProperties": {
            f"^{NAMESPACE}:{KEY_VALUE_PREFIX}": {
                "type": "object",
                "properties": {"secure": {"type": "string"}},
                "required": ["secure"],
                "description": "A key's value, encrypted: set it with `pulumi config set --secret`.",
            },
            f"^(?!{NAMESPACE}:)": {},
        },
        "additionalProperties": False,
        "required": [group_of(key) for key in settings["required"]],
    }
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "A stack of Moonstack",
        "type": "object",
        "properties": {"config": config},
        "required": ["config"],
        "$defs": settings["$defs"],
    }


def project_config() -> dict[str, Any]:
    """What Pulumi.yaml declares: type and meaning of each required key.

    Pulumi refuses a stack that lacks a declared key without a default, and defaults stand in the settings alone;
    so optional keys are not declared.
    """
    settings = Settings.model_json_schema()
    return {
        f"{NAMESPACE}:{key}": _declaration(settings["properties"][key], settings["$defs"])
        for key in settings["required"]
    }


def _declaration(field: dict[str, Any], definitions: dict[str, Any]) -> dict[str, Any]:
    kind = "object" if "$ref" in field else field["type"]
    items = {"items": {"type": "object"}} if kind == "array" else {}
    return {"type": kind, **items, "description": field["description"]}
