"""Comparison of two languages by lazy product, and construction of minimal automata."""

from __future__ import annotations

from typing import TYPE_CHECKING

from formalm import _core
from formalm.argument_checks import checked_integer, counts_characters, is_inclusion
from formalm.automata.automaton import Automaton
from formalm.automata.text_of_bytes import as_text
from formalm.errors import LanguageError
from formalm.languages.algebra import as_language

if TYPE_CHECKING:
    from formalm.argument_checks import Relation, Unit
    from formalm.languages.language import Language

__all__ = ["difference", "written_out"]

# The lazy machine visits states before they are known to be live.
_LAZY_STATES_PER_STATE = 4
_LAZY_STATES = 250_000


def written_out(language: Language, state_limit: int, max_bytes: int | None) -> Automaton:
    """Returns the minimal automaton of a language, or of its members up to a number of bytes."""
    checked_integer("state_limit", state_limit, least=1)
    if max_bytes is not None:
        checked_integer("max_bytes", max_bytes)
        return Automaton(_core.Graph.of(language.machine(), state_limit, max_bytes))
    lazy_limit = _LAZY_STATES_PER_STATE * state_limit
    if lazy_limit <= 2 * _LAZY_STATES:
        machine = language.machine()
    else:
        machine = language.machine(state_limit=min(lazy_limit, 1 << 62))
    return Automaton(_core.Graph.of(machine, state_limit))


def difference(
    left: Language, other: object, relation: Relation, unit: Unit | None, state_limit: int
) -> str | bytes | None:
    """Returns the shortest string that refutes a relation; None if it holds.

    Without a unit of length, it returns any such string.
    """
    right = as_language(other)
    checked_integer("state_limit", state_limit, least=1)
    inclusion = is_inclusion(relation)
    characters = unit is not None and counts_characters(unit)
    machines = (left.machine(), right.machine())
    if characters:
        for language, machine in zip((left, right), machines, strict=True):
            if machine is not None and not machine.is_text(state_limit):
                raise LanguageError(
                    f"a length in characters needs UTF-8, and some member of {language!r} is"
                    " not UTF-8",
                    hint='pass unit="bytes"',
                )
    if left is right:
        return None
    found = _core.Automaton.difference(
        *machines, inclusion=inclusion, characters=characters, pair_limit=state_limit
    )
    return None if found is None else as_text(found)
