"""Masks of random grammars equal their definition, also after forks and evictions."""

from random import Random

import pytest

from formalm import Constraint, Grammar, LanguageError, LimitError, Vocabulary
from formalm.reference.naive_mask import naive_mask
from tests.property.random_grammars import grammar_text

#: Masks of a few steps fit: others are let go of and made again.
LITTLE = 400


def random_vocabulary(random: Random) -> Vocabulary:
    words = {"".join(random.choices("abc", k=random.randint(1, 6))) for _ in range(40)}
    tokens = [word.encode() for word in sorted(words | {"a", "b", "c"})]
    return Vocabulary.from_tokens([*tokens, None], end_token_ids=[len(tokens)])


def check(seed: int, lexing: str) -> bool:
    """Walk a grammar beside the definition; whether there was one to walk."""
    random = Random(seed)
    text, vocabulary = grammar_text(random), random_vocabulary(random)
    memory = random.choice([None, LITTLE])
    try:
        constraint = Constraint(Grammar(text, lexing=lexing), vocabulary, memory_limit_bytes=memory)
    except (LanguageError, LimitError):
        return False
    # The definition asks a machine of its own, byte by byte.
    definition = Grammar(text, lexing=lexing)
    matchers = [constraint.matcher()]
    for _ in range(25):
        matcher = random.choice(matchers)
        try:
            mask = matcher.mask()
            expected = naive_mask(definition, vocabulary, matcher.text)
        except LimitError:
            return False
        assert mask.tolist() == expected.tolist(), (text, matcher.text)
        assert matcher.mask().tolist() == mask.tolist()
        allowed = [one for one in mask.nonzero()[0].tolist() if vocabulary.token_bytes(one)]
        steps = len(matcher.token_ids)
        if not allowed or steps > 8 or (steps and random.random() < 0.2):
            if random.random() < 0.5:
                matcher.rollback(random.randint(0, steps))
            else:
                matcher.reset()
        elif random.random() < 0.2:
            matchers.append(matcher.fork())
        else:
            matcher.advance(random.choice(allowed))
    return True


@pytest.mark.parametrize("lexing", ["any", "longest", "first"])
def test_masks_are_the_definition(lexing: str) -> None:
    walked = sum(check(seed, lexing) for seed in range(40))
    assert walked >= 15


@pytest.mark.slow
@pytest.mark.parametrize("lexing", ["any", "longest", "first"])
def test_masks_of_many_grammars_are_the_definition(lexing: str) -> None:
    walked = sum(check(seed, lexing) for seed in range(40, 2_000))
    assert walked >= 800
