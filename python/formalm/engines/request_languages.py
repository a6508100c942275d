"""The language of an engine's request: its kind and specification, as the engine passes them."""

from __future__ import annotations

import json
import re
from typing import Any, Literal, TypeAlias

from formalm.errors import LanguageError
from formalm.languages import Choice, Grammar, JsonSchema, Language, Regex

__all__ = ["RequestKind", "grammar_syntax", "request_language"]

#: The kind of a specification: ``"json"`` a JSON Schema, ``"json_object"`` any JSON object (the
#: specification is ignored), ``"choice"`` a JSON list of strings.
RequestKind: TypeAlias = Literal[
    "json", "json_object", "regex", "grammar", "choice", "structural_tag"
]

#: A rule with ``::=``: GBNF, or the notation of the W3C.
_DOUBLE_COLON = re.compile(r"^[ \t]*(<?[\w-]+>?)[ \t]*::=", re.MULTILINE)
#: A rule of ISO/IEC 14977.
_EQUALS = re.compile(r"^[ \t]*[A-Za-z][\w -]*=[^>]", re.MULTILINE)
#: A rule, terminal or directive of Lark.
_LARK = re.compile(
    r"^[ \t]*(?:[?!]*[A-Za-z_]\w*(?:\{[^}\n]*\})?(?:\.-?\d+)?[ \t]*:(?!:=)|%)", re.MULTILINE
)


def grammar_syntax(text: str) -> Literal["lark", "gbnf", "ebnf"]:
    """Returns the notation of a grammar, which engines do not state.

    A rule ``name: …`` or a directive ``%…`` at the start of a line is Lark's. Otherwise a rule
    ``name ::= …`` is GBNF if some rule is called ``root``, the start rule of GBNF, and else the
    notation of the W3C; a rule ``name = …;`` is ISO EBNF.

    Examples
    --------
    >>> grammar_syntax('start: "a" start?'), grammar_syntax('root ::= "a" root?')
    ('lark', 'gbnf')
    >>> grammar_syntax('list ::= "a" list?'), grammar_syntax('list = "a", [list];')
    ('ebnf', 'ebnf')
    """
    if _LARK.search(text):
        return "lark"
    names = _DOUBLE_COLON.findall(text)
    if names:
        return "gbnf" if "root" in names else "ebnf"
    return "ebnf" if _EQUALS.search(text) else "lark"


def request_language(
    kind: RequestKind,
    specification: str,
    *,
    any_whitespace: bool = True,
    additional_properties: bool = True,
) -> Language:
    """Returns the language of a request.

    Parameters
    ----------
    kind, specification
        See :data:`RequestKind`. Regular expressions are those of Python's :mod:`re` and match the
        whole answer. The notation of a grammar is that of :func:`grammar_syntax`.
    any_whitespace
        Whether JSON may contain whitespace between tokens: at most one character in each place, as
        is the default of :class:`~formalm.JsonSchema`. False is compact.
    additional_properties
        As for :class:`~formalm.JsonSchema`.

    Raises
    ------
    LanguageError
        If the specification is invalid or not supported.

    Examples
    --------
    >>> request_language("json", '{"type": "integer"}', any_whitespace=False).matches("12")
    True
    >>> request_language("choice", '["yes", "no"]')
    Choice(['yes', 'no'])
    """
    most = None if any_whitespace else 0
    if kind == "json":
        return JsonSchema(
            specification, max_whitespace=most, additional_properties=additional_properties
        )
    if kind == "json_object":
        return JsonSchema({"type": "object"}, max_whitespace=most)
    if kind == "regex":
        return Regex(specification)
    if kind == "choice":
        return Choice(_strings(specification))
    if kind == "grammar":
        if specification.lstrip().startswith("%llguidance"):
            raise LanguageError(
                "the grammar must be in Lark's notation, GBNF or EBNF, got the dialect of"
                " llguidance",
                hint="drop the line %llguidance, and write nested schemas as rules",
            )
        return Grammar(specification, grammar_syntax(specification))
    raise LanguageError(
        f"{kind} is not supported by formalm",
        hint="pass a JSON Schema, a regular expression, a grammar or a list of choices",
    )


def _strings(specification: str) -> list[str]:
    """Returns the strings of a JSON list."""
    found: Any
    try:
        found = json.loads(specification)
    except (ValueError, RecursionError):
        found = None
    if not isinstance(found, list) or not found or not all(isinstance(e, str) for e in found):
        raise LanguageError(
            f"choice must be a list of at least one string, got {specification[:80]}"
        )
    return [str(each) for each in found]
