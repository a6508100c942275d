"""Languages and constraints written out: every state, every edge, every member in order."""

from formalm.automata.automaton import Automaton
from formalm.automata.tokens import TokenAutomaton

__all__ = ["Automaton", "TokenAutomaton"]
