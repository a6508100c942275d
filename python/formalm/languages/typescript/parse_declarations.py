"""Parser of TypeScript declarations: interfaces, type aliases, enums, and a type by itself."""

from __future__ import annotations

from formalm.languages.typescript import syntax_tree
from formalm.languages.typescript.lexer import Token, refuse
from formalm.languages.typescript.parse_objects import read_object
from formalm.languages.typescript.parser import read_named, read_number, read_type
from formalm.languages.typescript.token_cursor import TokenCursor

__all__ = ["BUILT_IN", "read_module"]

OTHERS = "import namespace module class function async let var abstract global".split()

#: Names that a declaration cannot take.
BUILT_IN = frozenset(
    "string number integer boolean null undefined void never any unknown object bigint symbol true"
    " false Array ReadonlyArray Record Partial Required Readonly Pick Omit NonNullable Exclude"
    " Extract".split()
) - {"integer"}


def read_module(source: str) -> syntax_tree.Module:
    """Parses declarations, and the type that the text stands for if it is written by itself.

    Raises
    ------
    LanguageError
        With line and column, for invalid TypeScript and for unsupported constructs.
    LimitError
        For types nested too deeply.
    """
    cursor = TokenCursor(source)
    declared: dict[str, syntax_tree.Declaration] = {}
    found: syntax_tree.Node | None = None
    while cursor.peek().kind != "end":
        if cursor.accept(";"):
            continue
        start = cursor.peek()
        comment = start.comment
        is_default = False
        if cursor.is_next("export") and cursor.peek(1).kind != "end":
            cursor.advance()
            is_default = cursor.accept("default") is not None
            if cursor.is_next("{", "*", "="):
                cursor.unsupported(cursor.peek(), "an export of names declared elsewhere")
        if cursor.is_next("declare") and cursor.peek(1).kind == "name":
            cursor.advance()
        one = _declaration(cursor, comment)
        if one is None:
            whole = read_type(cursor)
        else:
            if one.name in declared:
                refuse(source, one.span, f"{one.name} is declared twice")
            if one.name in BUILT_IN:
                refuse(source, one.span, f"{one.name} is the name of a built-in TypeScript type")
            declared[one.name] = one
            whole = syntax_tree.NamedNode(one.span, one.name)
        if one is None or is_default:
            if found is not None:
                refuse(source, start.span, "two types could be the root")
            found = whole
        _statement_ends(cursor, one)
    return syntax_tree.Module(source, declared, found)


def _statement_ends(cursor: TokenCursor, one: syntax_tree.Declaration | None) -> None:
    """Checks that a statement ends with a brace, a line break or ';'."""
    braced = one is not None and cursor.source[cursor.span_since(0)[1] - 1] == "}"
    token = cursor.peek()
    if not (cursor.accept(";") or token.after_line or braced):
        cursor.expected("';' or a new line after a type")


def _declaration(cursor: TokenCursor, comment: str | None) -> syntax_tree.Declaration | None:
    """Parses a declaration; returns None if a type by itself follows."""
    token = cursor.peek()
    if cursor.is_next("const") and cursor.is_next("enum", ahead=1):
        cursor.advance()
    elif cursor.is_next(*OTHERS, "const") and cursor.peek(1).kind != "end":
        cursor.unsupported(token, token.text, "declare interfaces, type aliases and enums only")
    if cursor.peek(1).kind != "name":
        return None
    if cursor.is_next("enum"):
        return _enum(cursor, comment)
    if cursor.is_next("interface"):
        return _interface(cursor, comment)
    if cursor.is_next("type"):
        return _alias(cursor, comment)
    return None


def _interface(cursor: TokenCursor, comment: str | None) -> syntax_tree.Declaration:
    cursor.advance()
    name = cursor.name("an interface")
    parameters = _parameters(cursor)
    extends = []
    if cursor.accept("extends"):
        extends.append(read_named(cursor))
        while cursor.accept(","):
            extends.append(read_named(cursor))
    found = read_object(cursor, read_type)
    if isinstance(found, syntax_tree.MappedNode):
        refuse(cursor.source, found.span, "an interface cannot be a mapped type")
    return syntax_tree.Declaration(name.span, name.text, found, parameters, tuple(extends), comment)


def _alias(cursor: TokenCursor, comment: str | None) -> syntax_tree.Declaration:
    cursor.advance()
    name = cursor.name("a type")
    parameters = _parameters(cursor)
    cursor.expect("=", "after the name of a type")
    found = read_type(cursor)
    return syntax_tree.Declaration(name.span, name.text, found, parameters, (), comment)


def _parameters(cursor: TokenCursor) -> tuple[tuple[str, syntax_tree.Node | None], ...]:
    if not cursor.accept("<"):
        return ()
    found: dict[str, syntax_tree.Node | None] = {}
    while not cursor.is_next(">"):
        token = cursor.name("a type parameter")
        if cursor.is_next("extends"):
            cursor.unsupported(
                cursor.peek(), "a constraint (extends) on a type parameter", "remove it"
            )
        if cursor.peek().kind == "name":
            cursor.unsupported(token, f"the modifier {token.text} of a type parameter")
        if token.text in found:
            refuse(cursor.source, token.span, f"the type parameter {token.text} is declared twice")
        found[token.text] = read_type(cursor) if cursor.accept("=") else None
        if found[token.text] is None and any(found.values()):
            refuse(cursor.source, token.span, "type parameters without a default must come first")
        if not cursor.accept(","):
            break
    cursor.expect(">", "after type parameters")
    return tuple(found.items())


def _enum(cursor: TokenCursor, comment: str | None) -> syntax_tree.Declaration:
    cursor.advance()
    name = cursor.name("an enum")
    start = cursor.expect("{", "after the name of an enum").span[0]
    values: dict[str, syntax_tree.Value] = {}
    following: int | None = 0
    while not cursor.is_next("}"):
        token = cursor.advance()
        if token.kind not in ("name", "string"):
            refuse(cursor.source, token.span, f"expected an enum member, got {token}")
        if token.text in values:
            refuse(cursor.source, token.span, f"the enum member {token.text!r} is declared twice")
        if cursor.accept("="):
            value = _value(cursor)
        elif following is None:
            refuse(cursor.source, token.span, f"the enum member {token.text!r} must have a value")
        else:
            value = following
        values[token.text] = value
        following = value + 1 if isinstance(value, int) else None
        if not cursor.accept(","):
            break
    cursor.expect("}", "or ',' after an enum member")
    if not values:
        refuse(cursor.source, name.span, "an enum without members has no values")
    found = syntax_tree.EnumNode(cursor.span_since(start), tuple(values.items()))
    return syntax_tree.Declaration(name.span, name.text, found, (), (), comment)


def _value(cursor: TokenCursor) -> syntax_tree.Value:
    """Parses the value of an enum member: a string or a number."""
    token: Token = cursor.peek()
    value: syntax_tree.Value
    if token.kind == "string":
        value = cursor.advance().text
    elif token.kind == "number" or cursor.is_next("-"):
        value = read_number(cursor)
    else:
        cursor.unsupported(token, "a computed enum value", "write a string or a number")
    if not cursor.is_next(",", "}"):
        cursor.unsupported(cursor.peek(), "a computed enum value")
    return value
