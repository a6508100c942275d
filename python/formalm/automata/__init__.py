"""Minimal automata of languages and constraints: states, edges, counts, ranking, traces."""

from formalm.automata.alphabet import Alphabet
from formalm.automata.automaton import Automaton
from formalm.automata.token_automaton import TokenAutomaton
from formalm.automata.trace import Trace, TraceStep

__all__ = ["Alphabet", "Automaton", "TokenAutomaton", "Trace", "TraceStep"]
