"""Joint searches over many prefixes: the hits of all prefixes listed in advance, and their cost."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import islice
from pathlib import Path
from typing import Any, Literal

import pytest

from formalm import ArgumentError, Limits, Query, Regex, search
from formalm.models.canary import canary
from formalm.query import Decoding
from formalm.searching import lazy_prefixes


class Plain:
    """A model without states, which fails at some calls."""

    def __init__(self, *, length: int | None = None, failures: Sequence[int] = ()) -> None:
        self.vocabulary = canary().vocabulary
        self.bos_token_id = canary().bos_token_id
        self.context_length = length
        self._failures, self._calls = failures, 0

    def next_logprobs(self, prefixes: Sequence[Sequence[int]]) -> Any:
        """Returns what the model returns, or fails."""
        self._calls += 1
        if self._calls in self._failures:
            raise OSError("no answer")
        return canary().next_logprobs(prefixes)


PREFIXES = "(The|This|A|Every) (man|woman)"
MEMBERS = Regex(PREFIXES + " (was|knows|came|there)")


@pytest.mark.parametrize(
    ("unique", "options"),
    [
        ("tokens", {}),
        ("tokens", {"limits": Limits(hits=20, beams=3)}),
        ("tokens", {"tokenization": "canonical", "event": "complete"}),
        ("tokens", {"decoding": Decoding(top_k=60), "decoded": "both"}),
        ("strings", {}),
        ("strings", {"event": "complete", "limits": Limits(hits=20, state_bytes=1)}),
    ],
)
def test_hits_are_those_of_prefixes_listed_in_advance(
    unique: Literal["tokens", "strings"], options: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    options = {"limits": Limits(hits=20), **options}
    query = Query(MEMBERS, given=Regex(PREFIXES), prefix_cost="joint", unique=unique, **options)
    listed = []
    for most in (1000, 0):
        monkeypatch.setattr(lazy_prefixes, "EAGER_PREFIXES", most)
        listed.append(list(search(canary(), query)))
    first, second = ([(h.text, h.given, h.token_ids) for h in hits] for hits in listed)
    assert first == second
    assert first
    for one, other in zip(*listed, strict=True):
        assert one.logprob == pytest.approx(other.logprob, abs=1e-4)


@pytest.mark.parametrize("unique", ["tokens", "strings"])
def test_an_error_of_the_model_loses_no_prefix(
    unique: Literal["tokens", "strings"], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lazy_prefixes, "EAGER_PREFIXES", 0)
    query = Query(MEMBERS, given=Regex(PREFIXES), prefix_cost="joint", unique=unique)
    limits = Limits(hits=12)
    failing = search(Plain(failures=range(1, 400, 2)), query, limits=limits)
    hits: list[Any] = []
    while failing.status == "running":
        try:
            hits.extend(failing)
        except OSError:
            continue
    assert failing.truncated_by == "hits"
    expected = list(search(Plain(), query, limits=limits))
    assert [(h.text, h.token_ids) for h in hits] == [(h.text, h.token_ids) for h in expected]


@pytest.mark.parametrize("unique", ["tokens", "strings"])
def test_prefixes_longer_than_the_context_are_reported(
    unique: Literal["tokens", "strings"],
) -> None:
    query = Query(
        Regex("(very )+(good|bad)"),
        given=Regex("(very )*very"),
        prefix_cost="joint",
        unique=unique,
        tokenization="canonical-given",
    )
    found = search(Plain(length=5), query)
    hits = list(found)
    assert found.truncated_by == "context"
    encode = canary().vocabulary.encode
    prefixes = [" ".join(["very"] * times) for times in range(1, 9)]
    # The first token of a sequence takes a place, the last one is not read.
    assert {hit.given for hit in hits} == {one for one in prefixes if 1 + len(encode(one)) <= 5}
    assert max(1 + len(encode(hit.given)) + len(hit.token_ids) for hit in hits) <= 5 + 1


def test_an_infinite_prefix_language_has_its_best_hits_by_brute_force() -> None:
    model, tokens = canary(), canary().vocabulary
    query = Query(
        Regex("(very )+(good|bad)"),
        given=Regex("(very )*very"),
        prefix_cost="joint",
        unique="tokens",
        tokenization="canonical",
        max_tokens=4,
    )
    hits = list(islice(search(model, query), 6))
    brute = []
    for times in range(1, 9):
        given = " ".join(["very"] * times)
        for more in range(4):
            for end in (" good", " bad"):
                front, ids = tokens.encode(given), tokens.encode(given + " very" * more + end)
                if ids[: len(front)] == front and len(ids) - len(front) <= 4:
                    brute.append((_logprob(ids), given, tokens.decode_text(ids)))
    brute.sort(reverse=True)
    assert [hit.logprob for hit in hits] == pytest.approx([one[0] for one in brute[:6]], abs=1e-3)
    assert {(hit.given, hit.text) for hit in hits} == {one[1:] for one in brute[:6]}


def _logprob(ids: list[int]) -> float:
    model = canary()
    rows = model.next_logprobs([[0, *ids[:place]] for place in range(len(ids))])
    return float(sum(row[token] for row, token in zip(rows, ids, strict=True)))


@pytest.mark.parametrize("unique", ["tokens", "strings"])
def test_thousands_of_prefixes_cost_no_more_than_no_given(
    unique: Literal["tokens", "strings"],
) -> None:
    pattern = "https://www.[a-z]+-[a-z]+\\.[a-z]+(/[a-z0-9/]*)?"
    joint = Query(Regex(pattern), given=Regex("https://www."), prefix_cost="joint", unique=unique)
    whole = Query(Regex(pattern), unique=unique)
    costs = []
    for query in (joint, whole):
        found = search(canary(), query)
        assert next(found).text.startswith("https://www.")
        costs.append(found.forwards)
    assert costs[0] <= 1.1 * costs[1]


def test_a_search_over_many_prefixes_is_not_saved(tmp_path: Path) -> None:
    query = Query(Regex("[a-z]{3} .*"), given=Regex("[a-z]{3}"), prefix_cost="joint")
    found = search(canary(), query, limits=Limits(forwards=4))
    with pytest.raises(ArgumentError, match="cannot be saved"):
        found.save(tmp_path / "state")
