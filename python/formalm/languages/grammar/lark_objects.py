"""Conversion of a ``lark.Lark`` object to the text and options of a :class:`Grammar`."""

from __future__ import annotations

from typing import Any, Literal

from formalm.errors import ArgumentError
from formalm.languages.grammar.indentation import Indentation
from formalm.languages.grammar.lark_imports import refers_to_files, resolved_text

__all__ = ["Lexing", "description"]

#: The rules by which an input is divided into lexemes.
Lexing = Literal["any", "longest", "first"]

#: The lexing that corresponds to each of Lark's lexers.
READINGS: dict[str, Lexing] = {"contextual": "first", "dynamic_complete": "any"}

#: Options under which inputs or terminals differ from the grammar's text.
REFUSED = {
    "lexer_callbacks": "code changes its lexemes",
    "edit_terminals": "code changes its terminals",
    "g_regex_flags": "its flags are not in the grammar's text",
}


def description(parser: Any, lexing: Lexing | None) -> tuple[str, Lexing, str, Indentation | None]:
    """Returns text, lexing, start and indentation of a ``lark.Lark``.

    Raises
    ------
    ArgumentError
        If it is not such a parser, or has options that the text does not express.
    """
    text, options = getattr(parser, "source_grammar", None), getattr(parser, "options", None)
    if not isinstance(text, str) or options is None:
        raise ArgumentError(
            f"parser must be a lark.Lark that has its grammar's text, got {type(parser).__name__}",
            hint="a parser loaded from a file has no text: pass the text to Grammar(...)",
        )
    for name, why in REFUSED.items():
        if getattr(options, name, None):
            raise ArgumentError(f"a parser with {name} is not supported: {why}")
    if len(options.start) != 1:
        raise ArgumentError(
            f"parser must have one start rule, got {len(options.start)}",
            hint="pass the text to Grammar(..., start=...)",
        )
    if lexing is None:
        lexing = READINGS.get(str(options.lexer))
    if lexing is None:
        raise ArgumentError(
            f"Lark's lexer {options.lexer!r} is not supported",
            hint='make the parser with parser="lalr", or choose lexing=',
        )
    if refers_to_files(text) and getattr(parser, "grammar", None) is not None:
        text = resolved_text(parser)
    text += _trees(options)
    return text, lexing, str(options.start[0]), _indentation(parser, options.postlex)


def _trees(options: Any) -> str:
    """Returns the ``%trees`` statement for options that Lark text cannot express."""
    words = ["keep_all_tokens"] if options.keep_all_tokens else []
    words += [] if options.maybe_placeholders else ["no_placeholders"]
    return f"\n%trees {' '.join(words)}\n" if words else ""


def _indentation(parser: Any, postlex: Any) -> Indentation | None:
    """Returns the settings of an ``Indenter``; one that overrides methods is refused."""
    if postlex is None:
        return None
    from lark.indenter import Indenter

    own = type(postlex)
    methods = ("process", "_process", "handle_NL")
    if not isinstance(postlex, Indenter) or any(
        getattr(own, name) is not getattr(Indenter, name) for name in methods
    ):
        raise ArgumentError("a parser with postlex is not supported: code changes its lexemes")
    terminals = {terminal.name for terminal in parser.terminals}
    brackets = (postlex.OPEN_PAREN_types, postlex.CLOSE_PAREN_types)
    opening, closing = (tuple(name for name in names if name in terminals) for names in brackets)
    return Indentation(
        newline=postlex.NL_type,
        indent=postlex.INDENT_type,
        dedent=postlex.DEDENT_type,
        opening=opening,
        closing=closing,
        rules="lark",
        tab=postlex.tab_len,
    )
