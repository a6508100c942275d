"""Laws of special tokens: masks by their definition, and as of symbols that are nothing else."""

from __future__ import annotations

from random import Random

import pytest

from formalm import Choice, Constraint, Language, Regex, SpecialToken, StringLiteral, Vocabulary
from formalm.reference.naive_mask import naive_mask
from tests.support.special_tokens import CASES, ID, TOKENS, VOCABULARY

SIGN = {264: "\ue000", 265: "\ue001"}


@pytest.mark.parametrize("number", range(len(CASES)))
def test_masks_are_as_defined(number: int) -> None:
    """A token is allowed iff some member goes on with it, and special tokens have no parts."""
    language = CASES[number]
    constraint, automaton = Constraint(language, VOCABULARY), language.automaton()
    named = {ID[name]: SpecialToken(name).data for name in ("<|call|>", "<|done|>")}
    named = {at: data for at, data in named.items() if constraint.spelled.token_bytes(at)}
    spelled = {at: t for at, t in enumerate(TOKENS) if t and b"\xfe" not in t} | named
    random = Random(number)
    for _ in range(6):
        matcher = constraint.matcher()
        for _ in range(14):
            text = matcher.text
            wanted = [
                at
                for at, data in spelled.items()
                if automaton.viable_length(text + data) == len(text + data)
            ]
            wanted += [267] * matcher.is_accepting
            assert matcher.allowed_token_ids().tolist() == sorted(wanted)
            assert (matcher.mask() == naive_mask(language, VOCABULARY, text)).all()
            allowed = [at for at in wanted if at != 267]
            if not allowed:
                break
            rare = [at for at in allowed if at >= 256 or chr(at) in "<|qf0n"]
            matcher.advance(random.choice(rare if rare and random.random() < 0.7 else allowed))
        assert matcher.is_accepting == language.matches(matcher.text)


def random_language(random: Random, depth: int, sign: bool) -> Language:
    """A language over special tokens, or the same one over signs in their place."""
    if depth == 0:
        kind = random.randrange(4)
        if kind < 2:
            at = 264 + kind
            name = next(name for name, one in ID.items() if one == at)
            return StringLiteral(SIGN[at]) if sign else SpecialToken(name)
        return [Regex("[a<|]*"), Choice(["<|call|>", "a", ""])][kind - 2]
    kind = random.randrange(5)
    one = random_language(random, depth - 1, sign)
    if kind == 0:
        return one.repeat(random.randrange(2), random.choice([2, 3, None]))
    other = random_language(random, depth - 1, sign)
    return [one, one + other, one | other, (one | other) - other, one + other][kind]


@pytest.mark.parametrize("seed", range(30))
def test_special_tokens_are_symbols(seed: int) -> None:
    """The same masks as of characters that nothing else in the language has."""
    signs: list[bytes | None] = [*TOKENS[:264], *(one.encode() for one in SIGN.values()), None]
    signs[256 + 4 : 256 + 8] = [None] * 4
    signs[0xFE] = None
    other = Vocabulary.from_tokens([*signs, None], [267])
    language = random_language(Random(seed), 3, sign=False)
    twin = random_language(Random(seed), 3, sign=True)
    assert language.is_empty() == twin.is_empty()
    if language.is_empty():
        return
    left, right = Constraint(language, VOCABULARY), Constraint(twin, other)
    random = Random(seed)
    for _ in range(8):
        one, two = left.matcher(), right.matcher()
        for _ in range(8):
            # Bytes of the signs alone are no special tokens.
            allowed = one.allowed_token_ids().tolist()
            expected = [at for at in two.allowed_token_ids().tolist() if at not in (0xEE,)]
            assert allowed == expected
            assert one.is_accepting == two.is_accepting
            if allowed in ([], [267]):
                break
            token = random.choice([at for at in allowed if at != 267])
            one.advance(token)
            two.advance(token)
