"""search: order, events, given, limits, refusals. Against brute force: tests/property."""

import numpy as np
import pytest

from formalm import (
    ArgumentError,
    FunctionModel,
    LanguageError,
    Limits,
    Regex,
    TableModel,
    Vocabulary,
    search,
)
from formalm.query import Decoding

TOKENS = [b"a", b"b", b"ab", b" ", None]
VOCABULARY = Vocabulary.from_tokens(
    TOKENS, end_token_ids=[4], encode=lambda text: [{"a": 0, "b": 1, " ": 3}[c] for c in text]
)
MODEL = TableModel(VOCABULARY, {}, default=[0.4, 0.2, 0.1, 0.1, 0.2])


def listed(query: object, **options: object) -> list[tuple[str, float]]:
    return [
        (hit.text, round(float(np.exp(hit.logprob)), 6)) for hit in search(MODEL, query, **options)
    ]


def test_prefix_and_complete() -> None:
    language = Regex("a?b")
    assert listed(language, unique="tokens") == [("b", 0.2), ("ab", 0.1), ("ab", 0.08)]
    assert listed(language, tolerance=0) == [("b", 0.2), ("ab", 0.18)]
    assert listed(language, event="complete", tolerance=0) == [("b", 0.04), ("ab", 0.036)]


def test_hits_describe_their_string_and_tokens() -> None:
    hit = next(search(MODEL, ["ab"], tolerance=0))
    assert (hit.text, hit.data, hit.rank, hit.token_ids) == ("ab", b"ab", 1, (2,))
    assert hit.tokenizations == 2
    assert hit.logprob == pytest.approx(np.log(0.18))


def test_ties_go_to_the_shorter_then_the_smaller() -> None:
    flat = TableModel(VOCABULARY, {}, default=[0.2] * 5)
    shown = [hit.token_ids for hit in search(flat, ["a", "b", "ab"], unique="tokens")]
    assert shown == [(0,), (1,), (2,), (0, 1)]


def test_an_infinite_language_is_listed_for_ever() -> None:
    hits = search(MODEL, Regex("a*"))
    first = [next(hits).text for _ in range(4)]
    assert first == ["", "a", "aa", "aaa"]
    assert hits.status == "running"
    certain = TableModel(VOCABULARY, {}, default={0: 1.0})
    for unique in ("strings", "tokens"):
        endless = search(certain, Regex("a*"), unique=unique)
        assert [next(endless).text for _ in range(3)] == ["", "a", "aa"]


def test_given_has_probability_one() -> None:
    hits = list(search(MODEL, Regex("ab? [ab]"), given="ab ", tolerance=0))
    assert [(hit.text, hit.completion, hit.given) for hit in hits] == [
        ("ab a", "a", "ab "),
        ("ab b", "b", "ab "),
    ]
    assert hits[0].logprob == pytest.approx(np.log(0.4))
    by_ids = next(search(MODEL, Regex("ab? [ab]"), given=[2, 3]))
    assert by_ids.text == "ab a"


def test_given_must_begin_a_member() -> None:
    with pytest.raises(LanguageError) as caught:
        search(MODEL, Regex("ab"), given="aa")
    assert caught.value.span == (1, 2)


def test_the_prompt_is_not_part_of_the_language() -> None:
    seen = []

    def logits(prefixes: list) -> list:
        seen.extend(prefixes)
        return [[0.0] * 5] * len(prefixes)

    model = FunctionModel(VOCABULARY, logits, bos_token_id=4)
    hits = list(search(model, ["ba"], prompt="ab", given="b"))
    assert seen[0] == (4, 0, 1, 1)
    assert hits[0].text == "ba"


def test_top_k_follows_fewer_ways_without_renormalizing() -> None:
    assert listed(Regex("[ab]"), decoding=Decoding(top_k=1)) == [("a", 0.4)]
    assert listed(Regex("b"), decoding=Decoding(top_k=1)) == []
    assert listed(Regex("a"), decoding=Decoding(top_k=1), event="complete") == []


def test_max_tokens() -> None:
    assert listed(["ab"], max_tokens=1) == [("ab", 0.1)]
    assert listed(["ab"], max_tokens=1, unique="tokens", event="complete") == [("ab", 0.02)]
    assert listed([""], max_tokens=0) == [("", 1.0)]


def test_limits_are_reported_in_the_status() -> None:
    for unique in ("strings", "tokens"):
        hits = search(MODEL, Regex("[ab]*"), limits=Limits(hits=3), unique=unique)
        assert len(list(hits)) == 3
        assert (hits.status, hits.truncated_by) == ("truncated", "hits")
        hits = search(MODEL, Regex("[ab]*"), limits=Limits(forwards=7), unique=unique)
        found = list(hits)
        assert (hits.status, hits.truncated_by) == ("truncated", "forwards")
        assert hits.forwards <= 7
        assert hits.hits == len(found)
        hits = search(MODEL, Regex("[ab]*"), limits=Limits(seconds=1e-9), unique=unique)
        list(hits)
        assert (hits.status, hits.truncated_by) == ("truncated", "seconds")
        hits = search(MODEL, Regex("[ab]{2}"), unique=unique)
        list(hits)
        assert (hits.status, hits.truncated_by) == ("exhausted", None)
        assert next(hits, None) is None


def test_a_full_context_is_reported() -> None:
    short = TableModel(VOCABULARY, {}, default=[0.4, 0.2, 0.1, 0.1, 0.2], context_length=1)
    for unique in ("strings", "tokens"):
        hits = search(short, Regex("a{3}|a{2}"), unique=unique)
        assert [hit.text for hit in hits] == ["aa"]
        assert (hits.status, hits.truncated_by) == ("truncated", "context")


def test_a_prompt_beyond_the_context_is_refused() -> None:
    short = TableModel(VOCABULARY, {}, default=[0.4, 0.2, 0.1, 0.1, 0.2], context_length=1)
    with pytest.raises(ArgumentError, match="context"):
        search(short, ["aab"], prompt="a", given="a")


def test_batches_fill() -> None:
    sizes = []

    def logits(prefixes: list) -> list:
        sizes.append(len(prefixes))
        return [[0.0] * 5] * len(prefixes)

    hits = search(FunctionModel(VOCABULARY, logits), Regex("[ab]{6}"), batch_size=8)
    for _ in range(5):
        next(hits)
    assert max(sizes) == 8
    assert hits.forwards == sum(sizes)
    assert hits.calls == len(sizes)


@pytest.mark.parametrize(
    "options",
    [
        {"unique": "both"},
        {"event": "contains"},
        {"decoding": 3},
        {"max_tokens": -1},
        {"batch_size": 0},
        {"tolerance": -1},
        {"tolerance": 1},
        {"tolerance": "x"},
        {"limits": 3},
        {"limits": Limits(hits=0)},
        {"limits": Limits(beams=0)},
        {"limits": Limits(beams=2), "unique": "strings"},
        {"limits": Limits(seconds=0)},
        {"tokenization": "canonical-given"},
        {"given": 3},
        {"prompt": [17]},
        {"bos": "no"},
    ],
)
def test_wrong_options_are_refused(options: dict) -> None:
    with pytest.raises(ArgumentError):
        search(MODEL, Regex("a"), **options)


def test_a_complete_event_needs_an_end_token() -> None:
    model = TableModel(Vocabulary.from_tokens([b"a"]), {}, default=[1.0])
    with pytest.raises(ArgumentError, match="end token"):
        search(model, Regex("a"), event="complete")


def test_a_string_is_no_query() -> None:
    with pytest.raises(LanguageError):
        search(MODEL, "a")
