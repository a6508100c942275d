"""Ratios of masses at the edges: nothing over nothing, and products that underflow."""

from __future__ import annotations

import math

import pytest

from formalm import (
    ArgumentError,
    Choice,
    LanguageError,
    Limits,
    Query,
    Regex,
    TableModel,
    Vocabulary,
    mass,
    sample,
    search,
)
from formalm.probability import mass_table
from formalm.query import Edits
from formalm.records import Record
from tests.support.tiny_models import AB_MODEL, AB_VOCABULARY


def test_odds_of_nothing_over_nothing_may_be_anything() -> None:
    table = mass_table(AB_MODEL, Regex("(?P<x>[ab])(?P<y>[ab])?"), event="complete", tolerance=0)
    assert table.odds_ratio({"x": "q"}, {"x": "a"}) == (0.0, math.inf)
    assert table.odds_ratio({"x": "q"}, {"y": "a"}) == (0.0, math.inf)
    low, high = table.odds_ratio({"x": "a"}, {"y": "a"})
    assert low <= 1 <= high < low * (1 + 1e-12)


def test_odds_of_small_masses_do_not_underflow() -> None:
    """Each of the four members has about 600 nats."""
    texts = {(0, 0): 0.4, (0, 1): 0.1, (1, 0): 0.2, (1, 1): 0.3}
    rows = {
        (): [0.5, 0.5, 0.0],
        (0,): [0.8, 0.2, 0.0],
        (1,): [0.4, 0.6, 0.0],
    }
    model = TableModel(AB_VOCABULARY, rows, default=[0.3, 0.3, 0.4])
    table = mass_table(model, Regex("(?P<x>[ab])(?P<y>[ab])a{500}"), event="complete", tolerance=0)
    wanted = texts[0, 0] * texts[1, 1] / (texts[0, 1] * texts[1, 0])
    low, high = table.odds_ratio({"x": "a"}, {"y": "a"})
    assert low <= wanted <= high
    assert high - low < 1e-7


def test_strings_that_no_tokens_spell_have_probability_zero() -> None:
    for texts in (["z"], ["ab", "zz"], ["az"]):
        possible = texts == ["ab", "zz"]
        found = mass(AB_MODEL, Query(Choice(texts), event="contains"), limits=Limits(forwards=300))
        never = mass(AB_MODEL, Query(Choice(texts), event="never"), limits=Limits(forwards=300))
        if possible:
            assert 0 < found.low <= found.high < 1
        else:
            assert (found.low, found.high, found.forwards) == (0, pytest.approx(0), 0)
            assert (never.low, never.high) == (pytest.approx(1), 1)


def test_a_name_is_no_list_of_names() -> None:
    with pytest.raises(ArgumentError, match="list of names"):
        mass_table(AB_MODEL, Regex("(?P<x>[ab])"), "x")


def test_strings_in_every_output_have_probability_one() -> None:
    with pytest.raises(
        LanguageError, match="the language must not contain the empty string, which"
    ):
        sample(AB_MODEL, Query(Regex("a?"), event="never"))


def test_groups_of_an_edited_text_are_those_of_its_member() -> None:
    query = Query(Regex("(?P<first>a)b"), edits=Edits(1), event="complete")
    groups = {}
    for hit in search(AB_MODEL, query):
        record = hit.record()
        assert isinstance(record, Record)
        groups[hit.text] = dict(record.groups)
    assert groups["ab"] == groups["bb"] == {"first": "a"}


def test_a_string_is_drawn_once_whatever_the_tokens_of_its_prefix() -> None:
    vocabulary = Vocabulary.from_tokens(
        [b"a", b"b", b"ab", None], end_token_ids=[3], encode=lambda text: list(text.encode())
    )
    model = TableModel(vocabulary, {}, default=[0.4, 0.2, 0.2, 0.2])
    query = Query(
        Regex("ab(a|b)"), given="ab", unique="strings", prefix_weights="encodings", event="complete"
    )
    drawn = sample(model, query, n=8, target="without_replacement", seed=3)
    assert sorted(one.text for one in drawn) == ["aba", "abb"]
