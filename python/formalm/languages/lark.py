"""What a parser of Lark was made from, as the text and options of a grammar."""

from __future__ import annotations

from typing import Any

from formalm.errors import ArgumentError

__all__ = ["description"]

#: Readings that are those of Lark's lexers, exactly.
READINGS = {"contextual": "first", "dynamic_complete": "any"}

#: Options under which texts or terminals are not what the grammar's text says.
REFUSED = {
    "postlex": "its lexemes are changed by a program",
    "lexer_callbacks": "its lexemes are changed by a program",
    "edit_terminals": "its terminals are changed by a program",
    "g_regex_flags": "its flags are not in the grammar's text",
}


def description(parser: Any, lexing: str | None) -> tuple[str, str, str]:
    """Return text, reading and start of a ``lark.Lark``.

    Raises
    ------
    ArgumentError
        For what is no such parser, or has options that the text does not show.
    """
    text, options = getattr(parser, "source_grammar", None), getattr(parser, "options", None)
    if not isinstance(text, str) or options is None:
        raise ArgumentError(
            f"this is no lark.Lark with the text of its grammar, but a {type(parser).__name__}",
            hint="parsers that were loaded do not have it: give the text to Grammar(...)",
        )
    for name, why in REFUSED.items():
        if getattr(options, name, None):
            raise ArgumentError(f"a parser with {name} is not read: {why}")
    if len(options.start) != 1:
        raise ArgumentError(
            f"the parser has {len(options.start)} start rules, a grammar one",
            hint="give the text to Grammar(..., start=...)",
        )
    if lexing is None:
        lexing = READINGS.get(str(options.lexer))
    if lexing is None:
        raise ArgumentError(
            f"lexemes as Lark's lexer {options.lexer!r} reads them are not known",
            hint='make the parser with parser="lalr", or choose lexing=',
        )
    return text, lexing, str(options.start[0])
