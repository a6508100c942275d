"""Frontiers and the kept answers: order, memory, and the same results without memory."""

from dataclasses import dataclass

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from formalm import ArgumentError, Choice, Limits, Query, Regex, TableModel, Vocabulary, search
from formalm.constraint import Constraint
from formalm.execution.query_contexts import encodings, query_contexts
from formalm.execution.query_execution import QueryExecution
from formalm.models import Session
from formalm.probability.bounds import ProbabilityBounds
from formalm.query import Decoding
from formalm.query.decoding_rules import best
from formalm.searching.best_first_search import Search
from formalm.searching.token_search import TokenSearch

TOKENS = [b"a", b"b", b"ab", b" ", None]
VOCABULARY = Vocabulary.from_tokens(
    TOKENS, end_token_ids=[4], encode=lambda text: [{"a": 0, "b": 1, " ": 3}[c] for c in text]
)
MODEL = TableModel.random(VOCABULARY, seed=5, order=2)


@given(
    st.lists(st.integers(-9, 0), min_size=1, max_size=400),
    st.integers(1, 8),
    st.sampled_from([np.float32, np.float64]),
)
def test_the_best_are_the_first_of_a_sort(values: list[int], count: int, kind: type) -> None:
    row = np.array([value if value > -9 else -np.inf for value in values], dtype=kind)
    expected = sorted(range(len(row)), key=lambda place: (-row[place], place))[:count]
    assert best(row, count).tolist() == expected


LETTERS = Vocabulary.from_tokens([*(bytes([c]) for c in range(64, 90)), None], end_token_ids=[26])
MANY = TableModel.random(LETTERS, seed=2)


def listing(budget: int, batch_size: int) -> tuple[list, int]:
    session = Session(MANY)
    query = Query(Regex("(.|\n){0,2}"))
    constraint = Constraint(query.effective_language, LETTERS)
    roots = query_contexts(session, constraint, query, None, shares=False)
    limits = Limits(None, state_bytes=budget)
    execution = QueryExecution(
        session, constraint, roots, Decoding(), False, True, batch_size, None, limits
    )
    return [found for found in TokenSearch(execution).run() if found is not None], session.forwards


def test_evicted_answers_are_requested_again() -> None:
    plenty, forwards = listing(1 << 20, 1)
    for batch_size in (1, 7):
        scarce, more = listing(1, batch_size)
        assert scarce == plenty
        assert more >= forwards
    assert listing(1, 1)[1] > forwards


@dataclass(frozen=True)
class Read:
    """A prefix that a model has read, which says that it takes 100 bytes a token of its own."""

    token_ids: tuple[int, ...]
    logprobs: np.ndarray
    memory_bytes: int

    @property
    def length(self) -> int:
        return len(self.token_ids)

    def bare(self) -> "Read":
        return Read(self.token_ids, self.logprobs[:0], self.memory_bytes)


class Remembering:
    """A table that goes on from states, and counts what it reads."""

    def __init__(self) -> None:
        self.vocabulary, self.bos_token_id, self.context_length = LETTERS, None, None
        self.starts = self.read = 0

    def next_logprobs(self, prefixes: list) -> np.ndarray:
        return MANY.next_logprobs(prefixes)

    def start(self, prefix: list) -> Read:
        self.starts += 1
        return Read(tuple(prefix), MANY.next_logprobs([prefix])[0], 100 * len(prefix))

    def extend(self, states: list, token_ids: list) -> list:
        return self.extend_many(states, [[token_id] for token_id in token_ids])

    def extend_many(self, states: list, runs: list) -> list:
        self.read += sum(map(len, runs))
        longer = [(*state.token_ids, *run) for state, run in zip(states, runs, strict=True)]
        rows = MANY.next_logprobs(longer)
        return [
            Read(ids, row, 100 * len(run)) for ids, row, run in zip(longer, rows, runs, strict=True)
        ]


@pytest.mark.parametrize("batch_size", [1, 7])
@pytest.mark.parametrize("budget", [1, 2000, 100_000, None])
def test_caches_within_a_budget(budget: int | None, batch_size: int) -> None:
    """The same hits; dropped states are read again behind the nearest kept one, never anew."""
    expected = [(hit.token_ids, hit.logprob) for hit in _triples(MANY, None, 1)]
    model = Remembering()
    found = _triples(model, budget, batch_size)
    positions = found._driver.rows.answer_cache
    assert [(hit.token_ids, hit.logprob) for hit in found] == expected
    assert model.starts == 1  # the prompt
    assert model.read == found.forwards - 1 + positions.reread
    if budget in (1, 2000):
        assert positions.reread > 0
        assert positions.memory_bytes <= budget or budget == 1
    elif budget is None:
        assert (positions.recomputed, positions.reread) == (0, 0)


def _triples(model: object, budget: int | None, batch_size: int) -> Search:
    return search(
        model,
        Regex("(.|\n){3}"),
        unique="tokens",
        event="token_prefix",
        limits=Limits(hits=150, state_bytes=budget),
        batch_size=batch_size,
    )


def bounds_of(model: object, limits: Limits, **options: object) -> ProbabilityBounds:
    session = Session(model)
    query = Query(Regex("[ab ]*"), **options)
    constraint = Constraint(query.effective_language, session.vocabulary)
    roots = query_contexts(session, constraint, query, None, shares=True)
    rules = query.suffix_decoding
    execution = QueryExecution(
        session, constraint, roots, *rules, True, 64, query.max_tokens, limits, normalize=True
    )
    return ProbabilityBounds(execution, "complete")


def test_a_node_of_a_mass_takes_little_memory() -> None:
    bounds = bounds_of(TableModel.random(VOCABULARY, seed=1, order=3), Limits(None))
    for _ in bounds.run():
        if len(bounds.frontier) >= 60_000:
            break
    assert bounds.frontier.memory_bytes / len(bounds.frontier) < 200


@pytest.mark.parametrize("options", [{}, {"decoding": Decoding(0.7, 3), "renormalize": True}])
def test_a_failed_evaluation_leaves_a_mass_as_it_was(options: dict) -> None:
    """The model fails now and then; the bounds are valid, and in the end those without failures."""

    class Failing:
        vocabulary, bos_token_id, context_length = VOCABULARY, None, None
        calls = 0

        def next_logprobs(self, prefixes: list) -> np.ndarray:
            self.calls += 1
            if self.calls % 3 == 0:
                raise OSError("no answer")
            return MODEL.next_logprobs(prefixes)

    whole = bounds_of(MODEL, Limits(None), max_tokens=4, **options)
    for _ in whole.run():
        pass
    bounds = bounds_of(Failing(), Limits(None), max_tokens=4, **options)
    while not bounds.is_exhausted:
        try:
            for _ in bounds.run():
                assert bounds.low(None) <= whole.low(None) * (1 + 1e-12)
                assert bounds.low(None) + bounds.undecided >= whole.low(None) * (1 - 1e-12)
        except OSError:
            continue
    assert bounds.low(None) == pytest.approx(whole.low(None), rel=1e-12)
    assert bounds.undecided <= 1e-12


@pytest.mark.parametrize("unique", ["tokens", "strings"])
def test_a_forward_takes_little_memory(unique: str) -> None:
    hits = search(MANY, Regex("(.|\n)*"), unique=unique, limits=Limits(hits=None, forwards=4000))
    assert len(list(hits)) > 10
    assert hits.forwards == 4000
    assert hits._driver.memory_bytes <= 1500 * hits.forwards


class Logits:
    """The table of letters, with a constant added, in another precision."""

    vocabulary, bos_token_id, context_length = LETTERS, None, None

    def __init__(self, kind: type, added: float) -> None:
        self.kind, self.added = kind, added

    def next_logits(self, prefixes: list) -> np.ndarray:
        return (MANY.next_logprobs(prefixes) + self.added).astype(self.kind)

    def next_logprobs(self, prefixes: list) -> np.ndarray:
        raise AssertionError("logits are preferred")


@pytest.mark.parametrize("unique", ["tokens", "strings"])
@pytest.mark.parametrize("batch_size", [1, 16])
@pytest.mark.parametrize(
    ("kind", "added", "error"),
    [(np.float64, 3.0, 1e-9), (np.float32, 24.0, 2e-5), (np.float16, 4.0, 2e-2)],
)
def test_logits_of_any_type_and_scale_give_the_same_hits(
    unique: str, batch_size: int, kind: type, added: float, error: float
) -> None:
    options = {"unique": unique, "batch_size": batch_size, "limits": Limits(hits=40)}
    expected = list(search(MANY, Regex("(.|\n){1,3}"), **options))
    found = list(search(Logits(kind, added), Regex("(.|\n){1,3}"), **options))
    logprobs = [[hit.logprob for hit in hits] for hits in (found, expected)]
    assert np.allclose(*logprobs, rtol=0, atol=error)
    if kind is not np.float16:
        assert [hit.token_ids for hit in found] == [hit.token_ids for hit in expected]


def test_memory_is_limited() -> None:
    for unique, most in (("tokens", 5_000), ("strings", 50_000)):
        limits = Limits(memory_bytes=most)
        hits = search(MODEL, Regex("[ab]*"), limits=limits, unique=unique)
        assert len(list(hits)) > 3
        assert (hits.status, hits.truncated_by) == ("truncated", "memory_bytes")


def brute_force(query: Query, merge: bool) -> dict:
    """Every hit of a query with beginnings, by trying everything behind each of them."""
    found: dict = {}
    beginnings = [t for n in range(4) for t in map("".join, _texts(n)) if query.given.matches(t)]
    for text in beginnings:
        data = text.encode()
        ways = [VOCABULARY.encode(text)]
        if query.prefix_cost == "zero":
            ways = encodings(data, VOCABULARY)
        for way in ways:
            cost = 0.0
            if query.prefix_cost == "joint":
                rows = [MODEL.next_logprobs([way[:n]])[0] for n in range(len(way))]
                cost = sum(row[token] for row, token in zip(rows, way, strict=True))
            _visit(query, merge, found, data, way, [], data, cost)
    return found


def _texts(length: int) -> list:
    return [()] if not length else [(*rest, c) for rest in _texts(length - 1) for c in "ab "]


def _visit(query, merge, found, given, way, ids, data, logprob) -> None:
    row = MODEL.next_logprobs([(*way, *ids)])[0]
    row = query.decoding.distribution(row, renormalize=query.renormalize)
    if query.effective_language.matches(data):
        total = logprob if query.event == "token_prefix" else logprob + row[4]
        if total > -np.inf:
            key = (given, data) if merge else (given, tuple(way), tuple(ids))
            found[key] = np.logaddexp(found.get(key, -np.inf), total)
    for token_id in range(4):
        longer = data + TOKENS[token_id]
        if len(ids) < 3 and row[token_id] > -np.inf and query.effective_language.is_viable(longer):
            _visit(
                query, merge, found, given, way, [*ids, token_id], longer, logprob + row[token_id]
            )


@pytest.mark.parametrize("event", ["token_prefix", "complete"])
@pytest.mark.parametrize("cost", ["conditional", "joint", "zero"])
@pytest.mark.parametrize("merge", [True, False])
@pytest.mark.parametrize("top_k", [None, 3])
def test_prefix_masses_agree_with_brute_force(
    event: str, cost: str, merge: bool, top_k: int | None
) -> None:
    if merge and cost == "zero":
        return
    options = {} if top_k is None else {"decoding": Decoding(0.7, top_k), "renormalize": True}
    query = Query(
        Regex("a?(b| |ab){1,4}"),
        given=Choice(["a", "ab", "ab "]),
        event=event,
        prefix_cost=cost,
        unique="strings" if merge else "tokens",
        max_tokens=3,
        **options,
    )
    expected = brute_force(query, merge)
    for batch_size in (1, 16):
        hits = list(search(MODEL, query, batch_size=batch_size, tolerance=0))
        logprobs = [hit.logprob for hit in hits]
        assert logprobs == sorted(logprobs, reverse=True)
        if merge:
            got = {(hit.given.encode(), hit.data): hit.logprob for hit in hits}
            assert len(got) == len(hits)
            assert set(got) == set(expected)
            assert np.allclose([expected[key] for key in got], list(got.values()), atol=1e-12)
        else:
            assert np.allclose(logprobs, sorted(expected.values(), reverse=True), atol=1e-12)


def test_a_prefix_of_a_prefix_counts_too() -> None:
    query = Query(Regex("a(b)? (a|b)"), given=Regex("(a)|(ab)"))
    assert {(hit.given, hit.text) for hit in search(MODEL, query)} == {
        ("a", "a a"),
        ("a", "a b"),
        ("a", "ab a"),
        ("a", "ab b"),
        ("ab", "ab a"),
        ("ab", "ab b"),
    }


def test_keywords_override_a_query() -> None:
    query = Query(Regex("a|b"), event="complete", max_tokens=0, unique="tokens", bos=None)
    assert [hit.text for hit in search(MODEL, query)] == []
    assert len(list(search(MODEL, query, max_tokens=1, unique="strings"))) == 2
    with pytest.raises(ArgumentError, match="event"):
        search(MODEL, query, event="never")
    weighted = Query(Regex("a|b"), given="a", prefix_weights={"a": 1})
    with pytest.raises(ArgumentError, match="prefix_weights"):
        search(MODEL, weighted)


def test_all_encodings() -> None:
    assert encodings(b"aab", VOCABULARY) == [[0, 0, 1], [0, 2]]
    assert encodings(b"", VOCABULARY) == [[]]


@given(
    st.lists(st.integers(0, 12), min_size=1, max_size=30).filter(any),
    st.sampled_from([0, 0.5, 1, 2]),
    st.sampled_from([None, 1, 2, 5, 40]),
    st.sampled_from([None, 0.3, 0.9, 1.0]),
    st.sampled_from([None, 0.2, 1.0]),
    st.booleans(),
)
def test_rules_are_their_definition(
    counts: list, temperature: float, top_k: int, top_p: float, min_p: float, renormalize: bool
) -> None:
    p = np.array(counts) / sum(counts)
    with np.errstate(divide="ignore"):
        rule = Decoding(temperature, top_k, top_p, min_p)
        got = np.exp(rule.distribution(np.log(p), renormalize=renormalize))
    if temperature == 0:
        expected = np.where(np.arange(len(p)) == p.argmax(), 1.0, 0.0)
    else:
        tempered = p ** (1 / temperature) / (p ** (1 / temperature)).sum()
        order = sorted(range(len(p)), key=lambda place: (-tempered[place], place))
        kept = [place for place in order if tempered[place] > 0][:top_k]
        if top_p is not None:
            total = sum(tempered[place] for place in kept)
            sums = np.cumsum([tempered[place] for place in kept])
            margins = np.abs(sums - top_p * total)
            if margins.min() < 1e-9 < 1 - top_p:
                return  # a tie that rounding decides
            if top_p < 1:
                kept = kept[: int(np.searchsorted(sums, top_p * total)) + 1]
        if min_p is not None:
            if np.any(np.abs(tempered[kept] - min_p * tempered[kept[0]]) < 1e-9) and min_p < 1:
                return
            kept = [
                place for place in kept if tempered[place] >= (min_p - 1e-9) * tempered[kept[0]]
            ]
        expected = np.zeros(len(p))
        expected[kept] = tempered[kept]
        if renormalize and rule != Decoding():
            expected /= expected.sum()
    assert np.allclose(got, expected, atol=1e-12)
