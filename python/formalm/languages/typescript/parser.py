"""Parser of TypeScript type expressions."""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal

from formalm.errors import LimitError
from formalm.languages.typescript import syntax_tree
from formalm.languages.typescript.lexer import refuse
from formalm.languages.typescript.parse_objects import read_object
from formalm.languages.typescript.token_cursor import MAX_DEPTH, Cursor

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


def read_type(cursor: Cursor) -> syntax_tree.Node:
    """Parses a whole type."""
    with cursor.deeper():
        found = _union(cursor)
    if cursor.sees("extends"):
        cursor.unsupported(cursor.look(), "a conditional type")
    return found


def _union(cursor: Cursor) -> syntax_tree.Node:
    return _joined(cursor, "|", _intersection, syntax_tree.Union)


def _intersection(cursor: Cursor) -> syntax_tree.Node:
    return _joined(cursor, "&", _operand, syntax_tree.Intersection)


def _joined(
    cursor: Cursor,
    sign: str,
    part: Callable[[Cursor], syntax_tree.Node],
    whole: type[syntax_tree.Union | syntax_tree.Intersection],
) -> syntax_tree.Node:
    """Parses operands with a sign between them, possibly also in front of the first."""
    start = cursor.look().span[0]
    cursor.took(sign)
    parts = [part(cursor)]
    while cursor.took(sign):
        parts.append(part(cursor))
    return parts[0] if len(parts) == 1 else whole(cursor.since(start), tuple(parts))


def _operand(cursor: Cursor) -> syntax_tree.Node:
    """Parses a type with its prefix and postfix operators."""
    word = cursor.look()
    following = cursor.look(1)
    prefixed = following.kind not in ("end", "punctuation") or following.text in "{[("
    if word.kind == "name" and prefixed and not following.after_line:
        if word.text == "readonly":
            cursor.take()
            with cursor.deeper():
                found = _operand(cursor)
            if not isinstance(found, syntax_tree.ArrayOf | syntax_tree.TupleOf):
                refuse(cursor.source, word.span, "readonly applies to arrays and tuples only")
            return found
        if word.text == "keyof":
            cursor.take()
            with cursor.deeper():
                of = _operand(cursor)
            return syntax_tree.KeysOf(cursor.since(word.span[0]), of)
        if word.text in UNSUPPORTED:
            cursor.unsupported(word, UNSUPPORTED[word.text])
    if word.kind == "punctuation" and word.text == "[" and cursor.sees("]", ahead=1):
        return _array_in_front(cursor)
    return _suffixes(cursor, _primary(cursor), word.span[0])


def _array_in_front(cursor: Cursor) -> syntax_tree.Node:
    """Parses ``[]T``, or ``[]``, the empty tuple, if no type follows on its line."""
    start = cursor.take().span[0]
    cursor.take()
    word = cursor.look()
    begins = word.kind in ("name", "number", "string", "template") or cursor.sees("{", "(", "[")
    if word.after_line or not begins:
        return _suffixes(cursor, syntax_tree.TupleOf(cursor.since(start), ()), start)
    with cursor.deeper():
        item = _operand(cursor)
    return syntax_tree.ArrayOf(cursor.since(start), item)


def _suffixes(cursor: Cursor, found: syntax_tree.Node, start: int) -> syntax_tree.Node:
    count = 0
    while cursor.sees("[") and not cursor.look().after_line:
        count += 1
        if count > MAX_DEPTH:
            raise LimitError("brackets after a type", count, MAX_DEPTH)
        cursor.take()
        if cursor.took("]"):
            found = syntax_tree.ArrayOf(cursor.since(start), found)
        else:
            key = read_type(cursor)
            cursor.expect("]", "after a property name")
            found = syntax_tree.Indexed(cursor.since(start), found, key)
        if cursor.sees("!", "?"):
            cursor.unsupported(cursor.look(), "a mark after a type")
    return found


def _primary(cursor: Cursor) -> syntax_tree.Node:
    word = cursor.look()
    if word.kind == "string":
        cursor.take()
        return syntax_tree.Fixed(word.span, word.text)
    if word.kind == "template":
        return _template(cursor)
    if word.kind == "number" or cursor.sees("-"):
        value = read_number(cursor)
        return syntax_tree.Fixed(cursor.since(word.span[0]), value)
    if word.kind == "name":
        return read_named(cursor)
    if cursor.sees("{"):
        return read_object(cursor, read_type)
    if cursor.sees("["):
        return _tuple(cursor)
    if cursor.sees("("):
        return _parenthesis(cursor)
    if cursor.sees("<"):
        cursor.unsupported(word, "a function type")
    cursor.expected("a type")


def read_number(cursor: Cursor) -> int | Decimal:
    """Parses a number, optionally signed, exactly as written."""
    sign = cursor.took("-")
    word = cursor.look()
    if word.kind != "number":
        cursor.expected("a number")
    cursor.take()
    text = word.text.replace("_", "")
    if text.endswith("n") and not text.startswith(("0x", "0X")):
        cursor.unsupported(word, "bigint", "JSON has only numbers; remove the n")
    value = _value(text)
    if value is None:
        refuse(cursor.source, word.span, f"{word.text!r} is not a JavaScript number")
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


def read_named(cursor: Cursor) -> syntax_tree.Named:
    """Parses ``A``, ``A.B``, ``A<B, C>``."""
    word = cursor.name("a type")
    if word.text in UNSUPPORTED:
        cursor.unsupported(word, UNSUPPORTED[word.text])
    name = word.text
    while cursor.took("."):
        name += "." + cursor.name("a member").text
    arguments = []
    if cursor.took("<"):
        arguments.append(read_type(cursor))
        while cursor.took(","):
            if cursor.sees(">"):
                break
            arguments.append(read_type(cursor))
        cursor.expect(">", "after type arguments")
    if cursor.sees("is") and not cursor.look().after_line:
        cursor.unsupported(cursor.look(), "a type predicate")
    return syntax_tree.Named(cursor.since(word.span[0]), name, tuple(arguments))


def _template(cursor: Cursor) -> syntax_tree.Node:
    word = cursor.take()
    if len(word.parts) == 1 and isinstance(word.parts[0], str):
        return syntax_tree.Fixed(word.span, word.parts[0])
    parts: list[str | syntax_tree.Node] = []
    for part in word.parts:
        if isinstance(part, str):
            parts.append(part)
        else:
            inner = Cursor(cursor.source, *part, depth=cursor.depth)
            parts.append(read_type(inner))
            if inner.look().kind != "end":
                inner.expected("'}' after the type")
    return syntax_tree.Template(word.span, tuple(parts))


def _parenthesis(cursor: Cursor) -> syntax_tree.Node:
    """Parses a type in parentheses; refuses function types by name."""
    named = cursor.look(1).kind == "name"
    parameters = cursor.sees(")", "...", ahead=1) or (
        named and cursor.sees(":", ",", "?", "=", ahead=2)
    )
    if parameters or (named and cursor.sees(")", ahead=2) and cursor.sees("=>", ahead=3)):
        cursor.unsupported(cursor.look(), "a function type", "JSON has no functions")
    cursor.take()
    found = read_type(cursor)
    cursor.expect(")", "after a type in parentheses")
    return found


def _tuple(cursor: Cursor) -> syntax_tree.Node:
    start = cursor.take().span[0]
    items: list[syntax_tree.Item] = []
    while not cursor.sees("]"):
        items.append(_item(cursor))
        if not cursor.took(","):
            break
    cursor.expect("]", "after the items of a tuple")
    return syntax_tree.TupleOf(cursor.since(start), tuple(items))


def _item(cursor: Cursor) -> syntax_tree.Item:
    """Parses a tuple item: ``A``, ``A?``, ``a: A``, ``a?: A``, ``...A``."""
    rest = cursor.took("...") is not None
    named = cursor.look().kind == "name" and (
        cursor.sees(":", ahead=1) or (cursor.sees("?", ahead=1) and cursor.sees(":", ahead=2))
    )
    optional = False
    if named:
        cursor.take()
        optional = cursor.took("?") is not None
        cursor.take()
    found = read_type(cursor)
    mark = cursor.look()
    if cursor.took("?"):
        if named:
            refuse(cursor.source, mark.span, "the '?' of a named item must follow its name")
        optional = True
    if optional and rest:
        refuse(cursor.source, mark.span, "a rest item cannot be optional")
    return syntax_tree.Item(found, optional, rest)
