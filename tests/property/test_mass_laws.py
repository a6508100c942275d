"""Masses are what enumeration says, and the bounds hold on the way there."""

import math
from itertools import pairwise

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from formalm import Choice, Limits, Query, Regex, StringLiteral, TableModel, Vocabulary, mass
from formalm.execution.query_contexts import encodings
from formalm.languages import Language
from formalm.probability import conditional_mass, mass_bounds, mass_table
from formalm.query import Decoding

LANGUAGES = [
    Regex(p)
    for p in ("a*b?", "(a|b){1,3}", "a?b|ba", "(ab)*a?", "[ab]{2,4}", "aab|aba|b+", "a|aba|bb", "")
]
EVENTS = ["complete", "token_prefix", "prefix", "contains", "never"]


@st.composite
def models(draw: st.DrawFn) -> TableModel:
    longer = draw(st.lists(st.text("ab", min_size=2, max_size=3), max_size=2))
    tokens = [b"a", b"b", *(text.encode() for text in longer), b"\xff", None]
    vocabulary = Vocabulary.from_tokens(
        tokens, end_token_ids=[len(tokens) - 1], encode=lambda text: [int(c == "b") for c in text]
    )
    seed, order = draw(st.integers(0, 10**6)), draw(st.integers(0, 3))
    return TableModel.random(
        vocabulary, seed=seed, order=order, concentration=draw(st.sampled_from([0.3, 1.0, 5.0]))
    )


def has(language: Language, data: bytes, event: str) -> bool:
    if event == "token_prefix":
        return language.matches(data)
    starts = range(len(data) + 1) if event in ("contains", "never") else [0]
    return any(language.matches(data[i:j]) for i in starts for j in range(i, len(data) + 1))


def truth(query: Query, model: TableModel, front: tuple = (), text: bytes = b"") -> tuple:
    """The probability by enumeration, and what the token limit leaves undecided."""
    vocabulary, end = model.vocabulary, model.vocabulary.end_token_ids[0]
    inside: list[float] = []
    undecided: list[float] = []

    def visit(ids: tuple, logprob: float, data: bytes) -> None:
        complete = query.event == "complete"
        if not complete and has(query.effective_language, data, query.event):
            inside.append(math.exp(logprob))
            return
        if len(ids) == query.max_tokens and not complete:
            undecided.append(math.exp(logprob))
            return
        row = model.next_logprobs([(*front, *ids)])[0]
        row = query.decoding.distribution(row, renormalize=query.renormalize)
        if complete and query.effective_language.matches(data):
            inside.append(math.exp(logprob + row[end]))
        for token_id in range(len(vocabulary)):
            token = vocabulary.token_bytes(token_id)
            if token and row[token_id] > -np.inf and len(ids) < query.max_tokens:
                visit((*ids, token_id), logprob + row[token_id], data + token)

    visit((), 0.0, text)
    return math.fsum(inside), math.fsum(undecided)


@given(
    models(),
    st.sampled_from(LANGUAGES),
    st.sampled_from(EVENTS),
    st.sampled_from([Decoding(), Decoding(0.7, top_k=2), Decoding(top_p=0.8)]),
    st.booleans(),
    st.integers(1, 20),
)
@settings(max_examples=60)
def test_a_mass_is_enumeration(
    model: TableModel,
    language: Language,
    event: str,
    rule: Decoding,
    renormalize: bool,
    batch_size: int,
) -> None:
    renormalize = rule != Decoding() and (renormalize or event == "never")
    query = Query(language, event=event, decoding=rule, max_tokens=4, renormalize=renormalize)
    expected, undecided = truth(query, model)
    low = high = expected
    if event == "contains":
        high = expected + undecided
    elif event == "never":
        low, high = 1 - expected - undecided, 1 - expected
    steps = list(mass_bounds(model, query, tolerance=0, batch_size=batch_size))
    last = steps[-1]
    assert abs(last.low - low) < 1e-12
    assert abs(last.high - high) < 1e-12
    for step in steps:
        assert step.low <= low + 1e-15
        assert high - 1e-15 <= step.high
    for one, two in pairwise(steps):
        assert one.low <= two.low <= two.high <= one.high
    left_open = event in ("contains", "never") and undecided > 0
    assert last.status == ("truncated" if left_open else "exact")
    assert last.truncated_by == ("length" if left_open else None)
    assert mass(model, query, tolerance=0.05).width <= max(0.05, high - low + 1e-12)


WEIGHTS = ["strings", "encodings", "model", {"a": 3, "ab": 1}]


@given(models(), st.sampled_from(EVENTS), st.sampled_from(WEIGHTS))
@settings(max_examples=40)
def test_beginnings_share_by_their_weights(model: TableModel, event: str, weights: object) -> None:
    query = Query(
        Regex("a(b?)[ab]{1,2}"),
        given=Choice(["a", "ab"]),
        event=event,
        prefix_weights=weights,
        max_tokens=3,
    )
    vocabulary = model.vocabulary
    contexts = [(text, tuple(vocabulary.encode(text))) for text in ("a", "ab")]
    if weights == "encodings":
        contexts = [
            (text, tuple(way))
            for text in ("a", "ab")
            for way in encodings(text.encode(), vocabulary)
        ]
    shares = np.ones(len(contexts))
    if weights == "model":
        shares = np.array(
            [
                math.exp(sum(model.next_logprobs([way[:n]])[0][way[n]] for n in range(len(way))))
                for _, way in contexts
            ]
        )
    elif isinstance(weights, dict):
        shares = np.array([weights[text] for text, _ in contexts])
    pairs = [truth(query, model, way, text.encode()) for text, way in contexts]
    expected, undecided = shares / shares.sum() @ np.array(pairs)
    found = mass(model, query, tolerance=0)
    if event == "never":
        assert abs(found.high - (1 - expected)) < 1e-12
    else:
        assert abs(found.low - expected) < 1e-12
    if event in ("complete", "token_prefix", "prefix"):
        assert found.width < 1e-12
    else:
        assert abs(found.width - undecided) < 1e-12


@given(models(), st.integers(1, 30))
@settings(max_examples=40)
def test_tables_and_shares_are_enumeration(model: TableModel, forwards: int) -> None:
    language = Regex("(?P<x>a|b)(?P<y>a|b)?")
    query = Query(language, event="complete", max_tokens=3)
    masses: dict = {}
    for text in ("a", "b", "aa", "ab", "ba", "bb"):
        one = Query(StringLiteral(text), event="complete", max_tokens=3)
        masses[(text[0], text[1:] or None)] = truth(one, model)[0]
    table = mass_table(model, query, tolerance=0)
    assert table.status == "exact"
    for cell, interval in table.cells.items():
        assert interval.low <= masses[cell] <= interval.high
        assert interval.width < 1e-12
    rough = mass_table(model, query, tolerance=0, limits=Limits(forwards=forwards), batch_size=1)
    share = sum(p for (x, y), p in masses.items() if (x, y) == ("a", "b"))
    share /= sum(p for (x, _), p in masses.items() if x == "a")
    inside = masses[("a", "b")]
    only_x = sum(masses[("a", y)] for y in ("a", None))
    only_y = masses[("b", "b")]
    neither = sum(masses[("b", y)] for y in ("a", None))
    ratio = inside * neither / (only_x * only_y)
    for one in (table, rough):
        found = one.share({"y": "b"}, {"x": "a"})
        assert found.low - 1e-14 <= share <= found.high + 1e-14
        found = one.odds_ratio({"x": "a"}, {"y": "b"})
        assert found.low * (1 - 1e-12) <= ratio <= found.high * (1 + 1e-12)
    assert table.odds_ratio({"x": "a"}, {"y": "b"}).width < 1e-9 * ratio
    part = conditional_mass(model, query, of=Regex("a.?"), tolerance=0)
    expected = sum(p for (x, _), p in masses.items() if x == "a") / sum(masses.values())
    assert abs(part.low - expected) < 1e-12
    assert abs(part.high - expected) < 1e-12
