"""The constraints of generation loops as automata, against the loops themselves."""

from __future__ import annotations

from itertools import product

import pytest

from formalm import Choice, Constraint, Regex, Vocabulary
from formalm.languages import until
from formalm.reference.generation_constraints import (
    choice,
    end_token,
    intersection,
    stop_string,
    token_limit,
    union,
)
from formalm.reference.machine_diagrams import machine_diagram
from formalm.reference.outlines import CharacterMachine
from formalm.reference.relm import encodings

TOKENS = ["a", "b", "ab", "ba", "bb", "<end>"]
MOST = 4


def loop(stops, options=None) -> set[tuple[str, ...]]:
    """The sequences with which a loop ends that tests a condition after every token."""
    ended = set()
    running: list[tuple[str, ...]] = [()]
    for _ in range(MOST + 1):
        following = []
        for sequence in running:
            if stops(sequence):
                ended.add(sequence)
            elif len(sequence) < MOST:
                following += [(*sequence, token) for token in TOKENS]
        running = following
    return ended


@pytest.mark.parametrize("stop", ["b", "ab", "aba", "bab", "aab"])
def test_a_stop_string_is_what_the_loop_stops_at(stop: str) -> None:
    machine = stop_string(TOKENS, stop)
    assert encodings(machine, MOST) == loop(lambda sequence: stop in "".join(sequence))


def test_an_end_token_is_what_the_loop_stops_at() -> None:
    machine = end_token(TOKENS, "<end>")
    assert encodings(machine, MOST) == loop(lambda sequence: "<end>" in sequence)


@pytest.mark.parametrize("limit", range(4))
def test_a_limit_is_what_the_loop_stops_at(limit: int) -> None:
    machine = token_limit(TOKENS, limit)
    assert encodings(machine, MOST) == loop(lambda sequence: len(sequence) == limit)


def test_a_choice_is_all_ways_to_spell_an_option() -> None:
    options = ["abb", "ba", "a"]
    machine = choice(options, TOKENS)
    spelled = {
        sequence
        for length in range(MOST + 1)
        for sequence in product(TOKENS, repeat=length)
        if "".join(sequence) in options
    }
    assert encodings(machine, MOST) == spelled
    # No state leads nowhere: an option that no tokens spell is not begun.
    assert choice(["bc"], TOKENS).transitions == {0: {}}


def test_conditions_of_one_loop_are_one_machine() -> None:
    """A stop string, an end token and a limit, whichever comes first."""
    machine = union(
        union(stop_string(TOKENS, "abb"), end_token(TOKENS, "<end>")), token_limit(TOKENS, 3)
    )
    assert encodings(machine, MOST) == loop(
        lambda sequence: "abb" in "".join(sequence) or "<end>" in sequence or len(sequence) == 3
    )


def test_an_intersection_has_what_both_have() -> None:
    one, other = stop_string(TOKENS, "ab"), token_limit(TOKENS, 2)
    both = encodings(one, MOST) & encodings(other, MOST)
    assert encodings(intersection(one, other), MOST) == both


def test_the_languages_are_the_machines_without_overrun() -> None:
    """A language ends with its stop string; the loop may stop in the middle of a token."""
    tokens = TOKENS[:-1]
    vocabulary = Vocabulary.from_tokens([token.encode() for token in tokens])

    def paths(language) -> set[tuple[str, ...]]:
        automaton = Constraint(language, vocabulary).to_automaton()
        return {tuple(tokens[i] for i in ids) for ids in automaton.enumerate(max_tokens=MOST)}

    stopped = encodings(stop_string(tokens, "ab"), MOST)
    exact = {path for path in stopped if "".join(path).endswith("ab")}
    ours = paths(until("ab") & Regex("[ab]*"))
    # A token may end the stop string only where nothing before it did.
    assert ours == {path for path in exact if "".join(path).index("ab") + 2 == len("".join(path))}
    assert paths(Choice(["abb", "ba"])) == encodings(choice(["abb", "ba"], tokens), MOST)


def test_pictures_name_the_few_tokens_that_differ() -> None:
    tokens = [*"abcdefgh", "."]
    diagram = machine_diagram(stop_string(tokens, "."), "stop at .", alphabet=tokens)
    assert diagram.edges == ((0, ".", 1), (0, "any but .", 0))
    diagram = machine_diagram(token_limit(tokens, 2), "2 tokens", alphabet=tokens)
    assert diagram.edges == ((0, "any", 1), (1, "any", 2))
    lone = CharacterMachine({4: {"a": 7}, 7: {}}, 4, frozenset({7}))
    assert machine_diagram(lone, "a").edges == ((0, "a", 1),)
