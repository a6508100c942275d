"""Parser of TypeScript type expressions."""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal

from formalm.errors import LimitError
from formalm.languages.typescript import syntax_tree
from formalm.languages.typescript.lexer import refuse
from formalm.languages.typescript.parse_objects import read_object
from formalm.languages.typescript.token_cursor import MAX_DEPTH, TokenCursor

__all__ = ["read_number", "read_type"]

UNSUPPORTED = {
    "typeof": "typeof",
    "infer": "infer",
    "unique": "unique symbol",
    "asserts": "an assertion",
    "this": "the type 'this'",
    "new": "a constructor type",
    "abstract": "a constructor type",
    "import": "import",
}


def read_type(cursor: TokenCursor) -> syntax_tree.Node:
    """Parses a whole type."""
    with cursor.nested():
        found = _union(cursor)
    if cursor.is_next("extends"):
        cursor.unsupported(cursor.peek(), "a conditional type")
    return found


def _union(cursor: TokenCursor) -> syntax_tree.Node:
    return _joined(cursor, "|", _intersection, syntax_tree.UnionNode)


def _intersection(cursor: TokenCursor) -> syntax_tree.Node:
    return _joined(cursor, "&", _operand, syntax_tree.IntersectionNode)


def _joined(
    cursor: TokenCursor,
    sign: str,
    part: Callable[[TokenCursor], syntax_tree.Node],
    whole: type[syntax_tree.UnionNode | syntax_tree.IntersectionNode],
) -> syntax_tree.Node:
    """Parses operands with a sign between them, possibly also before the first."""
    start = cursor.peek().span[0]
    cursor.accept(sign)
    parts = [part(cursor)]
    while cursor.accept(sign):
        parts.append(part(cursor))
    return parts[0] if len(parts) == 1 else whole(cursor.span_since(start), tuple(parts))


def _operand(cursor: TokenCursor) -> syntax_tree.Node:
    """Parses a type with its prefix and postfix operators."""
    token = cursor.peek()
    following = cursor.peek(1)
    prefixed = following.kind not in ("end", "punctuation") or following.text in "{[("
    if token.kind == "name" and prefixed and not following.after_line:
        if token.text == "readonly":
            cursor.advance()
            with cursor.nested():
                found = _operand(cursor)
            if not isinstance(found, syntax_tree.ArrayNode | syntax_tree.TupleNode):
                refuse(cursor.source, token.span, "readonly applies to arrays and tuples only")
            return found
        if token.text == "keyof":
            cursor.advance()
            with cursor.nested():
                of = _operand(cursor)
            return syntax_tree.KeyofNode(cursor.span_since(token.span[0]), of)
        if token.text in UNSUPPORTED:
            cursor.unsupported(token, UNSUPPORTED[token.text])
    if token.kind == "punctuation" and token.text == "[" and cursor.is_next("]", ahead=1):
        return _array_in_front(cursor)
    return _suffixes(cursor, _primary(cursor), token.span[0])


def _array_in_front(cursor: TokenCursor) -> syntax_tree.Node:
    """Parses ``[]T``, or ``[]``, the empty tuple, if no type follows on its line."""
    start = cursor.advance().span[0]
    cursor.advance()
    token = cursor.peek()
    begins = token.kind in ("name", "number", "string", "template") or cursor.is_next("{", "(", "[")
    if token.after_line or not begins:
        return _suffixes(cursor, syntax_tree.TupleNode(cursor.span_since(start), ()), start)
    with cursor.nested():
        item = _operand(cursor)
    return syntax_tree.ArrayNode(cursor.span_since(start), item)


def _suffixes(cursor: TokenCursor, found: syntax_tree.Node, start: int) -> syntax_tree.Node:
    count = 0
    while cursor.is_next("[") and not cursor.peek().after_line:
        count += 1
        if count > MAX_DEPTH:
            raise LimitError("brackets after a type", count, MAX_DEPTH)
        cursor.advance()
        if cursor.accept("]"):
            found = syntax_tree.ArrayNode(cursor.span_since(start), found)
        else:
            key = read_type(cursor)
            cursor.expect("]", "after a property name")
            found = syntax_tree.IndexedAccess(cursor.span_since(start), found, key)
        if cursor.is_next("!", "?"):
            cursor.unsupported(cursor.peek(), "a mark after a type")
    return found


def _primary(cursor: TokenCursor) -> syntax_tree.Node:
    token = cursor.peek()
    if token.kind == "string":
        cursor.advance()
        return syntax_tree.LiteralNode(token.span, token.text)
    if token.kind == "template":
        return _template(cursor)
    if token.kind == "number" or cursor.is_next("-"):
        value = read_number(cursor)
        return syntax_tree.LiteralNode(cursor.span_since(token.span[0]), value)
    if token.kind == "name":
        return read_named(cursor)
    if cursor.is_next("{"):
        return read_object(cursor, read_type)
    if cursor.is_next("["):
        return _tuple(cursor)
    if cursor.is_next("("):
        return _parenthesis(cursor)
    if cursor.is_next("<"):
        cursor.unsupported(token, "a function type")
    cursor.expected("a type")


def read_number(cursor: TokenCursor) -> int | Decimal:
    """Parses a number, optionally signed, exactly as written."""
    sign = cursor.accept("-")
    token = cursor.peek()
    if token.kind != "number":
        cursor.expected("a number")
    cursor.advance()
    text = token.text.replace("_", "")
    if text.endswith("n") and not text.startswith(("0x", "0X")):
        cursor.unsupported(token, "bigint", "JSON has only numbers; remove the n")
    value = _value(text)
    if value is None:
        refuse(cursor.source, token.span, f"{token.text!r} is not a JavaScript number")
    return -value if sign else value


def _value(text: str) -> int | Decimal | None:
    """Returns the value of a number in the range of doubles; whole numbers as integers."""
    octal = len(text) > 1 and text[0] == "0" and text[1].isdigit()
    if octal or len(text) > 400:
        return None
    try:
        if text[:2].lower() in ("0x", "0o", "0b"):
            return int(text, 0)
        value = Decimal(text)
        if not -400 < value.adjusted() < 309:
            return None
        return int(value) if value == value.to_integral_value() else value
    except (ValueError, ArithmeticError):
        return None


def read_named(cursor: TokenCursor) -> syntax_tree.NamedNode:
    """Parses ``A``, ``A.B``, ``A<B, C>``."""
    token = cursor.name("a type")
    if token.text in UNSUPPORTED:
        cursor.unsupported(token, UNSUPPORTED[token.text])
    name = token.text
    while cursor.accept("."):
        name += "." + cursor.name("a member").text
    arguments = []
    if cursor.accept("<"):
        arguments.append(read_type(cursor))
        while cursor.accept(","):
            if cursor.is_next(">"):
                break
            arguments.append(read_type(cursor))
        cursor.expect(">", "after type arguments")
    if cursor.is_next("is") and not cursor.peek().after_line:
        cursor.unsupported(cursor.peek(), "a type predicate")
    return syntax_tree.NamedNode(cursor.span_since(token.span[0]), name, tuple(arguments))


def _template(cursor: TokenCursor) -> syntax_tree.Node:
    token = cursor.advance()
    if len(token.parts) == 1 and isinstance(token.parts[0], str):
        return syntax_tree.LiteralNode(token.span, token.parts[0])
    parts: list[str | syntax_tree.Node] = []
    for part in token.parts:
        if isinstance(part, str):
            parts.append(part)
        else:
            inner = TokenCursor(cursor.source, *part, depth=cursor.depth)
            parts.append(read_type(inner))
            if inner.peek().kind != "end":
                inner.expected("'}' after the type")
    return syntax_tree.TemplateNode(token.span, tuple(parts))


def _parenthesis(cursor: TokenCursor) -> syntax_tree.Node:
    """Parses a type in parentheses; refuses function types by name."""
    named = cursor.peek(1).kind == "name"
    parameters = cursor.is_next(")", "...", ahead=1) or (
        named and cursor.is_next(":", ",", "?", "=", ahead=2)
    )
    if parameters or (named and cursor.is_next(")", ahead=2) and cursor.is_next("=>", ahead=3)):
        cursor.unsupported(cursor.peek(), "a function type", "JSON has no functions")
    cursor.advance()
    found = read_type(cursor)
    cursor.expect(")", "after a type in parentheses")
    return found


def _tuple(cursor: TokenCursor) -> syntax_tree.Node:
    start = cursor.advance().span[0]
    items: list[syntax_tree.TupleItem] = []
    while not cursor.is_next("]"):
        items.append(_item(cursor))
        if not cursor.accept(","):
            break
    cursor.expect("]", "after the items of a tuple")
    return syntax_tree.TupleNode(cursor.span_since(start), tuple(items))


def _item(cursor: TokenCursor) -> syntax_tree.TupleItem:
    """Parses a tuple item: ``A``, ``A?``, ``a: A``, ``a?: A``, ``...A``."""
    rest = cursor.accept("...") is not None
    named = cursor.peek().kind == "name" and (
        cursor.is_next(":", ahead=1)
        or (cursor.is_next("?", ahead=1) and cursor.is_next(":", ahead=2))
    )
    optional = False
    if named:
        cursor.advance()
        optional = cursor.accept("?") is not None
        cursor.advance()
    found = read_type(cursor)
    mark = cursor.peek()
    if cursor.accept("?"):
        if named:
            refuse(cursor.source, mark.span, "the '?' of a named item must follow its name")
        optional = True
    if optional and rest:
        refuse(cursor.source, mark.span, "a rest item cannot be optional")
    return syntax_tree.TupleItem(found, optional, rest)
