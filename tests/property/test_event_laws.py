"""Tables, shares and draws of every event are what enumeration says."""

import math
from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from formalm import (
    ArgumentError,
    FunctionModel,
    Query,
    Regex,
    StringLiteral,
    TableModel,
    sample,
    search,
)
from formalm.languages import Language
from formalm.probability import conditional_mass, mass_table
from tests.property.test_mass_laws import models
from tests.unit.test_mass import MODEL, VOCABULARY

GROUPED = [
    Regex(p)
    for p in ("(?P<x>a|b)(?P<y>a*)b", "(?P<x>a|bb)(?P<y>ab)?", "(?P<x>ab|b)", "(?P<x>a?)(?P<y>b)")
]
MOST = 3
IDS = tuple[int, ...]


def member(language: Language, data: bytes, event: str) -> bytes | None:
    """The member that decides an event, by its definition."""
    if event == "token_prefix":
        return data if language.matches(data) else None
    for end in range(len(data) + 1):
        for start in range(end + 1) if event == "contains" else [0]:
            if language.matches(data[start:end]):
                return data[start:end]
    return None


def outputs(model: TableModel, language: Language, event: str) -> dict[IDS, float]:
    """The outputs in which an event has just happened, with their log-probabilities."""
    vocabulary, end = model.vocabulary, model.vocabulary.end_token_ids[0]
    found: dict[IDS, float] = {}

    def visit(ids: IDS, logprob: float) -> None:
        data = vocabulary.decode(ids)
        row = model.next_logprobs([ids])[0]
        if event in ("token_prefix", "prefix", "contains"):
            if member(language, data, event) is not None:
                found[ids] = logprob
                return
        elif event == "complete" and language.matches(data):
            found[ids] = logprob + row[end]
        elif event == "never":
            if member(language, data, "contains") is not None:
                return
            found[ids] = logprob + row[end]
        if len(ids) < MOST:
            for token_id in range(len(vocabulary)):
                if vocabulary.token_bytes(token_id):
                    visit((*ids, token_id), logprob + row[token_id])

    visit((), 0.0)
    return found


@given(
    models(),
    st.sampled_from(GROUPED),
    st.sampled_from(["complete", "token_prefix", "prefix", "contains"]),
)
def test_cells_belong_to_the_member_that_decides(
    model: TableModel, language: Language, event: str
) -> None:
    query = Query(language, event=event, max_tokens=MOST)
    table = mass_table(model, query, tolerance=0)
    part = Regex("a.*|ab?")
    truth: Counter = Counter()
    inside = 0.0
    for ids, logprob in outputs(model, language, event).items():
        data = model.vocabulary.decode(ids)
        chosen = data if event == "complete" else member(language, data, event)
        groups = language.captures(chosen).groupdict()
        truth[tuple(groups.get(name) for name in table.groups)] += math.exp(logprob)
        inside += math.exp(logprob) * part.matches(chosen)
    assert set(table.cells) == set(truth)
    for cell, interval in table.cells.items():
        assert interval.low - 1e-14 <= truth[cell] <= interval.high + 1e-14
    share = conditional_mass(model, query, of=part, tolerance=0)
    if table.undecided < 1e-13:  # nothing was cut off by the limit of tokens
        total = math.fsum(truth.values())
        assert share.low - 1e-11 <= inside / total <= share.high + 1e-11


@given(
    models(),
    st.sampled_from(GROUPED),
    st.sampled_from(["complete", "token_prefix", "prefix", "contains", "never"]),
    st.sampled_from([1, 16]),
)
def test_everything_is_drawn_once_without_replacement(
    model: TableModel, language: Language, event: str, batch_size: int
) -> None:
    expected = outputs(model, language, event)
    query = Query(language, event=event, max_tokens=MOST)
    drawn = sample(
        model, query, n=10_000, target="without_replacement", seed=1, batch_size=batch_size
    )
    got = {one.token_ids: one.logprob for one in drawn}
    assert len(got) == len(drawn)
    assert set(got) == set(expected)
    assert np.allclose([expected[ids] for ids in got], list(got.values()), atol=1e-9)
    assert drawn.status == "exhausted"


@pytest.mark.parametrize("event", ["token_prefix", "prefix", "contains", "never"])
@pytest.mark.parametrize("target", ["posterior", "local"])
def test_draws_have_their_shares(event: str, target: str) -> None:
    model = TableModel.random(VOCABULARY, seed=6, order=2)
    language = StringLiteral("ab")
    expected = outputs(model, language, event)
    total = math.fsum(map(math.exp, expected.values()))
    query = Query(language, event=event, max_tokens=MOST)
    drawn = sample(model, query, n=4000, target=target, seed=3)
    weights = np.exp(drawn.log_weights)
    for ids, logprob in expected.items():
        share = math.exp(logprob) / (total if target == "posterior" else 1.0)
        hits = np.array([one.token_ids == ids for one in drawn]) * weights
        error = max(float(hits.std()), math.sqrt(share * (1 - share))) / math.sqrt(len(hits))
        assert abs(hits.mean() - share) < 5 * error + 1e-3
    if target == "local":
        estimate = drawn.mass(0.999)
        assert estimate.low <= total <= estimate.high


def test_unique_is_honored_or_refused() -> None:
    language = Regex("ab?")
    for target in ("posterior", "local", "uniform"):
        with pytest.raises(ArgumentError, match="unique"):
            sample(MODEL, Query(language, event="complete", unique="tokens"), target=target)
    drawn = sample(
        MODEL,
        Query(language, event="complete", unique="strings"),
        n=9,
        target="without_replacement",
    )
    assert sorted(one.text for one in drawn) == ["a", "ab"]
    drawn = sample(
        MODEL,
        Query(language, event="complete", unique="tokens"),
        n=9,
        target="without_replacement",
        seed=1,
    )
    assert sorted(one.text for one in drawn) == ["a", "ab", "ab"]
    with pytest.raises(ArgumentError, match="uniform"):
        sample(MODEL, Query(language, event="prefix"), target="uniform")


def interrupted(stop: int) -> FunctionModel:
    calls = []

    def logits(prefixes: list) -> list:
        calls.append(len(prefixes))
        if len(calls) == stop:
            raise KeyboardInterrupt
        return [[0.0] * 4] * len(prefixes)

    return FunctionModel(VOCABULARY, logits)


def test_an_interruption_keeps_the_hits_found() -> None:
    for unique in ("tokens", "strings"):
        hits = search(interrupted(5), Regex("[ab]*"), unique=unique, batch_size=1)
        found = list(hits)
        assert hits.status == "interrupted"
        whole = search(interrupted(0), Regex("[ab]*"), unique=unique, batch_size=1)
        assert found == [next(whole) for _ in found]
    drawn = sample(interrupted(5), Regex("[ab]*a"), event="complete", n=10_000, seed=1)
    assert drawn.status == "interrupted"


@pytest.mark.parametrize("unique", ["tokens", "strings"])
def test_progress_is_reported(unique: str) -> None:
    seen = []
    hits = search(interrupted(0), Regex("[ab]{3}"), unique=unique, progress=seen.append)
    found = list(hits)
    assert [one.forwards for one in seen] == sorted(one.forwards for one in seen)
    assert seen[0].forwards == 0
    assert seen[-1].forwards <= hits.forwards
    # The best that is to come bounds every hit that came later.
    assert all(one.best_logprob >= found[-1].logprob - 1e-12 for one in seen)
    assert seen[0].nodes == 1
    covered = [one.covered or 0.0 for one in seen]
    assert covered == sorted(covered)
    assert covered[-1] <= sum(math.exp(hit.logprob) for hit in found) + 1e-12
