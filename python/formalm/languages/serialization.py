"""Conversion of languages to and from plain data, as in JSON and TOML files.

A language is a table with a ``kind``; the other keys are the arguments of its constructor. Reading
executes nothing. An unknown kind, a missing key and a superfluous key are errors that name their
place.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import asdict, fields
from typing import Any

from formalm.errors import ArgumentError
from formalm.languages import structured_data
from formalm.languages.algebra import Combination, Repetition
from formalm.languages.choice import Choice, StringLiteral
from formalm.languages.data_reader import DataReader
from formalm.languages.edits import Edited, Region
from formalm.languages.grammar.indentation import Indentation
from formalm.languages.grammar.language import Grammar
from formalm.languages.language import Language
from formalm.languages.regex import Regex
from formalm.languages.rewrites import Reversed, Rewritten
from formalm.languages.special_tokens import SpecialToken

__all__ = ["from_data", "to_data"]

OPERATORS = {
    "union": "|",
    "intersection": "&",
    "difference": "-",
    "concatenation": "+",
    "complement": "~",
}
_NAMES = {operator: name for name, operator in OPERATORS.items()}
_FLAGS = {name: re.RegexFlag[name] for name in ("I", "M", "S", "A", "X")}


def to_data(language: Language) -> dict[str, Any]:
    """Converts a language to tables, lists, strings and numbers.

    Options with default values are left out, so equal languages have equal data.

    Raises
    ------
    ArgumentError
        For a language of a class that is not part of formalm.

    Examples
    --------
    >>> from formalm import StringLiteral, Regex
    >>> to_data(Regex("[a-z]+") - StringLiteral("no"))["kind"]
    'difference'
    >>> from_data(to_data(Regex("[a-z]+") - StringLiteral("no")))
    (Regex('[a-z]+') - StringLiteral('no'))
    """
    writer = _WRITERS.get(type(language))
    if writer is None:
        raise ArgumentError(
            f"language must have a form as data, got {type(language).__name__}",
            hint="pickle it; of a Python type, JsonSchema(language.schema) has one",
        )
    data = writer(language)
    return {key: value for key, value in data.items() if value is not None}


def from_data(data: object, where: str = "language") -> Language:
    """Converts data from :func:`to_data` back to the language.

    Parameters
    ----------
    data
        The result of :func:`to_data`, or the same read from a file.
    where
        The name of its place in error messages.

    Raises
    ------
    ArgumentError
        If the data does not describe a language; the message names the place.
    LanguageError
        If the description is invalid, such as a malformed pattern.
    """
    table = DataReader(data, where)
    kind = table.take("kind", str)
    reader = _READERS.get(kind)
    if reader is None:
        known = ", ".join(sorted(_READERS))
        raise ArgumentError(
            f"{where}.kind must be a kind of language, got {kind!r}", hint=f"one of {known}"
        )
    try:
        language = reader(table, kind)
    except RecursionError:
        raise ArgumentError(f"{where:.60} is nested too deeply") from None
    table.close()
    return language


def text_data(text: str | bytes) -> str | dict[str, str]:
    """Returns a string unchanged, and bytes as a table with their hexadecimal digits."""
    return text if isinstance(text, str) else {"bytes": text.hex()}


def _text(value: object, where: str) -> str | bytes:
    if isinstance(value, str):
        return value
    table = DataReader(value, where)
    digits = table.take("bytes", str)
    table.close()
    try:
        return bytes.fromhex(digits)
    except ValueError:
        raise ArgumentError(
            f"{where}.bytes must be hexadecimal digits, got {digits!r:.60}"
        ) from None


def _regex_data(language: Any) -> dict[str, Any]:
    flags = [name for name, flag in _FLAGS.items() if language.flags & flag]
    dialect = None if language.dialect == "python" else language.dialect
    pattern = {"kind": "regex", "pattern": language.pattern}
    return {**pattern, "flags": flags or None, "dialect": dialect}


def _regex(table: DataReader, _kind: str) -> Language:
    flags = 0
    for where, name in table.items("flags", optional=True):
        if name not in _FLAGS:
            raise ArgumentError(f"{where} must be one of {', '.join(_FLAGS)}, got {name!r:.60}")
        flags |= _FLAGS[str(name)]
    return Regex(table.take("pattern", str), flags, table.take("dialect", str, "python"))


def _combination_data(language: Any) -> dict[str, Any]:
    return {"kind": _NAMES[language.operator], "of": [to_data(part) for part in language.operands]}


def _combination(table: DataReader, kind: str) -> Language:
    parts = [from_data(value, where) for where, value in table.items("of")]
    if len(parts) < 2 if kind != "complement" else len(parts) != 1:
        wanted = "one language" if kind == "complement" else "two languages or more"
        raise ArgumentError(f"{table.where}.of must have {wanted}, got {len(parts)}")
    return Combination(OPERATORS[kind], *parts)


def _repetition_data(language: Any) -> dict[str, Any]:
    bounds = {"minimum": language.minimum, "maximum": language.maximum}
    return {"kind": "repetition", "of": to_data(language.part), **bounds}


def _repetition(table: DataReader, _kind: str) -> Language:
    part = table.language("of")
    return Repetition(part, table.take("minimum", int), table.take("maximum", int, None))


def _edited_data(language: Any) -> dict[str, Any]:
    part, count, alphabet, operations, region = language._arguments
    return {
        "kind": "edits",
        "of": to_data(part),
        "count": count,
        "alphabet": None if alphabet is None else to_data(alphabet),
        "operations": None if len(operations) == 3 else list(operations),
        "region": region_data(region),
    }


def region_data(region: Region | str | None) -> str | dict[str, Any] | None:
    """Returns a region as data: the name of a group, or a table with the fixed context."""
    if region is None or isinstance(region, str):
        return region
    sides = {"after": region.after, "before": region.before}
    return {side: to_data(language) for side, language in sides.items() if language is not None}


def read_region(table: DataReader) -> Region | str | None:
    """Returns the region under the given key."""
    value = table.take("region", (str, dict), None)
    if value is None or isinstance(value, str):
        return value
    sides = DataReader(value, f"{table.where}.region")
    region = Region(*(sides.language(side, optional=True) for side in ("after", "before")))
    sides.close()
    return region


def _edited(table: DataReader, _kind: str) -> Language:
    operations = table.take("operations", list, ["insert", "delete", "substitute"])
    alphabet = table.language("alphabet", optional=True)
    count = table.take("count", int)
    return Edited(table.language("of"), count, alphabet, operations, read_region(table))


def _rewritten_data(language: Any) -> dict[str, Any]:
    part, rules, optional = language._arguments
    pairs = [{"from": source, "to": to_data(target)} for source, target in rules.items()]
    data = {"kind": "rewrite", "of": to_data(part), "rules": pairs}
    return {**data, "optional": True if optional else None}


def _rewritten(table: DataReader, _kind: str) -> Language:
    rules: dict[str, object] = {}
    for where, value in table.items("rules"):
        rule = DataReader(value, where)
        rules[rule.take("from", str)] = rule.language("to")
        rule.close()
    return Rewritten(table.language("of"), rules, table.take("optional", bool, False))


def _grammar_data(language: Any) -> dict[str, Any]:
    text, syntax, lexing, start = language._arguments[:4]
    names = {"syntax": None if syntax == "lark" else syntax, "lexing": lexing, "start": start}
    given = [{"name": name, "language": to_data(one)} for name, one in language.languages.items()]
    levels = language.indentation
    indentation = None if levels is None else {**asdict(levels)}
    return {
        "kind": "grammar",
        "text": text,
        **names,
        "languages": given or None,
        "indentation": None
        if indentation is None
        else {name: _plain(indentation[name]) for name in indentation},
    }


def _plain(value: Any) -> Any:
    return list(value) if isinstance(value, tuple) else value


def _indentation(table: DataReader) -> Indentation | None:
    where = table.take("indentation", dict, None)
    if where is None:
        return None
    one = DataReader(where, f"{table.where}.indentation")
    given: dict[str, Any] = {}
    for field in fields(Indentation):
        if isinstance(field.default, tuple):
            names = one.take(field.name, list, None)
            given[field.name] = field.default if names is None else tuple(names)
        else:
            given[field.name] = one.take(field.name, type(field.default), field.default)
    one.close()
    return Indentation(**given)


def _grammar(table: DataReader, _kind: str) -> Language:
    lexing, start = (table.take(name, str, None) for name in ("lexing", "start"))
    languages = []
    for where, value in table.items("languages", optional=True):
        one = DataReader(value, where)
        languages.append((one.take("name", str), one.language("language")))
        one.close()
    text, syntax = table.take("text", str), table.take("syntax", str, "lark")
    return Grammar(text, syntax, lexing, start, tuple(languages), _indentation(table))


_WRITERS: dict[type, Callable[[Any], dict[str, Any]]] = {
    Regex: _regex_data,
    Choice: lambda language: {"kind": "choice", "texts": [*map(text_data, language.texts)]},
    SpecialToken: lambda language: {"kind": "special_token", "name": language.name},
    StringLiteral: lambda language: {"kind": "literal", "text": text_data(language._arguments[0])},
    Combination: _combination_data,
    Repetition: _repetition_data,
    Edited: _edited_data,
    Rewritten: _rewritten_data,
    Grammar: _grammar_data,
    Reversed: lambda language: {"kind": "reversal", "of": to_data(language.language)},
    **structured_data.WRITERS,
}
_READERS: dict[str, Callable[[DataReader, str], Language]] = {
    "regex": _regex,
    "choice": lambda table, _: Choice([_text(value, at) for at, value in table.items("texts")]),
    "special_token": lambda table, _: SpecialToken(table.take("name", str)),
    "literal": lambda table, _: StringLiteral(
        _text(table.take("text", (str, dict)), f"{table.where}.text")
    ),
    **dict.fromkeys(OPERATORS, _combination),
    "repetition": _repetition,
    "edits": _edited,
    "rewrite": _rewritten,
    "grammar": _grammar,
    "reversal": lambda table, _: Reversed(table.language("of")),
    **structured_data.READERS,
}
