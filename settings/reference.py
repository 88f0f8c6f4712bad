"""The reference of all settings as Markdown, from the same schema that editors use."""

import json
import re
from collections.abc import Iterator
from typing import Any, Final

from rules.quantity import BYTES, CPU
from settings.schema import stack_file_schema

_HEAD: Final = """# Settings

Written by `python -m settings reference`; don't edit. These keys stand below `config:` in `Pulumi.<stack>.yaml`, the first table's with
`moonstack:` before them. Where no default is shown, the key is required. Unknown keys are refused. Rules across keys are told by
`python -m settings check Pulumi.<stack>.yaml`. Values of keys (`moonstack:keyValue-<id>`) are no settings: see [policies](policies.md).

An editor with a YAML language server completes and checks a stack file by `python -m settings schema > ~/moonstack.schema.json` and the
file's first line `# yaml-language-server: $schema=` with that path. DNS labels have at most 63 characters, model names 127. Quantities are
written as in Kubernetes: CPU as `500m` or `"8"`, from {cpu.least} to {cpu.most}; bytes as `3Gi`, from {bytes.least} to {bytes.most}.
"""
_TABLE: Final = "| key | type | default | limits | meaning |\n|---|---|---|---|---|"
_WORDS: Final = {"boolean": "true or false", "integer": "whole number", "number": "number", "string": "text"}
_LIMITS: Final = {
    "minimum": "at least {}",
    "exclusiveMinimum": "above {}",
    "maximum": "at most {}",
    "exclusiveMaximum": "below {}",
    "minItems": "at least {} items",
    "maxItems": "at most {} items",
    "minLength": "at least {} character(s)",
    "maxLength": "at most {} characters",
    "pattern": "`{}`",
}

Schema = dict[str, Any]


def reference() -> str:
    """docs/settings.md: one section a group, and one a nested mapping, each under the first key that leads to it."""
    return "\n".join([_HEAD.format(cpu=CPU, bytes=BYTES), *_Reference(stack_file_schema()).sections()])


class _Reference:
    def __init__(self, schema: Schema) -> None:
        self._definitions: Schema = schema["$defs"]
        config = schema["properties"]["config"]
        self._root: Schema = {
            "properties": {key.partition(":")[2]: group for key, group in config["properties"].items()},
            "required": [key.partition(":")[2] for key in config["required"]],
        }
        self._headings: dict[str, str] = {}

    def sections(self) -> Iterator[str]:
        """The sections in the order of the settings; headings are found first, so that rows can link to them."""
        self._find_headings("", self._root)
        yield self._table(self._root)
        for name, heading in self._headings.items():
            definition = self._definitions[name]
            level = "##" if re.fullmatch(r"\w+(\[\])?", heading) else "###"
            yield f"{level} {heading}\n\n{_cell(definition.get('description', ''))}\n"
            yield self._table(definition)

    def _find_headings(self, path: str, definition: Schema) -> None:
        for key, field in definition["properties"].items():
            for name, suffix in _nested(field):
                if name not in self._headings:
                    self._headings[name] = f"{path}{key}{suffix}"
                    self._find_headings(f"{path}{key}{suffix}.", self._definitions[name])

    def _table(self, definition: Schema) -> str:
        required = definition.get("required", [])
        rows = [self._row(key, field, key in required) for key, field in definition["properties"].items()]
        return "\n".join([_TABLE, *rows, ""])

    def _row(self, key: str, field: Schema, required: bool) -> str:
        meaning = field.get("description") or self._own_meaning(field)
        cells = (f"`{key}`", self._type(field), "" if required else _default(field), _limits(field), _cell(meaning))
        return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"

    def _own_meaning(self, field: Schema) -> str:
        return self._definitions[_name(field)].get("description", "") if "$ref" in field else ""

    def _type(self, field: Schema) -> str:
        if "$ref" in field:
            heading = self._headings[_name(field)]
            return f"[{heading}](#{anchor(heading)})"
        if "anyOf" in field:
            return " or ".join(self._type(each) for each in field["anyOf"] if each.get("type") != "null")
        if "enum" in field:
            return ", ".join(f"`{value}`" for value in field["enum"])
        if "const" in field:
            return f"`{field['const']}`"
        if field["type"] == "array":
            if "prefixItems" in field:
                return f"list of {len(field['prefixItems'])} × {self._type(field['prefixItems'][0])}"
            return f"list of {self._type(field['items'])}"
        if field["type"] == "object":
            return f"mapping to {self._type(field['additionalProperties'])}"
        return field.get("format") or _WORDS[field["type"]]


def anchor(heading: str) -> str:
    """The fragment that GitHub gives a heading."""
    return re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")


def _nested(field: Schema) -> Iterator[tuple[str, str]]:
    """Names of the mappings that a key holds, each with what is written between its path and their keys."""
    if "$ref" in field:
        yield _name(field), ""
    for each in field.get("anyOf", ()):
        yield from _nested(each)
    for key, suffix in (("items", "[]"), ("additionalProperties", ".*")):
        if isinstance(field.get(key), dict):
            yield from ((name, suffix + more) for name, more in _nested(field[key]))


def _name(field: Schema) -> str:
    return field["$ref"].rpartition("/")[2]


def _default(field: Schema) -> str:
    if "default" not in field:
        return "empty"  # a default factory: of mappings alone
    value = field["default"]
    if value is None:
        return "none"
    if value in ("", [], {}):
        return "empty"
    if isinstance(value, dict):
        return "see there"
    if isinstance(value, list) and isinstance(value[0], dict):
        return f"{len(value)} entries"
    text = value if isinstance(value, str) else json.dumps(value)
    return f"`{text}`"


def _limits(field: Schema) -> str:
    if "anyOf" in field:
        return "; ".join(dict.fromkeys(filter(None, (_limits(each) for each in field["anyOf"]))))
    if "format" in field or "prefixItems" in field:  # the type says it
        return ""
    own = [words.format(field[name]) for name, words in _LIMITS.items() if name in field]
    if "propertyNames" in field:
        keys = field["propertyNames"]
        own.append(
            "keys: " + (", ".join(f"`{name}`" for name in keys["enum"]) if "enum" in keys else keys["format"] + "s")
        )
    if "items" in field and (each := _limits(field["items"])):
        own.append(f"each {each}")
    return ", ".join(own)


def _cell(text: str) -> str:
    return " ".join(text.split())
