"""Lowering of ReLM queries to formalm's ``Query``."""

from __future__ import annotations

from typing import Any

from formalm.compat.relm.queries import (
    LevenshteinTransformer,
    QueryPreprocessors,
    QuerySearchStrategy,
    QueryString,
    QueryTokenizationStrategy,
    SimpleSearchQuery,
)
from formalm.errors import ArgumentError, LanguageError
from formalm.languages import Choice, Language, Regex
from formalm.languages.edits import Operation
from formalm.query import Decoding, Limits, Query
from formalm.query.prefixes import members
from formalm.vocabulary import Vocabulary

__all__ = ["lowered", "pattern_of"]

TOKENIZATIONS = {
    QueryTokenizationStrategy.ALL_TOKENS: "all",
    QueryTokenizationStrategy.CANONICAL_TOKENS: "canonical",
    QueryTokenizationStrategy.PREFIX_CANONICAL_TOKENS: "canonical-given",
}
# What Rust's regex crate, ReLM's parser, means by them; in Python's syntax they are other letters.
CLASSES = {
    "alnum": "0-9A-Za-z",
    "alpha": "A-Za-z",
    "ascii": r"\x00-\x7f",
    "blank": r"\t ",
    "cntrl": r"\x00-\x1f\x7f",
    "digit": "0-9",
    "graph": "!-~",
    "lower": "a-z",
    "print": " -~",
    "punct": r"!-/:-@\[-`{-~",
    "space": r"\t\n\v\f\r ",
    "upper": "A-Z",
    "word": "0-9A-Za-z_",
    "xdigit": "0-9A-Fa-f",
}


def lowered(query: SimpleSearchQuery, vocabulary: Vocabulary) -> Query:
    """Returns a ReLM query as a formalm query.

    Raises
    ------
    ArgumentError
        For a field of a wrong type, or a combination that has no meaning here.
    LanguageError
        For an invalid pattern, or a prefix that no member starts with.
    """
    _check(query)
    string = query.query_string
    drawn = query.search_strategy is QuerySearchStrategy.RANDOM_SAMPLING
    given: Language | None = pattern_of(string.prefix_str) if string.prefix_str else None
    language: Language = pattern_of(string.query_str)
    without = None
    if query.preprocessors is not None:
        for one in query.preprocessors.automata_preprocessors or ():
            # As in ReLM, which applies each to the whole pattern and to the prefix.
            language = _edited(language, one)
            given = None if given is None else _edited(given, one)
        if query.preprocessors.filter_str is not None:
            without = pattern_of(query.preprocessors.filter_str)
    if string.add_eos not in (None, True, False):
        raise ArgumentError(f"add_eos must be True, False or None, got {string.add_eos!r:.60}")
    ends = drawn or bool(string.add_eos)
    tokenization = TOKENIZATIONS[query.tokenization_strategy]
    if given is None and tokenization == "canonical-given":
        tokenization = "all"  # there is nothing whose tokens could be canonical
    temperature = 1.0 if query.temperature is None else query.temperature
    decoding = Decoding(temperature=temperature, top_k=query.top_k_sampling)
    fields: dict[str, Any] = {
        "given": given,
        "event": "complete" if ends else "token_prefix",
        # Without a prefix there is nothing whose tokens could be canonical.
        "tokenization": "all"
        if given is None and tokenization == "canonical-given"
        else tokenization,
        "decoding": decoding,
        "renormalize": not decoding.is_plain,
        "prefix_cost": "joint" if given is not None and not drawn else "conditional",
        "without": without,
        "max_tokens": _room(query, given, vocabulary, ends),
        "limits": Limits(forwards=None),
    }
    if not drawn:
        fields["unique"] = "tokens"
    return Query(language, **fields)


def pattern_of(pattern: str) -> Regex:
    """Returns the language of a ReLM pattern: Python's syntax, and POSIX classes like
    ``[[:alnum:]]``.
    """
    if not isinstance(pattern, str):
        raise ArgumentError(f"a pattern must be a str, got {type(pattern).__name__}")
    parts: list[str] = []
    place, opened = 0, False
    while place < len(pattern):
        end = pattern.find(":]", place + 2)
        if pattern[place] == "\\":
            parts.append(pattern[place : place + 2])
        elif opened and pattern.startswith("[:", place) and end > 0:
            name = pattern[place + 2 : end]
            if name not in CLASSES:
                raise LanguageError(
                    f"[:{name}:] is not a POSIX character class",
                    source=pattern,
                    span=(place, end + 2),
                )
            parts.append(CLASSES[name])
            place = end + 2
            continue
        else:
            # The first letter of a class may be a closing bracket.
            if pattern[place] == "[" and not opened:
                opened = True
                first = pattern[place : place + 2] == "[^"
                skipped = pattern[place : place + 1 + first]
                if pattern[place + len(skipped) : place + len(skipped) + 1] == "]":
                    skipped += "]"
                parts.append(skipped)
                place += len(skipped)
                continue
            opened = opened and pattern[place] != "]"
            parts.append(pattern[place])
        place += len(parts[-1])
    return Regex("".join(parts))


def _edited(language: Language, edits: object) -> Language:
    if not isinstance(edits, LevenshteinTransformer):
        raise ArgumentError(
            f"a preprocessor must be a LevenshteinTransformer, got {type(edits).__name__}"
        )
    operations: dict[Operation, bool] = {
        "insert": edits.allow_inserts,
        "delete": edits.allow_deletes,
        "substitute": edits.allow_substitutions,
    }
    symbols = "".join(chr(code) for code in range(32, 127))
    if edits.symbol_set is not None:
        try:
            symbols = "".join(edits.symbol_set)
        except TypeError:
            wrong = f"{edits.symbol_set!r:.60}"
            raise ArgumentError(
                f"symbol_set must be an iterable of characters, got {wrong}"
            ) from None
    if edits.allow_deletes and not edits.allow_passthrough_deletes:
        _only(language, symbols, "deletes")
    if edits.allow_substitutions and not edits.allow_passthrough_substitutions:
        _only(language, symbols, "substitutions")
    return language.edits(
        edits.num_edits,
        alphabet=symbols,
        operations=tuple(name for name, allowed in operations.items() if allowed),
    )


def _only(language: Language, symbols: str, name: str) -> None:
    """Refuses members with characters that must stay as they are."""
    if not language.is_subset(Choice(sorted(set(symbols))).star()):
        raise ArgumentError(
            "members must not have characters outside symbol_set with"
            f" allow_passthrough_{name}=False",
            hint=f"pass allow_passthrough_{name}=True or allow_{name}=False",
        )


def _room(
    query: SimpleSearchQuery, given: Language | None, vocabulary: Vocabulary, ends: bool
) -> int | None:
    """Returns the maximum number of tokens after the prefix, equal for all prefixes."""
    if query.sequence_length is None:
        return None
    lengths = {0}
    if given is not None:
        lengths = {len(vocabulary.encode(text.decode())) for text in members(given)}
    if len(lengths) > 1:
        raise ArgumentError(
            f"prefixes must have equally many tokens with sequence_length, got from {min(lengths)}"
            f" to {max(lengths)}",
            hint="run one query per prefix",
        )
    room = query.sequence_length - max(lengths) - ends
    if room < 0:
        raise ArgumentError(
            f"sequence_length must leave room for the prefix, got {query.sequence_length}"
        )
    return room


def _check(query: SimpleSearchQuery) -> None:
    kinds: dict[str, type | tuple[type, ...]] = {
        "query_string": QueryString,
        "search_strategy": QuerySearchStrategy,
        "tokenization_strategy": QueryTokenizationStrategy,
        "preprocessors": (QueryPreprocessors, type(None)),
    }
    for name, kind in kinds.items():
        if not isinstance(getattr(query, name), kind):
            one = kind[0] if isinstance(kind, tuple) else kind
            wanted = one.__name__ + (" or None" if one is not kind else "")
            raise ArgumentError(f"{name} must be {wanted}, got {getattr(query, name)!r:.60}")
    for name in ("sequence_length", "num_samples"):
        value = getattr(query, name)
        if value is not None and (type(value) is not int or value < 1):
            raise ArgumentError(f"{name} must be a positive integer or None, got {value!r:.60}")
    if query.progress_bar is not False:
        raise ArgumentError("progress_bar must be False, because progress bars are not supported")
