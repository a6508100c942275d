"""Languages and constraints written out: every state, every edge, every member in order."""

from formalm.automata.automaton import Automaton
from formalm.automata.texts import text_bytes
from formalm.automata.tokens import TokenAutomaton

__all__ = ["Automaton", "TokenAutomaton", "text_bytes"]
