"""mass: refusals, limits, interruption, straddling tokens."""

import math

import pytest

from formalm import ArgumentError, FunctionModel, Limits, Query, Regex, TableModel, Vocabulary, mass
from formalm.probability import mass_bounds, mass_table
from formalm.query import Decoding

TOKENS = [b"a", b"b", b"ab", None]
VOCABULARY = Vocabulary.from_tokens(
    TOKENS, end_token_ids=[3], encode=lambda text: [{"a": 0, "b": 1}[c] for c in text]
)
MODEL = TableModel(VOCABULARY, {}, default=[0.4, 0.2, 0.2, 0.2])


def test_an_output_begins_with_a_member_wherever_its_tokens_end() -> None:
    found = mass(MODEL, ["a"], event="prefix", tolerance=0)
    assert found.low == pytest.approx(0.6, abs=1e-12)
    assert found.status == "exact"
    assert found.width < 1e-12


def test_an_infinite_language_stops_at_the_width() -> None:
    found = mass(MODEL, Regex("a*"), event="complete", tolerance=1e-2, batch_size=64)
    assert found.status == "reached"
    assert 1 / 3 in found
    assert found.width <= 1e-2
    assert "reached" in str(found)


def test_limits_leave_a_valid_interval() -> None:
    for limits, name in (
        (Limits(forwards=5), "forwards"),
        (Limits(seconds=1e-9), "seconds"),
        (Limits(memory_bytes=3000), "memory_bytes"),
    ):
        found = mass(MODEL, Regex("(a|b)*"), event="complete", tolerance=0, limits=limits)
        assert (found.status, found.truncated_by) == ("truncated", name)
        assert 1.0 in found
    assert mass(MODEL, Regex("(a|b)*"), event="complete", limits=Limits(forwards=5)).forwards <= 5


def test_the_context_leaves_mass_undecided() -> None:
    short = TableModel(VOCABULARY, {}, default=[0.4, 0.2, 0.2, 0.2], context_length=1)
    found = mass(short, Regex("(a|b)*"), event="complete", tolerance=0)
    assert (found.status, found.truncated_by) == ("truncated", "length")
    assert found.low == pytest.approx(0.2 + 0.8 * 0.2)
    assert found.high == pytest.approx(1.0)


def test_an_interruption_returns_the_proven_bounds() -> None:
    calls = []

    def logits(prefixes: list) -> list:
        calls.append(len(prefixes))
        if len(calls) == 3:
            raise KeyboardInterrupt
        return [[0.0] * 4] * len(prefixes)

    found = mass(FunctionModel(VOCABULARY, logits), Regex("(a|b)*"), event="complete", tolerance=0)
    assert found.status == "interrupted"
    assert 1.0 in found
    assert found.low > 0.2


def test_an_interrupted_table_stays_sound() -> None:
    for stop in range(1, 8):
        calls = []

        def logits(prefixes: list, calls: list = calls, stop: int = stop) -> list:
            calls.append(len(prefixes))
            if len(calls) == stop:
                raise KeyboardInterrupt
            return [[0.0] * 4] * len(prefixes)

        model = FunctionModel(VOCABULARY, logits)
        table = mass_table(
            model, Regex("(?P<x>a|b)(a|b)?"), event="complete", tolerance=0, batch_size=1
        )
        whole = table.mass()
        # a, b, and their continuations, of which one is a token of its own.
        assert whole.low <= 2 / 16 + 4 / 64 + 1 / 16 <= whole.high
        assert table.status in ("interrupted", "exact")


@pytest.mark.parametrize(
    ("options", "name"),
    [
        ({}, "event"),
        ({"event": "maybe"}, "event"),
        ({"event": "prefix", "tolerance": -1}, "tolerance"),
        ({"event": "prefix", "tolerance": math.nan}, "tolerance"),
        ({"event": "prefix", "batch_size": 0}, "batch_size"),
        ({"event": "prefix", "limits": 3}, "limits"),
        ({"event": "prefix", "limits": Limits(hits=3)}, "hits"),
    ],
)
def test_wrong_options_are_refused(options: dict, name: str) -> None:
    with pytest.raises(ArgumentError, match=name):
        list(mass_bounds(MODEL, Regex("a"), **options))


def test_options_without_effect_on_a_mass_are_refused() -> None:
    with pytest.raises(ArgumentError, match="prefix_cost"):
        mass(MODEL, Query(Regex("ab"), given="a", prefix_cost="joint"), event="complete")
    no_end = TableModel(Vocabulary.from_tokens([b"a"]), {}, default=[1.0])
    with pytest.raises(ArgumentError, match="end token"):
        mass(no_end, Regex("a"), event="complete")
    with pytest.raises(ArgumentError, match="must name groups of the language, got 'z'"):
        mass_table(MODEL, Regex("(?P<x>a)"), ["z"])
    with pytest.raises(ArgumentError, match="must have a named group"):
        mass_table(MODEL, Regex("a"))
    with pytest.raises(ArgumentError, match="never"):
        mass_table(MODEL, Query(Regex("(?P<x>a)"), event="never"))
    with pytest.raises(ArgumentError, match="unique"):
        mass(MODEL, Query(Regex("a"), event="prefix", unique="tokens"))
    with pytest.raises(ArgumentError, match="progress"):
        mass(MODEL, Regex("a"), event="prefix", progress=3)
    with pytest.raises(ArgumentError, match="group must be a group of the table, got 'y'"):
        mass_table(MODEL, Regex("(?P<x>a)"), event="complete").mass(y="a")
    with pytest.raises(ArgumentError, match="renormalize"):
        mass(MODEL, Query(Regex("a"), decoding=Decoding(top_k=2)), event="never")
