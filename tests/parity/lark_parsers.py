"""Parsers of Lark for random grammars."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from random import Random
from typing import Any

import lark
from lark.parsers.lalr_analysis import LALR_Analyzer

from formalm import Grammar


def made(text: str, **options: Any) -> lark.Lark | None:
    """A parser of Lark, if it takes the grammar."""
    try:
        return lark.Lark(text, **options)
    except (lark.exceptions.GrammarError, lark.exceptions.LexError):
        return None


def without_conflicts(text: str, **options: Any) -> lark.Lark | None:
    """A parser of Lark, if its tables have no conflict.

    Lark shifts where it could reduce as well, and says so in its log only. Its contextual lexer
    then knows of fewer terminals than the grammar allows, so that it may read other lexemes.
    """
    parser = made(text, parser="lalr", **options)
    if parser is None:
        return None
    try:
        LALR_Analyzer(parser.parser.parser_conf, strict=True).compute_lalr()
    except lark.exceptions.GrammarError:
        return None
    return parser


def read_by_both(
    random: Random, draw: Callable[[Random], str], count: int
) -> Iterator[tuple[Grammar, lark.Lark]]:
    """So many random grammars as Lark's first lexemes read them, those without conflicts."""
    for _ in range(count):
        text = draw(random)
        parser = without_conflicts(text)
        if parser is not None:
            yield Grammar(text, lexing="first"), parser
