"""search is brute force, in order; generate's numbers are the model's own."""

from itertools import pairwise

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from formalm import Constraint, Limits, Regex, TableModel, Vocabulary, generate, search
from formalm.languages import Language
from formalm.query import Decoding

LANGUAGES = [
    Regex(p) for p in ("a*b?", "(a|b){1,3}", "a?b|ba", "(ab)*a?", "[ab]{2,4}", "aab|aba|b+")
]
MAX_TOKENS = 4


@st.composite
def models(draw: st.DrawFn) -> TableModel:
    longer = draw(st.lists(st.text("ab", min_size=2, max_size=3), max_size=3))
    tokens = [b"a", b"b", *(text.encode() for text in longer), None]
    vocabulary = Vocabulary.from_tokens(tokens, end_token_ids=[len(tokens) - 1])
    seed, order = draw(st.integers(0, 10**6)), draw(st.integers(0, 3))
    return TableModel.random(
        vocabulary, seed=seed, order=order, concentration=draw(st.sampled_from([0.3, 1.0, 5.0]))
    )


def brute_force(
    model: TableModel, language: Language, event: str, top_k: int | None, merge: bool
) -> dict[object, float]:
    """Every member, by trying every token sequence."""
    vocabulary, found = model.vocabulary, {}
    end = vocabulary.end_token_ids[0]

    def visit(ids: tuple[int, ...], logprob: float, data: bytes) -> None:
        row = model.next_logprobs([ids])[0].copy()
        if top_k is not None:
            row[np.argsort(-row, kind="stable")[top_k:]] = -np.inf
        if language.matches(data):
            total = logprob if event == "token_prefix" else logprob + row[end]
            if total > -np.inf:
                key = data if merge else ids
                found[key] = np.logaddexp(found.get(key, -np.inf), total)
        for token_id in range(len(vocabulary)):
            token = vocabulary.token_bytes(token_id)
            viable = token and row[token_id] > -np.inf and len(ids) < MAX_TOKENS
            if viable and language.is_viable(data + token):
                visit((*ids, token_id), logprob + row[token_id], data + token)

    visit((), 0.0, b"")
    return found


@given(
    models(),
    st.sampled_from(LANGUAGES),
    st.sampled_from(["token_prefix", "complete"]),
    st.sampled_from([None, 1, 2]),
    st.booleans(),
    st.integers(2, 20),
)
def test_search_is_brute_force_in_order(
    model: TableModel,
    language: Language,
    event: str,
    top_k: int | None,
    merge: bool,
    batch_size: int,
) -> None:
    expected = brute_force(model, language, event, top_k, merge)
    options = {
        "event": event,
        "decoding": Decoding(top_k=top_k),
        "unique": "strings" if merge else "tokens",
        "max_tokens": MAX_TOKENS,
        "tolerance": 0,
    }
    hits = list(search(model, language, batch_size=1, **options))
    keys = [hit.data if merge else hit.token_ids for hit in hits]
    assert set(keys) == set(expected)
    assert len(keys) == len(expected)
    assert np.allclose([hit.logprob for hit in hits], [expected[key] for key in keys], atol=1e-12)
    assert all(one.logprob >= two.logprob - 1e-12 for one, two in pairwise(hits))
    batched = list(search(model, language, batch_size=batch_size, **options))
    assert batched == hits


@given(
    models(),
    st.sampled_from(LANGUAGES),
    st.sampled_from(["token_prefix", "complete"]),
    st.integers(1, 5),
    st.integers(1, 20),
)
def test_a_beam_keeps_the_best_of_each_length(
    model: TableModel, language: Language, event: str, beam: int, batch_size: int
) -> None:
    vocabulary, end = model.vocabulary, model.vocabulary.end_token_ids[0]
    level, expected, dropped = {(): 0.0}, {}, False
    for length in range(MAX_TOKENS + 1):
        kept = sorted(level.items(), key=lambda item: (-item[1], item[0]))
        dropped = dropped or len(kept) > beam
        level = {}
        for ids, logprob in kept[:beam]:
            row, data = model.next_logprobs([ids])[0], vocabulary.decode(ids)
            if language.matches(data):
                expected[ids] = logprob if event == "token_prefix" else logprob + row[end]
            for token_id in range(end):
                if length < MAX_TOKENS and language.is_viable(
                    data + vocabulary.token_bytes(token_id)
                ):
                    level[(*ids, token_id)] = logprob + row[token_id]
    found = search(
        model,
        language,
        event=event,
        unique="tokens",
        max_tokens=MAX_TOKENS,
        limits=Limits(beams=beam),
        batch_size=batch_size,
    )
    hits = {hit.token_ids: hit.logprob for hit in found}
    assert set(hits) == set(expected)
    assert np.allclose([expected[ids] for ids in hits], list(hits.values()), atol=1e-9)
    assert list(hits.values()) == sorted(hits.values(), reverse=True)
    assert (found.status, found.truncated_by) == (
        ("truncated", "beams") if dropped else ("exhausted", None)
    )


@given(models(), st.sampled_from(LANGUAGES), st.sampled_from([1e-6, 1e-2]))
def test_a_tolerance_is_kept(model: TableModel, language: Language, tolerance: float) -> None:
    expected = brute_force(model, language, "token_prefix", None, merge=True)
    hits = list(search(model, language, max_tokens=MAX_TOKENS, tolerance=tolerance))
    assert {hit.data for hit in hits} == set(expected)
    slack = -np.log1p(-tolerance) + 1e-9
    for hit in hits:
        assert expected[hit.data] - slack <= hit.logprob <= expected[hit.data] + 1e-9
    for one, two in pairwise(hits):
        assert one.logprob >= two.logprob - slack


@given(models(), st.sampled_from(LANGUAGES), st.integers(0, 10**6), st.integers(1, 4))
def test_a_generations_numbers_are_the_models(
    model: TableModel, language: Language, seed: int, count: int
) -> None:
    generations = generate(model, None, language, n=count, max_tokens=6, seed=seed)
    single = generate(model, None, language, max_tokens=6, seed=seed)
    assert generations[0].token_ids == single.token_ids
    for generation in generations:
        matcher = Constraint(language, model.vocabulary).matcher()
        for place, token_id in enumerate(generation.token_ids):
            row = model.next_logprobs([generation.token_ids[:place]])[0]
            assert generation.logprobs[place] == row[token_id]
            mass = np.exp(row[matcher.mask()]).sum()
            assert np.isclose(generation.allowed_mass[place], mass)
            matcher.advance(token_id)
        assert generation.is_accepting == language.matches(generation.text)
        assert language.is_viable(generation.text)
        if generation.reason in ("end_token", "finished"):
            assert generation.is_accepting


@given(models(), st.sampled_from(LANGUAGES), st.integers(0, 10**6), st.integers(2, 7))
def test_finish_always_ends_inside(
    model: TableModel, language: Language, seed: int, budget: int
) -> None:
    generation = generate(model, None, language, max_tokens=budget, seed=seed, finish=True)
    assert generation.complete
    assert language.matches(generation.text)
    assert len(generation.token_ids) <= budget
