"""Conversion of schemas, types, structures and tool calls to and from plain data."""

from __future__ import annotations

from typing import Any

from formalm.errors import ArgumentError
from formalm.languages.data_reader import DataReader
from formalm.languages.json_schema.language import JsonSchema
from formalm.languages.json_schema.schema_options import OPTIONS
from formalm.languages.language import Language
from formalm.languages.special_tokens import SpecialToken
from formalm.languages.structure import CallFormat, Mark, Section, Structure, ToolCalls
from formalm.languages.typescript import TypeScript

__all__ = ["READERS", "WRITERS"]


#: Types of options that may differ from the type of their default.
KINDS: dict[str, type | tuple[type, ...]] = {
    "max_whitespace": int,
    "indent": (int, str),
    "separators": list,
    "formats": (bool, list),
    "max_depth": int,
}


def _options_data(language: JsonSchema) -> dict[str, Any]:
    options = {name: value for name, value in language.options.items() if value != OPTIONS[name]}
    return {name: list(one) if type(one) is tuple else one for name, one in options.items()}


def _options(table: DataReader) -> dict[str, Any]:
    given = [name for name in table.left if name in OPTIONS]
    return {name: table.take(name, KINDS.get(name, type(OPTIONS[name]))) for name in given}


def _schema_data(language: Any) -> dict[str, Any]:
    resources = [{"uri": uri, "schema": text} for uri, text in language.resources.items()]
    rest = {**_options_data(language), "resources": resources or None}
    return {"kind": "json_schema", "schema": language.schema, **rest}


def _schema(table: DataReader, _kind: str) -> Language:
    schemas = (str, dict, bool)
    resources = {}
    for where, value in table.items("resources", optional=True):
        one = DataReader(value, where)
        resources[one.take("uri", str)] = one.take("schema", schemas)
        one.close()
    return JsonSchema(table.take("schema", schemas), resources=resources, **_options(table))


def _typescript_data(language: Any) -> dict[str, Any]:
    text, root, closed, _ = language._written
    named = {"root": root, "closed": None if closed else False}
    return {"kind": "typescript", "text": text, **named, **_options_data(language)}


def _typescript(table: DataReader, _kind: str) -> Language:
    text, root = table.take("text", str), table.take("root", str, None)
    return TypeScript(text, root=root, closed=table.take("closed", bool, True), **_options(table))


def _mark_data(mark: Mark) -> object:
    """Returns a string unchanged, a special token as a table, and several marks as a list."""
    if isinstance(mark, tuple):
        return [_mark_data(one) for one in mark]
    return mark if isinstance(mark, str) else {"special": mark.name}


def _mark(value: object, where: str) -> Any:
    if isinstance(value, list):
        return tuple(_mark(one, f"{where}[{at}]") for at, one in enumerate(value))
    if isinstance(value, str):
        return value
    table = DataReader(value, where)
    token = SpecialToken(table.take("special", str))
    table.close()
    return token


def _take_mark(table: DataReader, key: str, default: Any = ...) -> Any:
    return _mark(table.take(key, (str, dict, list), default), f"{table.where}.{key}")


def _around_data(language: Structure) -> dict[str, Any]:
    return {
        "free": None if language.free else False,
        "reasoning": None if language.reasoning is None else [*map(_mark_data, language.reasoning)],
        "opened": True if language.opened else None,
        "max_reasoning_chars": language.max_reasoning_chars,
    }


def _around(table: DataReader) -> dict[str, Any]:
    marks = table.take("reasoning", list, None)
    where = f"{table.where}.reasoning"
    return {
        "minimum": table.take("minimum", int, 0),
        "maximum": table.take("maximum", int, None),
        "free": table.take("free", bool, True),
        "reasoning": None
        if marks is None
        else tuple(_mark(one, f"{where}[{at}]") for at, one in enumerate(marks)),
        "opened": table.take("opened", bool, False),
        "max_reasoning_chars": table.take("max_reasoning_chars", int, None),
    }


def _counts_data(minimum: int, maximum: int | None) -> dict[str, Any]:
    return {"minimum": minimum or None, "maximum": maximum}


def _structure_data(language: Any) -> dict[str, Any]:
    from formalm.languages.serialization import to_data

    sections = [
        {
            "trigger": _mark_data(one.trigger),
            "language": to_data(one.language),
            "end": _mark_data(one.end),
        }
        for one in language.sections
    ]
    counts = _counts_data(language.minimum, language.maximum)
    return {"kind": "structure", "sections": sections, **counts, **_around_data(language)}


def _structure(table: DataReader, _kind: str) -> Language:
    sections = []
    for where, value in table.items("sections"):
        one = DataReader(value, where)
        trigger, end = _take_mark(one, "trigger"), _take_mark(one, "end", "")
        sections.append(Section(trigger, one.language("language"), end))
        one.close()
    return Structure(sections, **_around(table))


def _tools_data(language: Any) -> dict[str, Any]:
    from formalm.languages.serialization import to_data

    tools, written, minimum, maximum, required = language._call
    return {
        "kind": "tool_calls",
        "tools": [{"name": name, "arguments": to_data(one)} for name, one in tools],
        "format": {
            key: _mark_data(value)
            for key, value in vars(written).items()
            if value is not None and value != ""
        },
        **_counts_data(minimum, maximum),
        "required": required,
        **_around_data(language),
    }


def _tools(table: DataReader, _kind: str) -> Language:
    tools: dict[str, Language] = {}
    for where, value in table.items("tools"):
        one = DataReader(value, where)
        name = one.take("name", str)
        if name in tools:
            raise ArgumentError(
                f"{where}.name must differ from those of the other tools, got {name!r:.60}"
            )
        tools[name] = one.language("arguments")
        one.close()
    written = DataReader(table.take("format", dict), f"{table.where}.format")
    texts = {name: _take_mark(written, name, "") for name in ("begin", "end")}
    separator = _take_mark(written, "separator") if "separator" in written.left else None
    chosen = CallFormat(_take_mark(written, "call"), separator=separator, **texts)
    written.close()
    required = table.take("required", str, None)
    return ToolCalls(tools, chosen, required=required, **_around(table))


WRITERS: dict[type, Any] = {
    JsonSchema: _schema_data,
    TypeScript: _typescript_data,
    Structure: _structure_data,
    ToolCalls: _tools_data,
}
READERS: dict[str, Any] = {
    "json_schema": _schema,
    "typescript": _typescript,
    "structure": _structure,
    "tool_calls": _tools,
}
