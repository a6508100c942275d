"""Comparison of JSON Schemas: equivalence and inclusion of their instances."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, NamedTuple, cast

from formalm.argument_checks import is_inclusion
from formalm.automata.text_of_bytes import text_bytes
from formalm.errors import ArgumentError, LimitError

if TYPE_CHECKING:
    from formalm.argument_checks import Relation
    from formalm.languages.json_schema.language import JsonSchema

__all__ = ["Comparison", "SchemaQuestions"]

#: Strings, whose whitespace is kept, and whitespace outside strings.
_GAPS = re.compile(rb'("(?:[^"\\]|\\.)*")|[ \t\n\r]+', re.DOTALL)


class Comparison(NamedTuple):
    """The result of comparing two schemas.

    Attributes
    ----------
    holds
        Whether the relation holds; None if unknown.
    witness
        An instance that refutes it, as JSON text; None if it holds, is unknown, or no instance was
        found within the limits.
    reason
        The reason why something is unknown; None otherwise.
    """

    holds: bool | None
    witness: str | None = None
    reason: str | None = None


class SchemaQuestions:
    """The methods of :class:`~formalm.JsonSchema` about instances, whatever their layout."""

    __slots__ = ()

    def accepts(self, text: str | bytes) -> bool:
        r"""Returns whether a text is JSON and an instance of the schema, whatever its layout.

        :meth:`matches` also checks the layout that the options fix.

        Examples
        --------
        >>> from formalm import JsonSchema
        >>> point = JsonSchema({"properties": {"x": {}, "y": {"type": "integer"}}})
        >>> backwards = '{ "\u0079" :  1, "x":0}'
        >>> point.matches(backwards), point.accepts(backwards), point.accepts('{"y": 1.5}')
        (False, True, False)
        """
        data = text_bytes(text)
        if data is None:
            return False
        machine = cast("JsonSchema", self).loose().machine()
        shorter = _GAPS.sub(lambda found: found[1] or b" ", data.strip(b" \t\n\r"))
        return machine is not None and machine.matches(shorter)

    def compare(self, other: JsonSchema, relation: Relation = "equivalence") -> Comparison:
        """Decides whether two schemas have the same instances, or whether one includes the other.

        It looks for an instance of one that is not an instance of the other. The layout does not
        matter: property order, whitespace and escapes may differ, and so may drafts and formats.
        Each schema keeps its own resources and identifiers. :meth:`Language.equivalent` compares
        texts.

        Parameters
        ----------
        other
            A schema, a TypeScript type or a Python type.
        relation
            ``"equivalence"``, or ``"inclusion"``: every instance of this schema is an instance of
            the other.

        Returns
        -------
        Comparison
            ``holds`` is None if the search exceeds its limits or a schema is inexact.

        Raises
        ------
        LanguageError
            For an invalid schema, with its place.

        Examples
        --------
        >>> from formalm import JsonSchema
        >>> small, large = JsonSchema({"maximum": 5}), JsonSchema({"maximum": 6})
        >>> small.compare(large, "inclusion").holds, large.compare(small, "inclusion").witness
        (True, '6')
        """
        from formalm.languages.json_schema.language import JsonSchema

        if not isinstance(other, JsonSchema):
            raise ArgumentError(f"other must be a JsonSchema, got {type(other).__name__}")
        this = cast("JsonSchema", self)
        sides = [(this, other)]
        if not is_inclusion(relation):
            sides.append((other, this))
        found = [_only_left(left, right) for left, right in sides]
        # A refutation decides, whatever else is unknown.
        refuted = [one for one in found if one.holds is False]
        unknown = [one for one in found if one.holds is None]
        return (refuted or unknown or found)[0]


def _only_left(left: JsonSchema, right: JsonSchema) -> Comparison:
    """Returns whether all instances of one schema are instances of the other."""
    try:
        plain, other = (one.varied(max_depth=None)._described() for one in (left, right))
        machine, remarks = plain.difference(other)
    except LimitError as error:
        return Comparison(None, None, f"the search exceeds its limits: {error.message}")
    inexact = [f"{place}: {message}" for place, message, effect in remarks if effect != "exact"]
    if machine is None:
        return Comparison(None, None, inexact[0]) if inexact else Comparison(True)
    try:
        witness = machine.shortest()
    except LimitError as error:
        reason = f"a witness was not found within the limits: {error.message}"
        return Comparison(None if inexact else False, None, reason)
    if witness is None or (inexact and not _is_between(witness, left, right)):
        return Comparison(None, None, inexact[0])
    return Comparison(False, witness.decode())


def _is_between(witness: bytes, left: JsonSchema, right: JsonSchema) -> bool:
    """Returns whether a text is an instance of exactly one of the schemas, checked separately."""
    try:
        json.loads(witness)
        sides = [one.varied(approximate=True).accepts(witness) for one in (left, right)]
    except (ValueError, LimitError):
        return False
    return sides == [True, False]
