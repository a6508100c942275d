"""Joint searches over many prefixes: the hits of all prefixes listed in advance, and their cost."""

from __future__ import annotations

from itertools import islice
from pathlib import Path

import pytest

from formalm import ArgumentError, Limits, Query, Regex, search
from formalm.models.canary import canary
from formalm.searching import lazy_prefixes


@pytest.mark.parametrize("unique", ["tokens", "strings"])
def test_hits_are_those_of_prefixes_listed_in_advance(
    unique: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    language = Regex("(The|This|A|Every) (man|woman) (was|knows|came|there)")
    query = Query(
        language, given=Regex("(The|This|A|Every) (man|woman)"), prefix_cost="joint", unique=unique
    )
    listed = []
    for most in (1000, 0):
        monkeypatch.setattr(lazy_prefixes, "EAGER_PREFIXES", most)
        listed.append(list(search(canary(), query, limits=Limits(hits=20))))
    first, second = ([(h.text, h.given, h.token_ids) for h in hits] for hits in listed)
    assert first == second
    for one, other in zip(*listed, strict=True):
        assert one.logprob == pytest.approx(other.logprob, abs=1e-4)


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


def test_thousands_of_prefixes_cost_no_more_than_no_given() -> None:
    pattern = "https://www.[a-z]+-[a-z]+\\.[a-z]+(/[a-z0-9/]*)?"
    joint = Query(Regex(pattern), given=Regex("https://www."), prefix_cost="joint", unique="tokens")
    whole = Query(Regex(pattern), unique="tokens")
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
