"""Parser of object types: properties, index signatures, mapped types."""

from __future__ import annotations

from collections.abc import Callable

from formalm.languages.typescript import syntax_tree
from formalm.languages.typescript.lexer import refuse
from formalm.languages.typescript.token_cursor import TokenCursor

__all__ = ["read_object"]

ReadType = Callable[[TokenCursor], syntax_tree.Node]


def read_object(
    cursor: TokenCursor, read_type: ReadType
) -> syntax_tree.ObjectNode | syntax_tree.MappedNode:
    """Parses ``{…}``."""
    start = cursor.expect("{", "at the start of an object type").span[0]
    if _is_mapped(cursor):
        return _mapped(cursor, start, read_type)
    members: dict[str, syntax_tree.PropertyNode] = {}
    signatures = []
    while not cursor.is_next("}"):
        found = _part(cursor, read_type)
        if isinstance(found, syntax_tree.IndexSignature):
            signatures.append(found)
        elif found.name in members:
            refuse(cursor.source, found.span, f"the property {found.name!r} is declared twice")
        else:
            members[found.name] = found
        if cursor.accept(";") or cursor.accept(",") or cursor.peek().after_line:
            continue
        if not cursor.is_next("}"):
            cursor.expected("',', ';', a new line or '}' after a property")
    cursor.advance()
    return syntax_tree.ObjectNode(
        cursor.span_since(start), tuple(members.values()), tuple(signatures)
    )


def _is_mapped(cursor: TokenCursor) -> bool:
    ahead = 0
    if cursor.is_next("+", "-") and cursor.is_next("readonly", ahead=1):
        return True
    if cursor.is_next("readonly"):
        ahead = 1
    return cursor.is_next("[", ahead=ahead) and cursor.is_next("in", ahead=ahead + 2)


def _mapped(cursor: TokenCursor, start: int, read_type: ReadType) -> syntax_tree.MappedNode:
    if cursor.is_next("+", "-"):
        cursor.advance()
    cursor.accept("readonly")
    cursor.advance()
    name = cursor.name("a type parameter").text
    cursor.expect("in", "after the parameter of a mapped type")
    keys = read_type(cursor)
    if cursor.is_next("as"):
        cursor.unsupported(cursor.peek(), "renaming keys in a mapped type")
    cursor.expect("]", "after the keys of a mapped type")
    sign = cursor.advance() if cursor.is_next("+", "-") else None
    optional = None
    if sign is not None or cursor.is_next("?"):
        cursor.expect("?", "after the sign")
        optional = sign is None or sign.text == "+"
    cursor.expect(":", "after the keys of a mapped type")
    found = read_type(cursor)
    if not cursor.accept(";"):
        cursor.accept(",")
    cursor.expect("}", "after a mapped type")
    return syntax_tree.MappedNode(cursor.span_since(start), name, keys, found, optional)


def _part(
    cursor: TokenCursor, read_type: ReadType
) -> syntax_tree.PropertyNode | syntax_tree.IndexSignature:
    comment = cursor.peek().comment
    start = cursor.peek().span[0]
    if cursor.is_next("readonly") and not cursor.is_next(
        ":", "?", "(", "<", ",", ";", "}", ahead=1
    ):
        cursor.advance()
    if cursor.is_next("["):
        return _signature(cursor, start, read_type)
    name = _member_name(cursor)
    optional = cursor.accept("?") is not None
    if cursor.is_next("(", "<"):
        cursor.unsupported(cursor.peek(), "a method", "JSON has no functions")
    cursor.expect(":", f"and a type after the property {name!r}")
    found = read_type(cursor)
    return syntax_tree.PropertyNode(cursor.span_since(start), name, found, optional, comment)


def _member_name(cursor: TokenCursor) -> str:
    token = cursor.peek()
    if cursor.is_next("(", "<") or (cursor.is_next("new") and cursor.is_next("(", "<", ahead=1)):
        cursor.unsupported(token, "a call signature", "JSON has no functions")
    if cursor.is_next("get", "set") and cursor.peek(1).kind == "name":
        cursor.unsupported(token, "an accessor")
    if token.kind not in ("name", "string", "number"):
        cursor.expected("a property name")
    cursor.advance()
    if token.kind == "number" and not (
        token.text.isdigit() and str(int(token.text)) == token.text and len(token.text) < 16
    ):
        refuse(
            cursor.source,
            token.span,
            "numeric property names must be integers",
            hint="quote the name",
        )
    return token.text


def _signature(cursor: TokenCursor, start: int, read_type: ReadType) -> syntax_tree.IndexSignature:
    cursor.advance()
    if not (cursor.peek().kind == "name" and cursor.is_next(":", ahead=1)):
        cursor.unsupported(cursor.peek(), "a computed property name")
    cursor.advance()
    cursor.advance()
    key = read_type(cursor)
    cursor.expect("]", "after the key of an index signature")
    if cursor.is_next("?"):
        refuse(cursor.source, cursor.peek().span, "an index signature cannot be optional")
    cursor.expect(":", "after an index signature")
    return syntax_tree.IndexSignature(cursor.span_since(start), key, read_type(cursor))
