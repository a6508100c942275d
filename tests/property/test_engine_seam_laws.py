"""What engines need of a matcher is as defined: drafts, validation, end tokens of a request."""

import pickle
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from formalm import (
    ArgumentError,
    ConcurrencyError,
    Constraint,
    DeadlineError,
    LanguageError,
    LimitError,
    Matcher,
    Regex,
    SpecialToken,
    TokenError,
    Vocabulary,
    fill_bitmasks,
    new_bitmask,
)
from formalm.constraint import fill_draft
from tests.property.test_mask_laws import constraints, languages, vocabularies
from tests.unit.test_deadlines import Slow

TOKENS = st.lists(st.integers(-1, 40), max_size=8)


def read(matcher: Matcher, token_id: int) -> bool:
    """Reads a token if the mask allows it: the definition."""
    if not 0 <= token_id < len(matcher.constraint.vocabulary) or not matcher.mask()[token_id]:
        return False
    matcher.advance(token_id)
    return True


def walk(matcher: Matcher, choices: list[int]) -> None:
    """Reads allowed tokens, end tokens too."""
    for choice in choices:
        allowed = matcher.allowed_token_ids()
        if not len(allowed):
            return
        matcher.advance(int(allowed[choice % len(allowed)]))


WALKS = st.lists(st.integers(0, 1000), max_size=5)


@given(constraints(), WALKS, TOKENS)
def test_validated_tokens_are_those_that_would_be_read(
    constraint: Constraint, walked: list[int], tokens: list[int]
) -> None:
    matcher = constraint.matcher()
    walk(matcher, walked)
    before = matcher.token_ids, matcher.is_terminated, matcher.mask().tolist()
    copy, count = matcher.fork(), 0
    while count < len(tokens) and read(copy, tokens[count]):
        count += 1
    assert matcher.validate_tokens(tokens) == count
    assert (matcher.token_ids, matcher.is_terminated, matcher.mask().tolist()) == before


@given(constraints(), WALKS, TOKENS, st.data())
def test_rows_of_drafts(
    constraint: Constraint, walked: list[int], tokens: list[int], data: st.DataObject
) -> None:
    matcher = constraint.matcher()
    walk(matcher, walked)
    is_chain = data.draw(st.booleans())
    parents = [
        at - 1 if is_chain else data.draw(st.integers(-1, at - 1)) for at in range(len(tokens))
    ]
    # The definition: each position is read from the start, on a matcher of its own.
    rows, places = [matcher.mask()], [None if matcher.is_terminated else matcher.fork()]
    accepted = 0
    for token, parent in zip(tokens, parents, strict=True):
        before = places[parent + 1]
        after = None if before is None else before.fork()
        if after is not None and read(after, token):
            accepted += 1
        else:
            after = None
        if after is not None and after.is_terminated:
            after = None
        places.append(after)
        rows.append(rows[parent + 1] if after is None else after.mask())
    before_ids = matcher.token_ids
    first = data.draw(st.integers(0, 2))
    out = np.full((first + len(rows) + 1, -(-constraint.width // 32)), 7, np.int32)
    draft = tokens if is_chain else (tokens, parents)
    assert fill_draft([matcher], [draft], out, rows=[first]) == [accepted]
    assert matcher.token_ids == before_ids
    bits = np.unpackbits(out.view(np.uint8), axis=1, bitorder="little")[:, : constraint.width]
    assert bits[first : first + len(rows)].tolist() == np.array(rows, np.uint8).tolist()
    assert (out[:first] == 7).all()
    assert (out[first + len(rows) :] == 7).all()


@given(languages(), vocabularies(), WALKS, st.data())
def test_end_tokens_of_a_matcher_are_those_of_a_vocabulary(
    language: object, vocabulary: Vocabulary, walked: list[int], data: st.DataObject
) -> None:
    size = len(vocabulary)
    ends = data.draw(st.sets(st.integers(0, size - 1), max_size=3))
    # The definition: a vocabulary made with these end tokens. Its own lose their bytes.
    tokens = [
        None if token_id in vocabulary.end_token_ids else one
        for token_id, one in enumerate(vocabulary.tokens())
    ]
    assume(any(one for token_id, one in enumerate(tokens) if token_id not in ends))
    try:
        shared = Constraint(language, vocabulary)  # type: ignore[arg-type]
        own = Constraint(language, Vocabulary.from_tokens(tokens, end_token_ids=sorted(ends)))  # type: ignore[arg-type]
    except (LanguageError, LimitError):
        assume(False)
    plain, matcher, expected = shared.matcher(), shared.matcher(end_token_ids=ends), own.matcher()
    assert matcher.end_token_ids == tuple(sorted(ends))
    for choice in [*walked, 0]:
        again = pickle.loads(pickle.dumps(matcher))  # noqa: S301
        for one in (matcher, matcher.fork(), again):
            assert one.mask().tolist() == expected.mask().tolist()
        assert matcher.bitmask().tolist() == expected.bitmask().tolist()
        out = new_bitmask(1, size)
        fill_bitmasks([matcher], out)
        assert out[0].tolist() == expected.bitmask().tolist()
        assert [matcher.allows(one) for one in range(size)] == expected.mask().tolist()
        assert matcher.is_finished == expected.is_finished
        assert matcher.is_terminated == expected.is_terminated
        assert matcher.forced_token_ids() == expected.forced_token_ids()
        refused = np.flatnonzero(~expected.mask())
        if len(refused):
            with pytest.raises(TokenError):
                matcher.advance(int(refused[choice % len(refused)]))
        assert not any(matcher.explain(int(token)).allowed for token in refused[:3])
        allowed = expected.allowed_token_ids()
        if not len(allowed):
            break
        token = int(allowed[choice % len(allowed)])
        assert matcher.explain(token).allowed
        matcher.advance(token)
        expected.advance(token)
    # The other matchers of the constraint have the vocabulary's end tokens.
    assert plain.mask().tolist() == shared.matcher().mask().tolist()
    assert matcher.reset() is None
    assert matcher.mask().tolist() == own.matcher().mask().tolist()


def small() -> Constraint:
    vocabulary = Vocabulary.from_tokens([b"a", b"b", b".", None, None], end_token_ids=[3])
    return Constraint(Regex("a+b?"), vocabulary, width=40)


def test_termination_is_the_reading_of_an_end_token() -> None:
    matcher = small().matcher()
    assert matcher.advance_many([0, 1]) == 2
    assert (matcher.is_finished, matcher.is_terminated) == (True, False)
    matcher.advance(3)
    assert matcher.is_terminated
    matcher.rollback(0)
    assert matcher.is_terminated
    matcher.rollback()
    assert not matcher.is_terminated
    matcher.advance(3)
    matcher.reset()
    assert not matcher.is_terminated


def test_rows_without_a_constraint() -> None:
    matcher, out = small().matcher(), new_bitmask(3, 40)
    fill_bitmasks([None, matcher], out, rows=[2, 0])
    assert out.tolist() == [[1, 0], [0, 0], [-1, -1]]
    assert fill_draft([None], [[5, -1]], out) == [2]
    assert (out == -1).all()
    out = new_bitmask(6, 40)
    assert fill_draft([matcher, None, matcher.fork()], [[0, 1], [], [2]], out) == [2, 0, 0]
    assert out[:, 0].tolist() == [1, 0b1011, 0b1000, -1, 1, 1]


def test_rows_after_the_end_repeat_the_last_row_that_can_be_sampled() -> None:
    matcher, out = small().matcher(), new_bitmask(4, 40)
    assert fill_draft([matcher], [[0, 3, 0]], out) == [2]
    assert out[:, 0].tolist() == [1, 0b1011, 0b1011, 0b1011]
    assert matcher.advance_many([0, 3]) == 2
    assert fill_draft([matcher], [[0]], out) == [0]
    assert out[:2].tolist() == [[0, 0], [0, 0]]


def test_mistakes_in_drafts() -> None:
    matcher, out = small().matcher(), new_bitmask(4, 40)
    with pytest.raises(ArgumentError, match="one entry per matcher: got 1 matchers and 2 drafts"):
        fill_draft([matcher], [[0], [1]], out)
    for parents in ([0], [-2], [-1, -1], [5]):
        with pytest.raises(ArgumentError, match="parents of a draft"):
            fill_draft([matcher], [([0], parents)], out)
    with pytest.raises(ArgumentError, match="row 4 is out of range"):
        fill_draft([matcher], [[0, 0, 0, 0]], out)
    with pytest.raises(ArgumentError, match="must not overlap"):
        fill_draft([matcher, matcher.fork()], [[0], [0]], out, rows=[0, 1])
    with pytest.raises(ConcurrencyError, match=r"matchers\[0\] and matchers\[1\] are one"):
        fill_draft([matcher, matcher], [[0], [0]], out)
    with pytest.raises(ArgumentError, match="list of Matcher"):
        fill_draft(["no"], [[0]], out)  # type: ignore[list-item]
    with pytest.raises(ArgumentError, match="integer"):
        fill_draft([matcher], [["no"]], out)  # type: ignore[list-item]
    assert matcher.token_ids == []


def test_mistakes_in_end_tokens() -> None:
    with pytest.raises(ArgumentError, match="below the size of the vocabulary"):
        small().matcher(end_token_ids=[39])
    names = {"<|x|>": 1}
    vocabulary = Vocabulary.from_tokens([b"a", None, None], end_token_ids=[2], special_tokens=names)
    constraint = Constraint(Regex("a") + SpecialToken("<|x|>"), vocabulary)
    with pytest.raises(ArgumentError, match="names the special token"):
        constraint.matcher(end_token_ids=[1])


def test_completions_are_refused_where_they_are_unknown() -> None:
    constraint = small()
    plain = constraint.matcher(end_token_ids=[4])
    assert constraint.core.shortest_token_ids(plain.core, 5) == [0]
    assert constraint.core.completion_mask(plain.core, 5)[[0, 3, 4]].tolist() == [
        True,
        False,
        False,
    ]
    with pytest.raises(LanguageError, match="end token 2 of this matcher has bytes"):
        constraint.core.shortest_token_ids(constraint.matcher(end_token_ids=[2]).core, 5)


def test_a_deadline_ends_a_draft() -> None:
    tokens = [b"a", *(b"a" * size + b"b" for size in range(1, 40)), None]
    vocabulary = Vocabulary.from_tokens(tokens, end_token_ids=[40])
    matcher = Constraint(Slow(), vocabulary).matcher(timeout_seconds=0.02)
    with pytest.raises(DeadlineError):
        fill_draft([matcher], [[0] * 50], new_bitmask(51, 41))
    assert matcher.token_ids == []


def test_drafts_of_a_batch_are_those_of_each() -> None:
    constraint = small()
    matchers = [constraint.matcher() for _ in range(40)]
    for steps, matcher in enumerate(matchers):
        matcher.advance_many([0] * (steps % 3))
    drafts = [[0] * (at % 4) + [1] * (at % 2) for at in range(40)]
    starts = np.cumsum([0, *(len(draft) + 1 for draft in drafts)]).tolist()
    out, one = new_bitmask(starts[-1], 40), new_bitmask(8, 40)
    counts = fill_draft(matchers, drafts, out)
    for matcher, draft, count, (start, end) in zip(
        matchers, drafts, counts, pairwise(starts), strict=True
    ):
        assert fill_draft([matcher], [np.array(draft, np.int64)], one) == [count]
        assert out[start:end].tolist() == one[: end - start].tolist()
