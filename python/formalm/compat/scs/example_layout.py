"""The layout of the example output in the readme of SCS, as a language.

A type without lists or objects in it takes one line, and any other a line per item::

    {
        "output": "some text",
        "array_output": [1, 2, 3],
        "nested_schema": [
            {"inner_output": "more text"},
            {"inner_output": "even more text"}
        ]
    }
"""

from __future__ import annotations

import json
from functools import reduce
from typing import Any

from formalm.errors import ArgumentError, LanguageError
from formalm.languages import JsonSchema, Language, StringLiteral, TypeScript
from formalm.languages.python_types.integer_spelling import URI as WHOLE_NUMBER

__all__ = ["example_layout"]

KNOWN = {"type", "properties", "required", "additionalProperties", "items", "anyOf", "enum"}
KNOWN |= {"const", "prefixItems", "minItems", "maxItems", "$ref"}

Node = dict[str, Any]


def example_layout(schema: str | TypeScript, *, indent: int = 4) -> Language:
    r"""Returns the JSON texts of a TypeScript type in the layout of the readme's example.

    Parameters
    ----------
    schema
        The type. It must not be recursive, and each value must be of a known type.
    indent
        Spaces per level.

    Raises
    ------
    LanguageError
        For a recursive type, and for ``any``, maps of lists or objects, and open objects of them.

    Examples
    --------
    >>> layout = example_layout("{ output: string, more?: []{ inner: number } }")
    >>> layout.shortest()
    b'{\n    "output": ""\n}'
    >>> layout.matches('{\n    "output": "",\n    "more": [\n        {"inner": 1}\n    ]\n}')
    True
    """
    if type(indent) is not int or indent < 0:
        raise ArgumentError(f"indent must be a non-negative integer, got {indent!r}")
    if isinstance(schema, str):
        schema = TypeScript(schema)
    if not isinstance(schema, TypeScript):
        raise ArgumentError(f"schema must be a TypeScript type, got {type(schema).__name__}")
    root = json.loads(schema.schema)
    definitions = root.get("$defs", {})
    whole = {WHOLE_NUMBER: definitions[WHOLE_NUMBER]} if WHOLE_NUMBER in definitions else {}
    return _Layout(indent, whole).language(_inlined(root, definitions, ()), 0)


def _inlined(node: Any, definitions: Node, inside: tuple[str, ...]) -> Any:
    """Returns a schema with its references replaced by what they refer to."""
    if isinstance(node, list):
        return [_inlined(one, definitions, inside) for one in node]
    if not isinstance(node, dict):
        return node
    reference = node.get("$ref")
    if isinstance(reference, str) and reference != WHOLE_NUMBER:
        name = reference.removeprefix("#/$defs/")
        if name in inside:
            raise LanguageError(f"the type must not be recursive in this layout, {name!r} is")
        return _inlined(definitions[name], definitions, (*inside, name))
    literal = ("enum", "const", "$defs")
    return {
        name: one if name in literal else _inlined(one, definitions, inside)
        for name, one in node.items()
        if name != "$defs"
    }


class _Layout:
    def __init__(self, indent: int, definitions: Node) -> None:
        self._indent = indent
        self._definitions = definitions

    def language(self, node: Node, level: int) -> Language:
        """Returns the texts of a type that begins on a line of a level."""
        _check_known(node)
        if _is_flat(node):
            schema = {**node, "$defs": self._definitions} if self._definitions else node
            return JsonSchema(schema, separators=(", ", ": "))
        if "anyOf" in node:
            return reduce(
                lambda one, other: one | other,
                (self.language(branch, level) for branch in node["anyOf"]),
            )
        if node.get("type") == "object":
            return self._object(node, level)
        if node.get("type") == "array" and ("prefixItems" in node or "items" in node):
            return self._array(node, level)
        raise LanguageError(
            f"each list must have a type of its items in this layout, got {json.dumps(node):.80}"
        )

    def _object(self, node: Node, level: int) -> Language:
        if node.get("additionalProperties") is not False:
            raise LanguageError("an object with a line per property must be closed in this layout")
        required = node.get("required", ())
        members: list[tuple[Language, bool]] = [
            (
                StringLiteral(json.dumps(name, ensure_ascii=False) + ": ")
                + self.language(one, level + 1),
                name in required,
            )
            for name, one in node.get("properties", {}).items()
        ]
        comma = StringLiteral("," + self._line(level + 1))
        branches = []
        # By the first property that is there; those before it are optional.
        for at, (first, needed) in enumerate(members):
            text = first
            for member, wanted in members[at + 1 :]:
                rest = comma + member
                text = text + (rest if wanted else rest.optional())
            branches.append(self._between("{", text, "}", level))
            if needed:
                return _either(branches)
        return _either([*branches, StringLiteral("{}")])

    def _array(self, node: Node, level: int) -> Language:
        comma = StringLiteral("," + self._line(level + 1))
        fixed = [self.language(one, level + 1) for one in node.get("prefixItems", ())]
        if fixed:
            if node.get("items") is not False or node.get("minItems") != len(fixed):
                raise LanguageError("a tuple must have a fixed length in this layout")
            text = reduce(lambda one, other: one + comma + other, fixed)
            return self._between("[", text, "]", level)
        item = self.language(node["items"], level + 1)
        return _either(
            [self._between("[", item + (comma + item).star(), "]", level), StringLiteral("[]")]
        )

    def _between(self, left: str, text: Language, right: str, level: int) -> Language:
        begin = StringLiteral(left + self._line(level + 1))
        return begin + text + StringLiteral(self._line(level) + right)

    def _line(self, level: int) -> str:
        return "\n" + " " * (self._indent * level)


def _either(languages: list[Language]) -> Language:
    return reduce(lambda one, other: one | other, languages)


def _check_known(node: Node) -> None:
    if not (set(node) <= KNOWN and {"type", "anyOf", "enum", "const", "$ref"} & set(node)):
        raise LanguageError(
            f"each value must be of a known type in this layout, got {json.dumps(node):.80}"
        )


def _is_scalar(node: Any) -> bool:
    if not isinstance(node, dict):
        return False
    if "anyOf" in node:
        return all(map(_is_scalar, node["anyOf"]))
    if "$ref" in node:
        return True
    values = node.get("enum", [node["const"]] if "const" in node else [])
    kinds = node.get("type", [])
    kinds = [kinds] if isinstance(kinds, str) else kinds
    if any(isinstance(value, dict | list) for value in values) or not (kinds or values):
        return False
    return not {"object", "array"} & set(kinds)


def _is_flat(node: Node) -> bool:
    """Returns whether no value of the type contains a list or an object."""
    if "anyOf" in node:
        return all(map(_is_flat, node["anyOf"]))
    if _is_scalar(node):
        return True
    inside = [*node.get("properties", {}).values(), *node.get("prefixItems", ())]
    inside += [node[name] for name in ("items", "additionalProperties") if node.get(name)]
    if node.get("additionalProperties", False) is True or node.get("items") is True:
        return False
    return node.get("type") in ("object", "array") and all(map(_is_scalar, inside))
