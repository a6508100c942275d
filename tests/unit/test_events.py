"""One event means one thing to all functions, and results say which they are about."""

import math
from collections.abc import Callable

import pytest

from formalm import (
    ArgumentError,
    Choice,
    Query,
    Regex,
    TableModel,
    Vocabulary,
    mass,
    sample,
    score,
    search,
)
from formalm.probability import conditional_mass, distortion, mass_table

# The output `ab` is one token or two; only with two of them do the tokens spell `a`.
VOCABULARY = Vocabulary.from_tokens(
    [b"a", b"b", b"ab", None],
    end_token_ids=[3],
    encode=lambda text: [2] if text == "ab" else ["ab".index(c) for c in text],
)
MODEL = TableModel(VOCABULARY, {}, default=[0.4, 0.2, 0.3, 0.1])
AB = Choice(["a", "b"])
GROUPED = Regex("(?P<x>a|b)")


def test_a_token_prefix_ends_with_a_token_and_a_prefix_need_not() -> None:
    spelled = mass(MODEL, AB, event="token_prefix", tolerance=0)
    begun = mass(MODEL, AB, event="prefix", tolerance=0)
    assert spelled.low == pytest.approx(0.6)
    assert begun.low == pytest.approx(0.9)  # the token `ab` begins with `a`
    assert (spelled.event, begun.event) == ("token_prefix", "prefix")


@pytest.mark.parametrize("event", ["token_prefix", "complete"])
def test_drivers_agree_about_one_event(event: str) -> None:
    hits = list(search(MODEL, AB, event=event, tolerance=0))
    each = {hit.text: math.exp(hit.logprob) for hit in hits}
    assert {hit.event for hit in hits} == {event}
    found = mass(MODEL, AB, event=event, tolerance=0)
    assert math.fsum(each.values()) == pytest.approx(found.low)
    table = mass_table(MODEL, GROUPED, event=event, tolerance=0)
    assert table.event == event
    assert {cell[0]: one.low for cell, one in table.cells.items()} == pytest.approx(each)
    scores = score(MODEL, ["a", "b"], event=event)
    assert {one.event for one in scores} == {event}
    assert {one.text: math.exp(one.marginal.low) for one in scores} == pytest.approx(each)
    moved = distortion(MODEL, AB, event=event)
    assert (moved.event, moved.mass.low) == (event, pytest.approx(found.low))
    drawn = sample(MODEL, AB, event=event, n=50, seed=1)
    assert drawn.event == event
    assert {one.text for one in drawn} <= {"a", "b"}
    assert {one.record().event for one in (*hits, *drawn, *scores)} == {event}


def test_ranking_functions_default_to_token_prefix() -> None:
    found = search(MODEL, AB)
    assert (found.event, found.query.event, next(found).event) == ("token_prefix",) * 3
    assert [one.event for one in score(MODEL, ["a"])] == ["token_prefix"]


@pytest.mark.parametrize(
    "ask",
    [
        lambda: mass(MODEL, AB),
        lambda: mass_table(MODEL, GROUPED),
        lambda: conditional_mass(MODEL, AB, of=["a"]),
        lambda: sample(MODEL, AB),
        lambda: distortion(MODEL, AB),
    ],
    ids=["mass", "mass_table", "conditional_mass", "sample", "distortion"],
)
def test_summing_functions_require_an_event(ask: Callable[[], object]) -> None:
    with pytest.raises(ArgumentError, match="event must be given") as refused:
        ask()
    assert "event='complete': the output is a member, followed by" in str(refused.value.hint)


@pytest.mark.parametrize("event", ["token_prefix", "prefix", "contains", "never"])
def test_a_function_of_members_is_refused_where_the_first_member_decides(event: str) -> None:
    # The output `ab` begins with `a`, which is dropped, and with `ab`, which is not.
    query = Query(Choice(["a", "ab"]), event=event, keep=lambda text: text != "a")
    for ask in (lambda: mass(MODEL, query), lambda: sample(MODEL, query)):
        with pytest.raises(ArgumentError, match="event must be 'complete' with keep"):
            ask()


@pytest.mark.parametrize("event", ["prefix", "contains", "never"])
def test_string_events_are_refused_where_token_sequences_are_ranked(event: str) -> None:
    for ask in (
        lambda: search(MODEL, Query(AB, event=event)),
        lambda: score(MODEL, ["a"], event=event),
        lambda: distortion(MODEL, Query(AB, event=event)),
    ):
        with pytest.raises(ArgumentError, match="'token_prefix'"):
            ask()
