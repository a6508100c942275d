"""Random indented grammars, alone and intersected with regular languages, have no dead ends."""

from itertools import product
from random import Random

import pytest

from formalm import LanguageError, LimitError, Regex
from tests.property.random_indented_grammars import outline

TEXTS = ["".join(text) for count in range(6) for text in product("xt\n ", repeat=count)]
PATTERNS = [None, "(?s).*x", "[^t]*", "(?s).{0,4}", "(?s)x.*"]


def check(seed: int) -> bool | None:
    """Compare what is viable with all short members; whether all was decided, None if empty."""
    random = Random(seed)
    grammar, pattern = outline(random), random.choice(PATTERNS)
    both = grammar if pattern is None else grammar & Regex(pattern)
    try:
        members = [text for text in TEXTS if grammar.matches(text)]
    except LanguageError:
        return None
    except LimitError:
        return False
    if pattern is not None:
        members = [text for text in members if Regex(pattern).matches(text)]
    begun = {text[:end] for text in members for end in range(len(text) + 1)}
    try:
        both.automaton()
        viable = [text for text in TEXTS if len(text) < 5 and both.is_viable(text)]
    except LanguageError:
        assert not members, seed
        return None
    except LimitError:
        return False
    assert begun.issubset({*viable, *(text for text in TEXTS if len(text) == 5)}), seed
    for text in viable:
        try:
            shortest = both.shortest(text)
        except LimitError:
            return False
        assert shortest is not None
        whole = shortest.decode()
        assert whole.startswith(text), (seed, text)
        assert both.matches(whole), (seed, text, whole)
        # Members with brackets are not among them, and may be shorter.
        longer = [len(member) for member in members if member.startswith(text)]
        assert not longer or len(whole) <= min(longer), (seed, text, whole)
    return True


def shares(seeds: range) -> tuple[int, int]:
    """How many grammars were decided, and how many were not."""
    verdicts = [check(seed) for seed in seeds]
    return verdicts.count(True), verdicts.count(False)


def test_outlines_have_no_dead_ends() -> None:
    decided, open_ones = shares(range(20))
    assert decided >= 8
    assert open_ones <= 1


@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_many_outlines_have_no_dead_ends() -> None:
    decided, open_ones = shares(range(20, 500))
    assert decided >= 200
    assert open_ones <= 10
