"""Minimal automata of languages and constraints: states, edges, counts, ranking, sampling."""

from formalm.automata.automaton import Automaton
from formalm.automata.tokens import TokenAutomaton

__all__ = ["Automaton", "TokenAutomaton"]
