"""Random grammars met with regular languages: members are in both, and nothing is a dead end.

Where lexemes are free everything is decided; where they compete a limit may be reached instead.
"""

from itertools import product
from random import Random

import pytest

from formalm import Grammar, LanguageError, LimitError, Regex
from tests.property.random_grammars import grammar_text, pattern

TEXTS = ["".join(t) for n in range(6) for t in product("abc", repeat=n)]


def check(seed: int, lexing: str) -> int:
    """Compare an intersection or a difference with its parts; how many texts were viable."""
    random = Random(seed)
    text, other, difference = grammar_text(random), pattern(random), random.random() < 0.4
    grammar, regular = Grammar(text, lexing=lexing), Regex(other)
    both = grammar - regular if difference else grammar & regular
    try:
        grammar.automaton()
    except (LanguageError, LimitError):
        return 0
    members = set()
    for one in TEXTS:
        try:
            in_grammar = grammar.matches(one)
        except LimitError:
            return 0
        if in_grammar and regular.matches(one) is not difference:
            members.add(one)
    alive = {one[:end] for one in members for end in range(len(one) + 1)}
    shown = (text, other, difference)
    try:
        both.automaton()
    except LanguageError:
        assert not members, shown
        return 0
    except LimitError:
        assert lexing != "any", shown
        return 0
    viable_count = 0
    for one in TEXTS:
        try:
            matches, viable = both.matches(one), both.is_viable(one)
            rest = both.shortest(one) if viable else None
        except LimitError:
            # It gives up where it would have to guess.
            assert lexing != "any", shown
            return viable_count
        assert matches == (one in members), (shown, one)
        assert viable or one not in alive, (shown, one)
        if viable:
            assert rest is not None
            whole = rest.decode()
            longer = [len(member) for member in members if member.startswith(one)]
            assert not longer or len(whole) == min(longer), (shown, one, whole)
            assert whole.startswith(one), (shown, one)
            assert grammar.matches(whole), (shown, one, whole)
            assert regular.matches(whole) is not difference, (shown, one, whole)
            viable_count += 1
    return viable_count


@pytest.mark.parametrize("lexing", ["any", "longest", "first"])
def test_intersections_have_no_dead_ends(lexing: str) -> None:
    assert sum(check(seed, lexing) for seed in range(40)) >= 200


@pytest.mark.slow
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("lexing", ["any", "longest", "first"])
def test_many_intersections_have_no_dead_ends(lexing: str) -> None:
    assert sum(check(seed, lexing) for seed in range(40, 1_000)) >= 5_000
