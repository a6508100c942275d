"""Masks are as defined, and steps are as stated, on random languages, vocabularies and walks."""

import numpy as np
from hypothesis import assume, given, reject
from hypothesis import strategies as st

from formalm import (
    Constraint,
    Language,
    LanguageError,
    LimitError,
    Matcher,
    Regex,
    Vocabulary,
    fill_bitmasks,
    new_bitmask,
)
from formalm.reference.naive_mask import naive_mask

# Characters of one to four bytes, two of which share their first bytes.
ALPHABET = "ab1é€è😀"
PIECES = [*ALPHABET, "[ab]", "[^a]", ".", r"\w", r"\d", "[é-€]", "(?:)"]


def patterns() -> st.SearchStrategy[str]:
    def longer(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
        grouped = inner.map(lambda text: f"(?:{text})")
        return st.one_of(
            st.tuples(inner, inner).map("".join),
            st.tuples(inner, inner).map("|".join),
            st.tuples(grouped, st.sampled_from(["*", "+", "?", "{2}", "{1,3}", "{0,40}"])).map(
                "".join
            ),
        )

    return st.recursive(st.sampled_from(PIECES), longer, max_leaves=6)


@st.composite
def languages(draw: st.DrawFn) -> Language:
    language: Language = Regex(draw(patterns()))
    for operator in draw(st.lists(st.sampled_from("|&-+~*erR"), max_size=2)):
        other = Regex(draw(patterns()))
        if operator == "|":
            language = language | other
        elif operator == "&":
            language = language & other
        elif operator == "-":
            language = language - other
        elif operator == "+":
            language = language + other
        elif operator == "~":
            language = ~language
        elif operator == "e":
            language = language.edits(
                draw(st.integers(0, 2)), alphabet=draw(st.sampled_from(["a€", None]))
            )
        elif operator == "r":
            language = language.rewrite({"a": ["b", "é1"], "1é": ""}, optional=draw(st.booleans()))
        elif operator == "R":
            language = language.reverse()
        else:
            language = language * (0, 2)
    return language


@st.composite
def vocabularies(draw: st.DrawFn) -> Vocabulary:
    """Random slices of random texts, so that tokens begin and end inside characters."""
    texts = draw(st.lists(st.text(ALPHABET, min_size=1, max_size=5), min_size=1, max_size=12))
    tokens: list[bytes | None] = []
    for text in texts:
        data = text.encode()
        start = draw(st.integers(0, len(data) - 1))
        tokens.append(data[start : draw(st.integers(start + 1, len(data)))])
    tokens += [bytes([byte]) for byte in "ab1é€😀".encode()]
    tokens += draw(st.lists(st.just(None), max_size=2))
    tokens.append(None)
    return Vocabulary.from_tokens(tokens, end_token_ids=[len(tokens) - 1])


@st.composite
def constraints(draw: st.DrawFn) -> Constraint:
    language = draw(languages())
    try:
        return Constraint(language, draw(vocabularies()))
    except (LanguageError, LimitError):
        assume(False)
        raise


@given(constraints(), st.data())
def test_a_mask_is_its_definition_along_every_walk(
    constraint: Constraint, data: st.DataObject
) -> None:
    matcher = constraint.matcher()
    vocabulary = constraint.vocabulary
    for _ in range(data.draw(st.integers(0, 6))):
        mask = matcher.mask()
        assert np.array_equal(mask, naive_mask(constraint.language, vocabulary, matcher.text))
        assert matcher.is_accepting == constraint.language.matches(matcher.text)
        allowed = matcher.allowed_token_ids()
        assert np.array_equal(allowed, np.flatnonzero(mask))
        assert [matcher.allows(i) for i in range(len(vocabulary))] == mask.tolist()
        steps = [i for i in allowed.tolist() if i not in vocabulary.end_token_ids]
        if not steps:
            break
        matcher.advance(data.draw(st.sampled_from(steps)))


@given(constraints(), st.data())
def test_bits_masks_and_explanations_agree(constraint: Constraint, data: st.DataObject) -> None:
    matcher = constraint.matcher()
    walk(matcher, data)
    mask = matcher.mask()
    out = new_bitmask(2, constraint.width)
    matcher.fill_bitmask(out, 1)
    bits = np.unpackbits(out[1].view(np.uint8), bitorder="little")[: len(mask)].astype(bool)
    assert np.array_equal(bits, mask)
    assert np.array_equal(matcher.bitmask(), out[1])
    assert not out[0].any()
    fill_bitmasks([matcher, matcher.fork()], out)
    assert np.array_equal(out[0], out[1])
    for token_id in range(len(mask)):
        explanation = matcher.explain(token_id)
        assert explanation.allowed == mask[token_id]
        if explanation.token and not explanation.allowed:
            good = matcher.text + explanation.token[: explanation.viable_bytes]
            bad = matcher.text + explanation.token[: explanation.viable_bytes + 1]
            assert constraint.language.is_viable(good)
            assert not constraint.language.is_viable(bad)
            assert all(
                constraint.language.is_viable(good + bytes([byte]))
                == (byte in explanation.expected)
                for byte in range(0, 256, 7)
            )


@given(constraints(), st.data())
def test_rollback_inverts_advance(constraint: Constraint, data: st.DataObject) -> None:
    matcher = constraint.matcher()
    before = [(matcher.state_key, matcher.text, matcher.mask())]
    for _ in range(data.draw(st.integers(0, 5))):
        steps = matcher.allowed_token_ids().tolist()
        if not steps:
            break
        matcher.advance(data.draw(st.sampled_from(steps)))
        before.append((matcher.state_key, matcher.text, matcher.mask()))
    while len(before) > 1:
        key, text, mask = before.pop()
        assert (matcher.state_key, matcher.text) == (key, text)
        assert np.array_equal(matcher.mask(), mask)
        matcher.rollback()
    assert matcher.token_ids == []


@given(constraints(), st.data())
def test_a_fork_is_independent(constraint: Constraint, data: st.DataObject) -> None:
    matcher = constraint.matcher()
    walk(matcher, data)
    fork = matcher.fork()
    state = (matcher.text, matcher.token_ids, matcher.is_accepting)
    walk(fork, data)
    assert (matcher.text, matcher.token_ids, matcher.is_accepting) == state
    if fork.text == matcher.text:
        assert np.array_equal(fork.mask(), matcher.mask())


@given(constraints(), st.data())
def test_cached_is_fresh(constraint: Constraint, data: st.DataObject) -> None:
    matcher = constraint.matcher()
    walk(matcher, data)
    fresh = Constraint(constraint.language, constraint.vocabulary).matcher()
    fresh.advance_bytes(matcher.text)
    assert np.array_equal(matcher.mask(), fresh.mask())
    assert matcher.forced_bytes() == fresh.forced_bytes()


@given(constraints(), st.data())
def test_forced_tokens_are_the_only_allowed_ones(
    constraint: Constraint, data: st.DataObject
) -> None:
    matcher = constraint.matcher()
    walk(matcher, data)
    forced = matcher.forced_bytes()
    for length in range(len(forced)):
        text = matcher.text + forced[:length]
        ways = [b for b in range(256) if constraint.language.is_viable(text + bytes([b]))]
        assert ways == [forced[length]]
        assert not constraint.language.matches(text)


@given(constraints(), st.data())
def test_advance_many_takes_what_advance_takes(constraint: Constraint, data: st.DataObject) -> None:
    ids = data.draw(st.lists(st.integers(0, len(constraint.vocabulary) - 1), max_size=6))
    together, single = constraint.matcher(), constraint.matcher()
    accepted = together.advance_many(ids)
    for token_id in ids[:accepted]:
        single.advance(token_id)
    if accepted < len(ids):
        assert not single.allows(ids[accepted])
    assert together.text == single.text


@given(constraints(), st.integers(0, 6))
def test_the_shortest_completion_is_one(constraint: Constraint, limit: int) -> None:
    matcher = constraint.matcher()
    found = constraint.core.shortest_token_ids(matcher.core, limit)
    if found is not None:
        assert len(found) <= limit
        matcher.advance_many(found)
        assert matcher.is_accepting
        if found:
            assert (
                constraint.core.shortest_token_ids(constraint.matcher().core, len(found) - 1)
                is None
            )


@given(languages(), languages(), st.text(ALPHABET, max_size=4))
def test_algebra_is_that_of_sets(one: Language, two: Language, text: str) -> None:
    def has(language: Language) -> bool:
        return matches(language, text)

    assert has(one | two) == (has(one) or has(two))
    assert has(one & two) == (has(one) and has(two))
    assert has(one - two) == (has(one) and not has(two))
    assert has(~one) == (not has(one))
    cuts = range(len(text) + 1)
    halves = any(matches(one, text[:cut]) and matches(two, text[cut:]) for cut in cuts)
    assert has(one + two) == halves


def matches(language: Language, text: str) -> bool:
    try:
        return language.matches(text)
    except LanguageError:  # the empty language
        return False
    except LimitError:  # complements inside concatenations may need more steps than allowed
        reject()


def walk(matcher: Matcher, data: st.DataObject) -> None:
    """A few random steps."""
    constraint = matcher.constraint
    for _ in range(data.draw(st.integers(0, 4))):
        steps = [
            i
            for i in matcher.allowed_token_ids().tolist()
            if i not in constraint.vocabulary.end_token_ids
        ]
        if not steps:
            return
        matcher.advance(data.draw(st.sampled_from(steps)))
