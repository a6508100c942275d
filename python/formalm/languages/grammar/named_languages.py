"""Languages that a grammar embeds: named by ``%declare``, or as schemas inside its rules."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeAlias

from formalm import _core
from formalm.errors import ArgumentError, LanguageError, ParserError
from formalm.languages.language import Language

__all__ = ["Languages", "hashable", "inlined", "is_terminal", "named_languages"]

#: Languages by name.
Languages: TypeAlias = "Mapping[str, Language] | tuple[tuple[str, Language], ...]"


def hashable(language: Language) -> Language:
    """Returns a language that can be part of another; a user-defined one may lack a hash.

    Raises
    ------
    LanguageError
        For a class with ``__eq__`` and without ``__hash__``.
    ParserError
        If ``__hash__`` raises an exception.
    """
    kind = type(language).__name__
    if type(language).__hash__ is None:
        raise LanguageError(
            f"{kind} must be hashable, as every language is, and defines __eq__ without __hash__",
            hint="define __hash__ over the same state (for a dataclass: unsafe_hash=True)",
        )
    if type(language).__hash__ is not Language.__hash__:
        try:
            hash(language)
        except Exception as error:
            raise ParserError(f"__hash__() of {kind} raised {error!r}") from error
    return language


def is_terminal(name: str) -> bool:
    """Returns whether a name is that of a terminal: uppercase, possibly after its module's name."""
    name = name.lstrip("_")
    return name[:1].isupper() or name.rpartition("__")[2][:1].isupper()


def inlined(text: str) -> list[tuple[str, _core.Automaton]]:
    """Returns the machines of the schemas inside rules."""
    from formalm.languages.json_schema.language import JsonSchema

    found = []
    for name, schema, span in _core.GrammarText.inlined(text):
        try:
            found.append((name, JsonSchema(schema).automaton()))
        except LanguageError as error:
            line = text.count("\n", 0, span[0]) + 1
            message = f"line {line}: the schema within the rule: {error.message}"
            raise LanguageError(message, source=text, span=span, hint=error.hint) from error
    return found


def named_languages(languages: Languages) -> tuple[tuple[str, Language], ...]:
    """Returns names with their languages; terminals must be regular, rules may be of any kind."""
    hint = 'write languages={"NAME": Regex(pattern)}'
    if not isinstance(languages, (Mapping, tuple, list)):
        raise ArgumentError(
            f"languages must map names to Languages, got {type(languages).__name__}", hint=hint
        )
    listed: Any = languages.items() if isinstance(languages, Mapping) else languages
    pairs = tuple(listed)
    seen: set[str] = set()
    for pair in pairs:
        if not isinstance(pair, tuple) or len(pair) != 2:
            raise ArgumentError(
                f"languages must be pairs of name and Language, got {pair!r}", hint=hint
            )
        name, language = pair
        if not all(map(isinstance, pair, (str, Language))):
            raise ArgumentError(
                f"languages must map names to Languages, got {language!r} by {name!r}", hint=hint
            )
        hashable(language)
        if name in seen:
            raise LanguageError(f"the terminal {name} is defined twice")
        seen.add(name)
        if is_terminal(name) and not language.is_regular:
            raise LanguageError(
                f"the language of the terminal {name} must be regular",
                hint="declare it under a lower-case name: it is then a rule with a parser of"
                " its own",
            )
    return pairs
