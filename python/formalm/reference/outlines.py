"""Algorithms 1 to 4 of "Efficient Guided Generation for Large Language Models".

Willard and Louf, arXiv:2307.09702. The machine reads characters, and the index from its states to
tokens is complete before the first token is drawn.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from formalm.constraint import Constraint, Matcher
from formalm.errors import LimitError
from formalm.languages import Language
from formalm.vocabulary import Vocabulary

__all__ = [
    "CharacterMachine",
    "find_sub_sequences",
    "map_states_to_vocabulary",
    "sample_tokens",
    "sample_tokens_with_masking",
]

Model = Callable[[tuple[str, ...]], npt.NDArray[np.float64]]


@dataclass(frozen=True)
class CharacterMachine:
    """A deterministic machine (Q, Σ, δ, q₀, F) over characters, without dead states.

    Attributes
    ----------
    transitions
        δ: state → character → state.
    start
        q₀.
    accepting
        F.
    """

    transitions: Mapping[int, Mapping[str, int]]
    start: int
    accepting: frozenset[int]

    @classmethod
    def of(cls, language: Language, alphabet: Iterable[str], limit: int = 1000) -> CharacterMachine:
        """The machine of a language over a small alphabet.

        Raises
        ------
        LimitError
            If it has more than ``limit`` states.
        """
        characters = sorted(set(alphabet))
        vocabulary = Vocabulary.from_tokens([character.encode() for character in characters])
        states: dict[int, int] = {}
        transitions: dict[int, dict[str, int]] = {}
        accepting = set()

        def number(matcher: Matcher) -> int:
            return states.setdefault(matcher.state_key, len(states))

        waiting = [Constraint(language, vocabulary).matcher()]
        start = number(waiting[0])
        while waiting:
            matcher = waiting.pop()
            state = number(matcher)
            if state in transitions:
                continue
            if len(states) > limit:
                raise LimitError("states", len(states), limit)
            row = transitions[state] = {}
            if matcher.is_accepting:
                accepting.add(state)
            for token_id in matcher.allowed_token_ids().tolist():
                following = matcher.fork()
                following.advance(token_id)
                row[characters[token_id]] = number(following)
                waiting.append(following)
        return cls(transitions, start, frozenset(accepting))


def sample_tokens(
    model: Model, tokens: Sequence[str], end: str, length: int, generator: np.random.Generator
) -> list[str]:
    """Algorithm 1: draw at most ``length`` tokens, up to the end token."""
    drawn: list[str] = []
    for _ in range(length):
        probabilities = model(tuple(drawn))
        token = tokens[int(generator.choice(len(tokens), p=probabilities))]
        if token == end:
            break
        drawn.append(token)
    return drawn


def sample_tokens_with_masking(
    model: Model,
    tokens: Sequence[str],
    end: str,
    machine: CharacterMachine,
    length: int,
    generator: np.random.Generator,
) -> list[str]:
    """Algorithm 2: the same, with the mask of the machine's state looked up in the index."""
    index = map_states_to_vocabulary(machine, [token for token in tokens if token != end])
    state = machine.start
    drawn: list[str] = []
    for _ in range(length):
        allowed = index[state] | ({end} if state in machine.accepting else set())
        mask = np.array([token in allowed for token in tokens])
        if not mask.any():
            break
        masked = model(tuple(drawn)) * mask
        token = tokens[int(generator.choice(len(tokens), p=masked / masked.sum()))]
        if token == end:
            break
        drawn.append(token)
        for character in token:
            state = machine.transitions[state][character]
    return drawn


def find_sub_sequences(machine: CharacterMachine, token: str) -> list[tuple[int, ...]]:
    """Algorithm 3: the state sequences that read ``token``, one for each state that can.

    The paper's listing appends the empty sequence where the machine gets stuck; it is left out
    here.
    """
    found = []
    for start in machine.transitions:
        states = [start]
        for character in token:
            following = machine.transitions[states[-1]].get(character)
            if following is None:
                break
            states.append(following)
        else:
            found.append(tuple(states))
    return found


def map_states_to_vocabulary(
    machine: CharacterMachine, tokens: Iterable[str]
) -> dict[int, set[str]]:
    r"""Algorithm 4: the index, from each state to the tokens it can read.

    Examples
    --------
    >>> from formalm import Regex
    >>> machine = CharacterMachine.of(Regex(r"[0-9]+\.[0-9]+"), "a.12")
    >>> index = map_states_to_vocabulary(machine, ["a", ".", ".2", "1"])
    >>> sorted(index[machine.start])
    ['1']
    >>> sorted(index[machine.transitions[machine.start]["1"]])
    ['.', '.2', '1']
    """
    index: dict[int, set[str]] = {state: set() for state in machine.transitions}
    for token in tokens:
        for states in find_sub_sequences(machine, token):
            index[states[0]].add(token)
    return index
