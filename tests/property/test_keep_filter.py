"""A Python function as a filter, and draws without replacement, against enumeration."""

import math
from collections import Counter
from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from formalm import ArgumentError, Choice, Limits, Query, Regex, TableModel, mass, sample, search
from formalm.probability import conditional_mass, distortion, mass_table
from formalm.query import plan
from tests.property.test_search_laws import LANGUAGES, MAX_TOKENS, brute_force, models
from tests.unit.test_sample import CASES, fits


def even(text: str) -> bool:
    return text.count("a") % 2 == 0


EVEN = Regex("b*(ab*ab*)*")


@given(
    models(),
    st.sampled_from(LANGUAGES),
    st.sampled_from(["token_prefix", "complete"]),
    st.booleans(),
)
def test_a_filter_afterwards_is_one_of_automata(
    model: TableModel, language: object, event: str, merge: bool
) -> None:
    unique = "strings" if merge else "tokens"
    fields = {"event": event, "unique": unique, "max_tokens": MAX_TOKENS}
    expected = {
        key: value
        for key, value in brute_force(model, language, event, None, merge).items()
        if even((key if merge else model.vocabulary.decode(key)).decode())
    }
    after = search(model, Query(language, keep=even, **fields), tolerance=0)
    before = search(model, Query(language, without=~EVEN, **fields), tolerance=0)
    kept, taken = list(after), list(before)
    ours, theirs = (
        {hit.data if merge else hit.token_ids: hit.logprob for hit in hits}
        for hits in (kept, taken)
    )
    assert ours == pytest.approx(theirs, abs=1e-12)
    assert set(ours) == set(expected)
    # The same order, but for what rounding tells apart.
    assert [hit.logprob for hit in kept] == pytest.approx([hit.logprob for hit in taken], abs=1e-12)
    assert [hit.rank for hit in kept] == list(range(1, len(kept) + 1))
    assert before.cost.expansions <= after.cost.expansions
    everything = brute_force(model, language, event, None, merge)
    assert after.dropped == len(everything) - len(expected)


def test_a_filter_of_automata_saves_work() -> None:
    model = TableModel.random(CASES[0][0].vocabulary, seed=2, order=2)
    words = Regex("(a|b){7}")
    after = search(model, Query(words, keep=lambda text: text.startswith("aa"), unique="tokens"))
    before = search(model, Query(words, without=~Regex("aa.*"), unique="tokens"))
    assert [hit.text for hit in after] == [hit.text for hit in before]
    assert before.cost.expansions < after.cost.expansions / 2
    assert (after.dropped, before.dropped) == (128 - 32, 0)


@given(models(), st.sampled_from(LANGUAGES), st.sampled_from([1, 16]))
def test_masses_and_draws_leave_out_what_is_dropped(
    model: TableModel, language: object, batch_size: int
) -> None:
    query = Query(language, keep=even, event="complete", max_tokens=MAX_TOKENS)
    members = brute_force(model, language, "complete", None, merge=False)
    decode = model.vocabulary.decode
    expected = {ids: value for ids, value in members.items() if even(decode(ids).decode())}
    truth = math.fsum(math.exp(value) for value in expected.values())
    found = mass(model, query, tolerance=0, batch_size=batch_size)
    assert found.low - 1e-12 <= truth <= found.high + 1e-12
    assert found.width < 1e-9
    assert found.dropped == len(members) - len(expected)
    drawn = sample(
        model, query, n=10_000, target="without_replacement", seed=1, batch_size=batch_size
    )
    got = {one.token_ids: one.logprob for one in drawn}
    assert set(got) == set(expected)
    assert np.allclose([expected[ids] for ids in got], list(got.values()), atol=1e-9)


@pytest.mark.parametrize(("model", "query"), CASES)
def test_kept_draws_have_their_shares(model: TableModel, query: Query) -> None:
    def chosen(text: str) -> bool:
        return len(text) % 2 == 0

    kept = Query(
        query.language,
        given=query.given,
        event="complete",
        max_tokens=query.max_tokens,
        keep=chosen,
    )
    fields = {"event": "complete", "unique": "tokens", "max_tokens": query.max_tokens}
    hits = list(search(model, Query(query.language, given=query.given, keep=chosen, **fields)))
    count = 1 if query.given is None else 2
    shares = {(hit.given, hit.token_ids): math.exp(hit.logprob) / count for hit in hits}
    drawn = sample(model, kept, n=3000, seed=3)
    assert fits(Counter((one.given, one.token_ids) for one in drawn), shares)
    assert drawn.dropped > 0
    local = sample(model, kept, n=3000, target="local", seed=3).mass(0.999)
    assert local.low <= math.fsum(shares.values()) <= local.high


def test_nothing_kept_comes_to_an_end() -> None:
    model, query = CASES[0]
    nothing = Query(query.language, event="complete", max_tokens=5, keep=lambda text: False)
    for target in ("posterior", "without_replacement"):
        drawn = sample(model, nothing, n=3, target=target, seed=1)
        assert (len(drawn), drawn.status, drawn.dropped) == (0, "exhausted", 17)
    assert (
        list(search(model, nothing)),
        mass(model, nothing, event="complete", tolerance=0).high,
    ) == (
        [],
        pytest.approx(0, abs=1e-9),
    )


def test_tables_leave_out_what_is_dropped() -> None:
    model = CASES[0][0]
    query = Query(Regex("(?P<x>a|b)(?P<y>a|b)"), event="complete", keep=lambda text: text != "ab")
    table = mass_table(model, query, tolerance=0)
    assert set(table.cells) == {("a", "a"), ("b", "a"), ("b", "b")}
    assert table.dropped == 1
    assert conditional_mass(model, query, of=Choice(["ab"]), tolerance=0).high < 1e-9


@pytest.mark.parametrize("runs", [100, pytest.param(1000, marks=pytest.mark.slow)])
@pytest.mark.parametrize(("model", "query"), CASES[1:])
def test_texts_are_drawn_once(model: TableModel, query: Query, runs: int) -> None:
    asked = Query(
        query.language,
        given=query.given,
        max_tokens=query.max_tokens,
        decoding=query.decoding,
        prefix_weights=query.prefix_weights,
        event="complete",
        unique="strings",
    )
    shares = {"a": 1 / 3, "ab": 2 / 3} if query.given is not None else {"": 1.0}
    plain = Query(
        asked.language,
        given=asked.given,
        max_tokens=asked.max_tokens,
        decoding=asked.decoding,
        event="complete",
        unique="strings",
    )
    truth = {
        (hit.given, hit.text): shares[hit.given] * math.exp(hit.logprob)
        for hit in search(model, plain, tolerance=0)
    }
    everything = sample(model, asked, n=10_000, target="without_replacement", seed=1)
    weights = {(one.given, one.text): math.exp(one.log_weight) for one in everything}
    assert len(weights) == len(everything) < 10_000
    assert weights == pytest.approx(truth, abs=1e-12)
    first: Counter = Counter()
    sums = []
    for seed in range(runs):
        drawn = sample(model, asked, n=3, target="without_replacement", seed=seed)
        names = [(one.given, one.text) for one in drawn]
        assert len(set(names)) == len(drawn) == 3
        first[names[0]] += 1
        sums.append(float(np.exp(drawn.log_weights).sum()))
    assert fits(first, truth)
    error = np.std(sums) / math.sqrt(runs)
    assert abs(np.mean(sums) - math.fsum(truth.values())) < 4 * error


def refused(call: Callable[[], object], message: str) -> None:
    with pytest.raises(ArgumentError, match=message):
        call()


def test_where_a_function_cannot_apply(tmp_path) -> None:
    model, _ = CASES[0]
    query = Query(Regex("a|b"), keep=even)
    assert "keep=even" in repr(query)
    assert hash(query) == hash(Query(Regex("a|b"), keep=even))
    assert "keep" in " ".join(plan(query).notes)
    refused(query.to_json, "cannot serialize a query with a Python function in keep")
    refused(query.to_toml, "cannot serialize a query with a Python function in keep")
    refused(
        lambda: search(model, query).save(tmp_path / "x"),
        "cannot serialize a query with a Python function in keep",
    )
    refused(lambda: mass(model, query, event="contains"), "keep")
    refused(lambda: distortion(model, query, event="complete"), "keep")
    refused(lambda: sample(model, query, target="uniform"), "keep")
    refused(lambda: Query(Regex("a"), keep="a"), "keep")
    few = search(model, Query(Regex("(a|b){3}"), keep=even, limits=Limits(hits=1)))
    assert len(list(few)) == 1
    assert few.truncated_by == "hits"
