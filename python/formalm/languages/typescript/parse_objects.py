"""Parser of object types: properties, index signatures, mapped types."""

from __future__ import annotations

from collections.abc import Callable

from formalm.languages.typescript import syntax_tree
from formalm.languages.typescript.lexer import refuse
from formalm.languages.typescript.token_cursor import Cursor

__all__ = ["read_object"]

ReadType = Callable[[Cursor], syntax_tree.Node]


def read_object(cursor: Cursor, read_type: ReadType) -> syntax_tree.ObjectOf | syntax_tree.Mapped:
    """Parses ``{…}``."""
    start = cursor.expect("{", "at the start of an object type").span[0]
    if _is_mapped(cursor):
        return _mapped(cursor, start, read_type)
    members: dict[str, syntax_tree.Member] = {}
    signatures = []
    while not cursor.sees("}"):
        found = _part(cursor, read_type)
        if isinstance(found, syntax_tree.Signature):
            signatures.append(found)
        elif found.name in members:
            refuse(cursor.source, found.span, f"the property {found.name!r} is declared twice")
        else:
            members[found.name] = found
        if cursor.took(";") or cursor.took(",") or cursor.look().after_line:
            continue
        if not cursor.sees("}"):
            cursor.expected("',', ';', a new line or '}' after a property")
    cursor.take()
    return syntax_tree.ObjectOf(cursor.since(start), tuple(members.values()), tuple(signatures))


def _is_mapped(cursor: Cursor) -> bool:
    ahead = 0
    if cursor.sees("+", "-") and cursor.sees("readonly", ahead=1):
        return True
    if cursor.sees("readonly"):
        ahead = 1
    return cursor.sees("[", ahead=ahead) and cursor.sees("in", ahead=ahead + 2)


def _mapped(cursor: Cursor, start: int, read_type: ReadType) -> syntax_tree.Mapped:
    if cursor.sees("+", "-"):
        cursor.take()
    cursor.took("readonly")
    cursor.take()
    name = cursor.name("a type parameter").text
    cursor.expect("in", "after the parameter of a mapped type")
    keys = read_type(cursor)
    if cursor.sees("as"):
        cursor.unsupported(cursor.look(), "renaming keys in a mapped type")
    cursor.expect("]", "after the keys of a mapped type")
    sign = cursor.take() if cursor.sees("+", "-") else None
    optional = None
    if sign is not None or cursor.sees("?"):
        cursor.expect("?", "after the sign")
        optional = sign is None or sign.text == "+"
    cursor.expect(":", "after the keys of a mapped type")
    found = read_type(cursor)
    if not cursor.took(";"):
        cursor.took(",")
    cursor.expect("}", "after a mapped type")
    return syntax_tree.Mapped(cursor.since(start), name, keys, found, optional)


def _part(cursor: Cursor, read_type: ReadType) -> syntax_tree.Member | syntax_tree.Signature:
    comment = cursor.look().comment
    start = cursor.look().span[0]
    if cursor.sees("readonly") and not cursor.sees(":", "?", "(", "<", ",", ";", "}", ahead=1):
        cursor.take()
    if cursor.sees("["):
        return _signature(cursor, start, read_type)
    name = _member_name(cursor)
    optional = cursor.took("?") is not None
    if cursor.sees("(", "<"):
        cursor.unsupported(cursor.look(), "a method", "JSON has no functions")
    cursor.expect(":", f"and a type after the property {name!r}")
    found = read_type(cursor)
    return syntax_tree.Member(cursor.since(start), name, found, optional, comment)


def _member_name(cursor: Cursor) -> str:
    word = cursor.look()
    if cursor.sees("(", "<") or (cursor.sees("new") and cursor.sees("(", "<", ahead=1)):
        cursor.unsupported(word, "a call signature", "JSON has no functions")
    if cursor.sees("get", "set") and cursor.look(1).kind == "name":
        cursor.unsupported(word, "an accessor")
    if word.kind not in ("name", "string", "number"):
        cursor.expected("a property name")
    cursor.take()
    if word.kind == "number" and not (
        word.text.isdigit() and str(int(word.text)) == word.text and len(word.text) < 16
    ):
        refuse(
            cursor.source,
            word.span,
            "numeric property names must be integers",
            hint="quote the name",
        )
    return word.text


def _signature(cursor: Cursor, start: int, read_type: ReadType) -> syntax_tree.Signature:
    cursor.take()
    if not (cursor.look().kind == "name" and cursor.sees(":", ahead=1)):
        cursor.unsupported(cursor.look(), "a computed property name")
    cursor.take()
    cursor.take()
    key = read_type(cursor)
    cursor.expect("]", "after the key of an index signature")
    if cursor.sees("?"):
        refuse(cursor.source, cursor.look().span, "an index signature cannot be optional")
    cursor.expect(":", "after an index signature")
    return syntax_tree.Signature(cursor.since(start), key, read_type(cursor))
