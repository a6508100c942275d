"""Positions share masks by the top of their parser stacks; each mask is that of its definition."""

from random import Random

import pytest

from formalm import Constraint, Grammar, LanguageError, LimitError, Vocabulary
from formalm.reference.naive_mask import naive_mask
from tests.property.random_bracketed_grammars import bracketed, grammar, vocabulary

#: Documents of a grammar, all read with one constraint.
DOCUMENTS = 6


def check(seed: int, lexing: str) -> int:
    """Compare the masks along documents with their definition; how many masks, 0 if none."""
    random = Random(seed)
    (text, options), tokens = bracketed(random), vocabulary(random)
    try:
        constraint = Constraint(grammar(text, options, lexing), tokens)
    except (LanguageError, LimitError):
        return 0
    definition, compared = grammar(text, options, lexing), 0
    for _ in range(DOCUMENTS):
        matcher = constraint.matcher()
        for _ in range(14):
            mask = matcher.mask()
            expected = naive_mask(definition, tokens, matcher.text)
            assert mask.tolist() == expected.tolist(), (seed, text, matcher.text)
            # A constraint that has read nothing else finds the same mask.
            if random.random() < 0.1:
                fresh = Constraint(grammar(text, options, lexing), tokens).matcher()
                for token_id in matcher.token_ids:
                    fresh.advance(token_id)
                assert fresh.mask().tolist() == mask.tolist(), (seed, text, matcher.text)
            compared += 1
            allowed = [one for one in mask.nonzero()[0].tolist() if tokens.token_bytes(one)]
            if not allowed:
                break
            # Brackets open until some are, and then close in all orders.
            opening = [one for one in allowed if b"(" in tokens.token_bytes(one)]
            is_early = len(matcher.token_ids) < 6 and opening and random.random() < 0.5
            matcher.advance(random.choice(opening if is_early else allowed))
    return compared


def counts(seeds: range, lexing: str) -> int:
    """Return how many masks were compared."""
    compared = 0
    for seed in seeds:
        try:
            compared += check(seed, lexing)
        except LimitError:
            continue
    return compared


@pytest.mark.parametrize("lexing", ["any", "longest", "first"])
def test_masks_of_shared_positions_are_the_definition(lexing: str) -> None:
    assert counts(range(25), lexing) >= 600


@pytest.mark.parametrize("count", [200, 255, 256, 257, 700])
def test_tokens_of_many_lexemes_are_the_definition(count: int) -> None:
    text = 'start: "(" start ")" | "[" start "]" | start "*" "*" | "a"'
    tokens = [b"(", b")", b"[", b"]", b"a", b"*", b"(" * count, b")" * count, b"*" * count]
    tokens += [b"(" * count + b"a" + b")" * count, b")" * count + b"]", b"*" * count + b")"]
    vocabulary = Vocabulary.from_tokens([*tokens, None], end_token_ids=[len(tokens)])
    language, matcher = Grammar(text), Constraint(Grammar(text), vocabulary).matcher()
    for token_id in (2, 6, 4, 8, 5, 7):
        expected = naive_mask(language, vocabulary, matcher.text)
        assert matcher.mask().tolist() == expected.tolist()
        if not expected[token_id]:
            break
        matcher.advance(token_id)
    assert len(matcher.token_ids) >= 3


@pytest.mark.slow
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("lexing", ["any", "longest", "first"])
def test_masks_of_many_shared_positions_are_the_definition(lexing: str) -> None:
    assert counts(range(25, 1_000), lexing) >= 20_000
