"""Algorithms 1 and 2 of "Validating Large Language Models with ReLM", appendix B.

Kuchnik, Smith, Amvrosiadis, 2023. A word of the tokenizer that an automaton reads on a walk is a
"shortcut" edge from the walk's first vertex to its last. With all these edges, the automaton's
paths are all encodings of its strings::

    0 ─T─▶ 1 ─h─▶ 2 ─e─▶ 3        Th: 0 ─▶ 2    he: 1 ─▶ 3    The: 0 ─▶ 3

The oracle of :meth:`formalm.Constraint.to_automaton`.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass

from formalm.languages import Language
from formalm.reference.outlines import CharacterMachine

__all__ = [
    "Walk",
    "add_ambiguous_edges",
    "byte_machine",
    "connecting_walks",
    "encodings",
    "without_dead_ends",
]


@dataclass(frozen=True)
class Walk:
    """The two ends of a walk that reads a word."""

    vertex_from: int
    vertex_to: int


def byte_machine(language: Language) -> CharacterMachine:
    """Returns a language's automaton, each byte as the character with its number.

    ReLM: "It is thus necessary to break up the characters into byte sequences via rewrites before
    the algorithm presented here is run". Words are then written in the same way, by
    ``token.decode("latin-1")``.
    """
    automaton = language.to_automaton()
    transitions: dict[int, dict[str, int]] = {state: {} for state in range(automaton.state_count)}
    for source, first, last, target in automaton.edges().tolist():
        transitions[source].update({chr(byte): target for byte in range(first, last + 1)})
    return CharacterMachine(transitions, automaton.start, automaton.accepting)


def connecting_walks(automaton: CharacterMachine, word: str) -> list[Walk]:
    """Algorithm 1: the walks that read ``word``, at most one from each vertex.

    Examples
    --------
    >>> from formalm import StringLiteral
    >>> connecting_walks(byte_machine(StringLiteral("The")), "he")
    [Walk(vertex_from=1, vertex_to=3)]
    """
    all_matching_walks = []
    for vertex in automaton.transitions:
        end = _dfs_match(automaton, vertex, word)
        if end is not None:
            all_matching_walks.append(Walk(vertex, end))
    return all_matching_walks


def _dfs_match(automaton: CharacterMachine, vertex: int, word: str) -> int | None:
    """Returns where ``word`` leads; the automaton is deterministic, so nothing backtracks."""
    for character in word:
        following = automaton.transitions[vertex].get(character)
        if following is None:
            return None
        vertex = following
    return vertex


def add_ambiguous_edges(
    automaton: CharacterMachine, words: Collection[str], *, as_listed: bool = False
) -> CharacterMachine:
    """Algorithm 2: the automaton with an edge for every walk that reads a word.

    Parameters
    ----------
    automaton
        A machine over characters, or bytes: see :func:`byte_machine`.
    words
        The tokens, the keys of the paper's ``word_token_map``.
    as_listed
        The listing keeps all edges of single characters, as if each were a token. Otherwise, edges
        that are no word are removed, and with them the vertices from which no words spell the rest.

    Returns
    -------
    CharacterMachine
        Its transitions are labeled with words.

    Examples
    --------
    >>> from formalm import StringLiteral
    >>> words = ["T", "h", "e", "Th", "he", "The"]
    >>> ambiguous = add_ambiguous_edges(byte_machine(StringLiteral("The")), words)
    >>> for encoding in sorted(encodings(ambiguous, 3)):
    ...     print("-".join(encoding))
    T-h-e
    T-he
    Th-e
    The
    """
    edges = {vertex: dict(row) for vertex, row in automaton.transitions.items()}
    for word in words:
        if len(word) > 1:
            for walk in connecting_walks(automaton, word):
                edges[walk.vertex_from][word] = walk.vertex_to
    if as_listed:
        return CharacterMachine(edges, automaton.start, automaton.accepting)
    known = set(words)
    edges = {
        vertex: {word: target for word, target in row.items() if word in known}
        for vertex, row in edges.items()
    }
    return without_dead_ends(CharacterMachine(edges, automaton.start, automaton.accepting))


def without_dead_ends(machine: CharacterMachine) -> CharacterMachine:
    """Returns the machine without edges to states from which nothing is accepted."""
    live = set(machine.accepting)
    while more := {
        state
        for state, row in machine.transitions.items()
        if state not in live and live & set(row.values())
    }:
        live |= more
    transitions = {
        state: {label: target for label, target in row.items() if target in live}
        for state, row in machine.transitions.items()
        if state in live or state == machine.start
    }
    return CharacterMachine(transitions, machine.start, machine.accepting)


def encodings(machine: CharacterMachine, most: int) -> set[tuple[str, ...]]:
    """Returns the paths of at most ``most`` edges to an accepting state: brute force."""
    found = set()
    paths: Mapping[tuple[str, ...], int] = {(): machine.start}
    for length in range(most + 1):
        found |= {path for path, state in paths.items() if state in machine.accepting}
        if length < most:
            paths = {
                (*path, label): target
                for path, state in paths.items()
                for label, target in machine.transitions[state].items()
            }
    return found
