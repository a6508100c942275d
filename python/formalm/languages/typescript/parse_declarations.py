"""Parser of TypeScript declarations: interfaces, type aliases, enums, and a type by itself."""

from __future__ import annotations

from formalm.languages.typescript import syntax_tree
from formalm.languages.typescript.lexer import Word, refuse
from formalm.languages.typescript.parse_objects import read_object
from formalm.languages.typescript.parser import read_named, read_number, read_type
from formalm.languages.typescript.token_cursor import Cursor

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
    cursor = Cursor(source)
    declared: dict[str, syntax_tree.Declared] = {}
    found: syntax_tree.Node | None = None
    while cursor.look().kind != "end":
        if cursor.took(";"):
            continue
        start = cursor.look()
        comment = start.comment
        is_default = False
        if cursor.sees("export") and cursor.look(1).kind != "end":
            cursor.take()
            is_default = cursor.took("default") is not None
            if cursor.sees("{", "*", "="):
                cursor.unsupported(cursor.look(), "an export of names declared elsewhere")
        if cursor.sees("declare") and cursor.look(1).kind == "name":
            cursor.take()
        one = _declaration(cursor, comment)
        if one is None:
            whole = read_type(cursor)
        else:
            if one.name in declared:
                refuse(source, one.span, f"{one.name} is declared twice")
            if one.name in BUILT_IN:
                refuse(source, one.span, f"{one.name} is the name of a built-in TypeScript type")
            declared[one.name] = one
            whole = syntax_tree.Named(one.span, one.name)
        if one is None or is_default:
            if found is not None:
                refuse(source, start.span, "two types could be the root")
            found = whole
        _statement_ends(cursor, one)
    return syntax_tree.Module(source, declared, found)


def _statement_ends(cursor: Cursor, one: syntax_tree.Declared | None) -> None:
    """Checks that a statement ends with a brace, a line break or ';'."""
    braced = one is not None and cursor.source[cursor.since(0)[1] - 1] == "}"
    word = cursor.look()
    if not (cursor.took(";") or word.after_line or braced):
        cursor.expected("';' or a new line after a type")


def _declaration(cursor: Cursor, comment: str | None) -> syntax_tree.Declared | None:
    """Parses a declaration; returns None if a type by itself follows."""
    word = cursor.look()
    if cursor.sees("const") and cursor.sees("enum", ahead=1):
        cursor.take()
    elif cursor.sees(*OTHERS, "const") and cursor.look(1).kind != "end":
        cursor.unsupported(word, word.text, "declare interfaces, type aliases and enums only")
    if cursor.look(1).kind != "name":
        return None
    if cursor.sees("enum"):
        return _enum(cursor, comment)
    if cursor.sees("interface"):
        return _interface(cursor, comment)
    if cursor.sees("type"):
        return _alias(cursor, comment)
    return None


def _interface(cursor: Cursor, comment: str | None) -> syntax_tree.Declared:
    cursor.take()
    name = cursor.name("an interface")
    parameters = _parameters(cursor)
    extends = []
    if cursor.took("extends"):
        extends.append(read_named(cursor))
        while cursor.took(","):
            extends.append(read_named(cursor))
    found = read_object(cursor, read_type)
    if isinstance(found, syntax_tree.Mapped):
        refuse(cursor.source, found.span, "an interface cannot be a mapped type")
    return syntax_tree.Declared(name.span, name.text, found, parameters, tuple(extends), comment)


def _alias(cursor: Cursor, comment: str | None) -> syntax_tree.Declared:
    cursor.take()
    name = cursor.name("a type")
    parameters = _parameters(cursor)
    cursor.expect("=", "after the name of a type")
    found = read_type(cursor)
    return syntax_tree.Declared(name.span, name.text, found, parameters, (), comment)


def _parameters(cursor: Cursor) -> tuple[tuple[str, syntax_tree.Node | None], ...]:
    if not cursor.took("<"):
        return ()
    found: dict[str, syntax_tree.Node | None] = {}
    while not cursor.sees(">"):
        word = cursor.name("a type parameter")
        if cursor.sees("extends"):
            cursor.unsupported(
                cursor.look(), "a constraint (extends) on a type parameter", "remove it"
            )
        if cursor.look().kind == "name":
            cursor.unsupported(word, f"the modifier {word.text} of a type parameter")
        if word.text in found:
            refuse(cursor.source, word.span, f"the type parameter {word.text} is declared twice")
        found[word.text] = read_type(cursor) if cursor.took("=") else None
        if found[word.text] is None and any(found.values()):
            refuse(cursor.source, word.span, "type parameters without a default must come first")
        if not cursor.took(","):
            break
    cursor.expect(">", "after type parameters")
    return tuple(found.items())


def _enum(cursor: Cursor, comment: str | None) -> syntax_tree.Declared:
    cursor.take()
    name = cursor.name("an enum")
    start = cursor.expect("{", "after the name of an enum").span[0]
    values: dict[str, syntax_tree.Value] = {}
    following: int | None = 0
    while not cursor.sees("}"):
        word = cursor.take()
        if word.kind not in ("name", "string"):
            refuse(cursor.source, word.span, f"expected an enum member, got {word}")
        if word.text in values:
            refuse(cursor.source, word.span, f"the enum member {word.text!r} is declared twice")
        if cursor.took("="):
            value = _value(cursor)
        elif following is None:
            refuse(cursor.source, word.span, f"the enum member {word.text!r} must have a value")
        else:
            value = following
        values[word.text] = value
        following = value + 1 if isinstance(value, int) else None
        if not cursor.took(","):
            break
    cursor.expect("}", "or ',' after an enum member")
    if not values:
        refuse(cursor.source, name.span, "an enum without members has no values")
    found = syntax_tree.EnumOf(cursor.since(start), tuple(values.items()))
    return syntax_tree.Declared(name.span, name.text, found, (), (), comment)


def _value(cursor: Cursor) -> syntax_tree.Value:
    """Parses the value of an enum member: a string or a number."""
    word: Word = cursor.look()
    value: syntax_tree.Value
    if word.kind == "string":
        value = cursor.take().text
    elif word.kind == "number" or cursor.sees("-"):
        value = read_number(cursor)
    else:
        cursor.unsupported(word, "a computed enum value", "write a string or a number")
    if not cursor.sees(",", "}"):
        cursor.unsupported(cursor.look(), "a computed enum value")
    return value
