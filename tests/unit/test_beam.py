"""Beam search: against brute force, against a naive beam search, against greedy decoding."""

from __future__ import annotations

import itertools
from math import fsum
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from formalm import (
    ArgumentError,
    Choice,
    Constraint,
    Language,
    Regex,
    StringLiteral,
    TableModel,
    Vocabulary,
    generate,
    search,
)

TOKENS = [b"a", b"b", b"ab", b".", None]
END = 4
VOCABULARY = Vocabulary.from_tokens(TOKENS, end_token_ids=[END])
LANGUAGES = [
    Regex("[ab]+"),
    Regex("[ab]{2,4}[.]"),
    Regex("(ab|ba)*b?[.]?"),
    Choice(["a", "b", "ab", "abab."]),
    Regex("a{3}|[.]b*"),
    StringLiteral(""),
]
Scored = tuple[bool, float, tuple[int, ...]]


def table(seed: int, *, ties: bool = False) -> TableModel:
    """A random model; with ties all its probabilities are a half, a quarter and an eighth."""
    if not ties:
        return TableModel.random(VOCABULARY, seed=seed, order=2, concentration=0.7)

    def row(context: tuple[int, ...]) -> np.ndarray:
        order = np.random.default_rng([seed, *context]).permutation(5)
        return np.array([0.5, 0.25, 0.125, 0.125, 0])[order]

    return TableModel(VOCABULARY, row, order=2)


def ended(language: Language, ids: tuple[int, ...], budget: int) -> str | None:
    """Why a token sequence ends, from the definition of the language alone."""
    if ids and ids[-1] == END:
        return "end_token"
    text = b"".join(TOKENS[i] or b"" for i in ids)
    going_on = any(language.is_viable(text + (token or b"")) for token in TOKENS if token)
    if language.matches(text) and not going_on:
        return "finished"
    return "length" if len(ids) == budget else None


def continuations(
    model: TableModel, language: Language, ids: tuple[int, ...]
) -> list[tuple[float, int]]:
    """The allowed tokens with any probability, from the definition."""
    text = b"".join(TOKENS[i] or b"" for i in ids)
    row = model.next_logprobs([ids])[0]
    allowed = [
        language.matches(text) if token is None else language.is_viable(text + token)
        for token in TOKENS
    ]
    return [(float(row[i]), i) for i in range(5) if allowed[i] and row[i] > -np.inf]


def naive(
    model: TableModel, language: Language, width: int, budget: int
) -> list[tuple[str, Scored]]:
    """Beam search without a stop rule: full sorts, to the end of the budget."""
    done: list[tuple[str, Scored]] = []
    live: list[tuple[tuple[int, ...], list[float]]] = [((), [])]
    first = ended(language, (), budget)
    if first is not None:
        return [(first, (False, 0.0, ()))]
    while live:
        ranked = []
        for ids, logprobs in live:
            following = continuations(model, language, ids)
            if not following:
                done.append(("dead_end", (True, -fsum(logprobs), ids)))
            for logprob, i in following:
                ranked.append((-(fsum(logprobs) + logprob), (*ids, i), [*logprobs, logprob]))
        live, going = [], 0
        for rank, (_, ids, logprobs) in enumerate(sorted(ranked)):
            reason = ended(language, ids, budget)
            if going == width:
                break
            if reason in (None, "length"):
                going += 1
            if reason is None:
                live.append((ids, logprobs))
            elif reason == "length" or rank < width:
                done.append((reason, (reason == "length", -fsum(logprobs), ids)))
    alive = [entry for entry in done if entry[0] != "dead_end"]
    return sorted(alive or done, key=lambda e: (e[1][0], e[1][1], len(e[1][2]), e[1][2]))


@given(
    seed=st.integers(0, 10_000),
    ties=st.booleans(),
    language=st.sampled_from(LANGUAGES),
    width=st.integers(1, 6),
    budget=st.integers(0, 7),
    data=st.data(),
)
@settings(max_examples=300, deadline=None)
def test_against_a_naive_beam_search(
    seed: int, ties: bool, language: Language, width: int, budget: int, data: Any
) -> None:
    count = data.draw(st.integers(1, width))
    model = table(seed, ties=ties)
    found = generate(model, None, language, beams=width, n=count, max_tokens=budget)
    wanted = naive(model, language, width, budget)[:count]
    assert [g.token_ids for g in found] == [ids for _, (_, _, ids) in wanted]
    assert [g.reason for g in found] == [reason for reason, _ in wanted]
    assert [g.logprob for g in found] == pytest.approx([-score for _, (_, score, _) in wanted])
    assert [g.index for g in found] == list(range(len(found)))


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("language", LANGUAGES[:5])
def test_enough_beams_are_exact(seed: int, language: Language) -> None:
    """With a beam for every prefix nothing is pruned: the best sequences there are."""
    model, budget = table(seed), 5
    everything = []
    for size in range(budget + 1):
        for ids in itertools.product(range(5), repeat=size):
            text = b"".join(TOKENS[i] or b"" for i in ids)
            is_whole = END not in ids[:-1] and language.matches(text)
            before = [ended(language, ids[:i], budget + 1) for i in range(size)]
            if is_whole and before == [None] * size and ended(language, ids, budget + 1):
                rows = [model.next_logprobs([ids[:i]])[0][ids[i]] for i in range(size)]
                everything.append((-fsum(rows), len(ids), ids))
    found = generate(model, None, language, beams=5**budget, n=12, max_tokens=budget)
    whole = [g.token_ids for g in found if g.complete]
    assert whole == [ids for _, _, ids in sorted(everything)][:12][: len(whole)]
    assert len(whole) == min(12, len(everything))


def test_enough_beams_are_a_search() -> None:
    language = Regex("[ab]+")
    hits = search(table(1), language, unique="tokens", event="complete", max_tokens=6)
    best = [(*next(hits).token_ids, END) for _ in range(20)]
    found = generate(table(1), None, language, beams=4000, n=20, max_tokens=7)
    assert [g.token_ids for g in found] == best


@pytest.mark.parametrize("seed", range(30))
@pytest.mark.parametrize("options", [{}, {"finish": True}, {"stop": "ba"}])
def test_one_beam_is_greedy(seed: int, options: dict[str, Any]) -> None:
    for model in (table(seed), table(seed, ties=True)):
        for language in LANGUAGES:
            given = {"max_tokens": 6, **options}
            greedy = generate(model, None, language, temperature=0, **given)
            (beam,) = generate(model, None, language, beams=1, n=1, **given)
            assert beam.token_ids == greedy.token_ids
            assert (beam.reason, beam.text, beam.complete, beam.stop_text) == (
                greedy.reason,
                greedy.text,
                greedy.complete,
                greedy.stop_text,
            )
            assert np.array_equal(beam.log_allowed_mass, greedy.log_allowed_mass)


def test_beam_search_finds_what_greedy_decoding_misses() -> None:
    rows = {(): [0.6, 0.4, 0, 0, 0], (0,): [0.3, 0.3, 0, 0.4, 0], (1,): [0.9, 0, 0, 0.1, 0]}
    model = TableModel(VOCABULARY, rows)
    language = Choice(["aa", "a.", "ba", "b."])
    greedy = generate(model, None, language, temperature=0, max_tokens=2)
    beam = generate(model, None, language, beams=2, max_tokens=2)
    assert (greedy.text, beam.text) == ("a.", "ba")
    assert beam.logprob == pytest.approx(np.log(0.36))
    assert beam.seed is None


def test_finish() -> None:
    language = Regex("[ab]{2,6}[.]")
    for seed in range(10):
        found = generate(table(seed), None, language, beams=5, n=5, max_tokens=4, finish=True)
        assert all(language.matches(g.text) and g.complete for g in found)
        scores = [g.logprob for g in found]
        assert scores == sorted(scores, reverse=True)
    open_ended = Regex("[ab]{2,}")
    for g in generate(table(0), None, open_ended, beams=5, n=5, max_tokens=3, finish=True):
        assert open_ended.matches(g.text)
        assert g.complete


def test_stops() -> None:
    found = generate(table(2), None, None, beams=6, n=6, max_tokens=6, stop=["ba", "."])
    stopped = [g for g in found if g.reason == "stop"]
    assert stopped
    for g in stopped:
        whole = b"".join(TOKENS[i] or b"" for i in g.token_ids).decode()
        assert whole.startswith(g.text + (g.stop_text or ""))
        assert g.stop_text in ("ba", ".")


def test_dead_ends_are_dropped_or_reported() -> None:
    # After "a" the model wants only ".", which the language does not have there.
    rows = {(): [0.9, 0.1, 0, 0, 0], (0,): [0, 0, 0, 1, 0], (1,): [0.5, 0.5, 0, 0, 0]}
    model = TableModel(VOCABULARY, rows, default=[0.2] * 5)
    language = Choice(["ab", "aa", "ba", "bb"])
    found = generate(model, None, language, beams=4, n=4, max_tokens=5)
    assert [g.text for g in found] == ["ba", "bb"]
    (lost,) = generate(model, None, language, beams=1, n=1, max_tokens=5)
    assert (lost.reason, lost.complete, lost.text) == ("dead_end", False, "a")


def test_complete_sequences_rank_before_truncated_ones() -> None:
    model = TableModel(VOCABULARY, {}, default=[0.6, 0.3, 0, 0.05, 0.05])
    found = generate(model, None, Regex("[ab]+"), beams=3, n=3, max_tokens=2)
    assert [(g.reason, g.complete) for g in found] == [
        ("length", False),
        ("length", False),
        ("length", False),
    ]
    found = generate(model, None, Regex("[ab]+"), beams=6, n=4, max_tokens=2)
    assert [g.complete for g in found] == [True, True, False, False]
    assert found[0].logprob < found[2].logprob


def test_ties_go_to_smaller_token_ids() -> None:
    model = TableModel(VOCABULARY, {}, default=[0.25, 0.25, 0, 0.25, 0.25])
    found = generate(model, None, Regex("[ab]{2}[.]"), beams=3, n=3, max_tokens=5)
    assert [g.text for g in found] == ["aa.", "ab.", "ba."]


def test_a_large_choice_is_not_walked_to_its_end() -> None:
    """Every token ends the text: what ranks below the beams must not be forked one by one."""
    tokens: list[bytes | None] = [f"<{i}>".encode() for i in range(20_000)]
    vocabulary = Vocabulary.from_tokens(tokens)
    model = TableModel(vocabulary, {}, default=[1 / 20_000] * 20_000)
    constraint = Constraint(Regex("<[0-9]+>"), vocabulary)
    found = generate(model, None, constraint, beams=2, n=2, max_tokens=3)
    assert [g.text for g in found] == ["<0>", "<1>"]


@pytest.mark.parametrize(
    "options",
    [
        {"beams": 0},
        {"beams": 2.0},
        {"beams": True},
        {"beams": 2, "n": 3},
        {"beams": 2, "temperature": 0.7},
        {"beams": 2, "top_k": 3},
        {"beams": 2, "top_p": 0.9},
        {"beams": 2, "min_p": 0.1},
        {"beams": 2, "seed": 0},
    ],
)
def test_wrong_options_are_refused(options: dict[str, Any]) -> None:
    with pytest.raises(ArgumentError):
        generate(table(0), None, LANGUAGES[0], max_tokens=4, **options)
