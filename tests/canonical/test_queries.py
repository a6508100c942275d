"""Queries on canonical tokens: what the tokenizer writes for prompt, given and member together."""

from __future__ import annotations

import math
from functools import cache

import numpy as np
import pytest
from tokenizers import pre_tokenizers

from formalm import (
    ArgumentError,
    Choice,
    Constraint,
    Limits,
    Query,
    Regex,
    TableModel,
    TokenError,
    Vocabulary,
    mass,
    sample,
    score,
    search,
)
from formalm.models.canary import canary
from formalm.query import plan
from tests.canonical.small_tokenizers import members, trained

PROMPT = "In the end,"
LANGUAGES = [
    (" (the|these|there)( th|then)?", None),
    (" (the|these|there)( dog| fox)?", " (the|there)"),
    ("( 20| 1)[0-4]{0,2}", " 20| 1"),
    (" the( |\\n| a){0,3}", " the"),
    ("[ab]{0,4}", None),
]
IDS = tuple[int, ...]


@cache
def tokenizer():
    made = trained(pre_tokenizers.ByteLevel(add_prefix_space=False))
    made.add_special_tokens(["<|im|>"])
    return made


@cache
def vocabulary() -> Vocabulary:
    return Vocabulary.from_tokenizer_json(tokenizer().to_str(), end_token_ids=["<|im|>"])


@cache
def model(order: int = 1) -> TableModel:
    return TableModel.random(vocabulary(), seed=3, order=order)


def written(text: str) -> IDS:
    return tuple(tokenizer().encode(text, add_special_tokens=False).ids)


def chain(front: IDS, ids: IDS, complete: bool) -> float:
    rows = [model().next_logprobs([(*front, *ids[:n])])[0] for n in range(len(ids) + 1)]
    end = rows[-1][vocabulary().end_token_ids[0]] if complete else 0.0
    return math.fsum([*(row[i] for row, i in zip(rows, ids, strict=False)), end])


def expected(pattern: str, given: str | None, prompt: str, complete: bool) -> dict:
    """Every member behind each beginning, in the tokens of the whole text."""
    found = {}
    for start in [""] if given is None else [m.decode() for m in members(Regex(given))]:
        front = written(prompt + start)
        for data in members(Regex(pattern)):
            whole = written(prompt + data.decode())
            if data.decode().startswith(start) and whole[: len(front)] == front:
                assert front[: len(written(prompt))] == written(prompt)
                ids = whole[len(front) :]
                found[(start, data, ids)] = chain(front, ids, complete)
    return found


@pytest.mark.parametrize(("pattern", "given"), LANGUAGES)
@pytest.mark.parametrize("event", ["token_prefix", "complete"])
@pytest.mark.parametrize("prompt", ["", PROMPT])
def test_search_lists_what_the_tokenizer_writes(
    pattern: str, given: str | None, event: str, prompt: str
) -> None:
    query = Query(
        Regex(pattern),
        given=None if given is None else Regex(given),
        event=event,
        tokenization="canonical",
    )
    wanted = expected(pattern, given, prompt, event == "complete")
    for unique in ("strings", "tokens"):
        hits = list(search(model(), query, prompt=prompt or None, unique=unique))
        got = {(hit.given, hit.data, hit.token_ids): hit.logprob for hit in hits}
        assert len(got) == len(hits)
        assert set(got) == set(wanted)
        assert np.allclose([wanted[key] for key in got], list(got.values()), atol=1e-9)
        assert list(got.values()) == sorted(got.values(), reverse=True)


@pytest.mark.parametrize(("pattern", "given"), LANGUAGES)
def test_mass_and_plan_add_up_what_a_search_lists(pattern: str, given: str | None) -> None:
    beginnings = None if given is None else Regex(given)
    query = Query(Regex(pattern), given=beginnings, event="complete", tokenization="canonical")
    wanted = expected(pattern, given, PROMPT, complete=True)
    shares = 1 if given is None else len(members(Regex(given)))
    total = math.fsum(math.exp(logprob) for logprob in wanted.values()) / shares
    found = mass(model(), query, prompt=PROMPT, tolerance=0)
    assert found.status == "exact"
    assert found.low - 1e-15 <= total <= found.high + 1e-15
    assert found.width < 1e-12
    counted = plan(query, vocabulary()).tokens
    assert counted is not None
    assert counted.count == len(members(Regex(pattern)))


@cache
def few() -> TableModel:
    """A model of six tokens, so that every sequence can be tried."""
    texts = ["th", " the", " th", "e", " ", "n"]
    ids = [vocabulary().tokens().index(text.encode()) for text in texts]
    ids.append(vocabulary().end_token_ids[0])
    rng = np.random.default_rng(5)
    rows = {
        one: dict(zip(ids, rng.dirichlet(np.ones(len(ids))), strict=True)) for one in [None, *ids]
    }
    return TableModel(vocabulary(), lambda context: rows[context[-1] if context else None], order=1)


@pytest.mark.parametrize("event", ["prefix", "contains", "never"])
def test_events_are_decided_by_canonical_tokens(event: str) -> None:
    language, most = Regex("( the|then)e?"), 4
    query = Query(language, event=event, tokenization="canonical", max_tokens=most)
    starts = Regex("(?s)( the|then).*") if event == "prefix" else Regex("(?s).*( the|then).*")
    inside, undecided = [], []

    def visit(ids: IDS, logprob: float) -> None:
        data = vocabulary().decode(ids)
        if starts.matches(data) and written(data.decode()) == ids:
            inside.append(math.exp(logprob))
            return
        if len(ids) == most:
            undecided.append(math.exp(logprob))
            return
        row = few().next_logprobs([ids])[0]
        for token_id in np.flatnonzero(row > -np.inf).tolist():
            if vocabulary().token_bytes(token_id) is not None:
                visit((*ids, token_id), logprob + row[token_id])

    visit((), 0.0)
    total, rest = math.fsum(inside), math.fsum(undecided)
    found = mass(few(), query, tolerance=0)
    low, high = (1 - total - rest, 1 - total) if event == "never" else (total, total + rest)
    if event == "prefix":  # a token limit bounds the members
        assert found.low == pytest.approx(total, abs=1e-12)
        assert found.width < 1e-12
    else:
        # What is undecided is at most what brute force leaves so: dead ends are seen earlier.
        assert low - 1e-12 <= found.low <= found.high <= high + 1e-12
        assert (found.high if event == "never" else found.low) == pytest.approx(
            high if event == "never" else low, abs=1e-12
        )


@pytest.mark.parametrize("target", ["posterior", "local", "without_replacement", "uniform"])
def test_draws_are_canonical(target: str) -> None:
    # Behind " the" the tokens of " there" straddle; a uniform draw of it would have none.
    pattern, given = (" there( dog| fox)?| (a|b)", " there| a")
    query = Query(Regex(pattern), given=Regex(given), tokenization="canonical", event="complete")
    wanted = expected(pattern, given, PROMPT, complete=True)
    drawn = sample(model(), query, n=40, target=target, prompt=PROMPT, seed=1)
    assert len(drawn) == (len(wanted) if target == "without_replacement" else 40)
    for one in drawn:
        if one.log_weight > -math.inf:
            logprob = wanted[(one.given, one.data, one.token_ids)]
            assert one.logprob == pytest.approx(logprob - math.log(2), abs=1e-9)


def test_posterior_draws_have_their_shares() -> None:
    query = Query(Regex("[ab]{0,2}"), tokenization="canonical", event="complete")
    wanted = expected("[ab]{0,2}", None, "", complete=True)
    total = math.fsum(math.exp(one) for one in wanted.values())
    drawn = sample(model(), query, n=2000, seed=2)
    for (_, data, _), logprob in wanted.items():
        share = math.exp(logprob) / total
        seen = sum(one.data == data for one in drawn) / len(drawn)
        assert abs(seen - share) < 4.5 * math.sqrt(share * (1 - share) / len(drawn)) + 1e-3


@pytest.mark.parametrize(("pattern", "given"), LANGUAGES[1:4])
def test_canonical_tokens_may_be_required_of_given_only(pattern: str, given: str) -> None:
    query = Query(
        Regex(pattern), given=Regex(given), tokenization="canonical-given", unique="tokens"
    )
    hits = list(search(model(), query, prompt=PROMPT))
    constraint, front = Constraint(Regex(pattern), vocabulary()), written(PROMPT)
    wanted = {}
    for start in [m.decode() for m in members(Regex(given))]:
        ids = written(PROMPT + start)
        matcher = constraint.matcher()
        matcher.advance_bytes(start.encode())

        def visit(rest: IDS, start: str = start, ids: IDS = ids, matcher=matcher) -> None:
            if matcher.is_accepting:
                wanted[(start, rest)] = chain(ids, rest, complete=False)
            for token_id in matcher.allowed_token_ids().tolist():
                if token_id not in vocabulary().end_token_ids:
                    matcher.advance(token_id)
                    visit((*rest, token_id))
                    matcher.rollback()

        assert ids[: len(front)] == front
        visit(())
    got = {(hit.given, hit.token_ids): hit.logprob for hit in hits}
    assert set(got) == set(wanted)
    assert np.allclose([wanted[key] for key in got], list(got.values()), atol=1e-9)
    assert any(written(PROMPT + given)[: len(front)] == front for given, _ in got)


def test_uniform_draws_across_the_prompt_boundary_are_refused() -> None:
    query = Query(Regex(" there|( the fox)"), given=" the", tokenization="canonical")
    with pytest.raises(TokenError, match="the prompt does not end at a token boundary when b're'"):
        sample(model(), query, n=20, target="uniform", seed=1)


def test_scores_of_canonical_tokens() -> None:
    for text in (" the", " these", " there 20"):
        (found,) = score(model(), [text], prompt=PROMPT, tokenization="canonical")
        ids = written(PROMPT + text)[len(written(PROMPT)) :]
        assert found.token_ids == ids
        assert found.tokenizations == 1
        assert found.logprob == pytest.approx(chain(written(PROMPT), ids, complete=False))
        assert found.marginal.low <= found.logprob + 1e-12
        assert found.marginal.high >= found.logprob - 1e-12
        assert found.witness == ids
        (every,) = score(model(), [text], prompt=PROMPT, limits=Limits(forwards=2000))
        assert every.tokenizations > 1
        assert every.marginal.high > found.marginal.low


def test_languages_without_canonical_tokens_are_refused() -> None:
    query = Query(Regex(" the fox"), given=" the ", tokenization="canonical")
    with pytest.raises(TokenError, match="no canonical tokenization of a member has a token"):
        search(model(), query)
    with pytest.raises(TokenError, match="canonical"):
        search(model(), Query(Regex("fox"), tokenization="canonical"), prompt="the ")
    byte = Query(Regex("é"), given=Choice([b"\xc3"]), tokenization="canonical")
    with pytest.raises(TokenError, match="character"):
        search(model(), byte)
    whole = [vocabulary().tokens().index(b"t"), *written("he")]
    chosen = Query(Regex("the( fox)?"), given="the", tokenization="canonical-given")
    with pytest.raises(TokenError, match="must have the tokens"):
        search(model(), chosen, given=whole)
    assert next(search(model(), chosen, given=written("the"))).text == "the"
    with pytest.raises(ArgumentError, match="requires given"):
        Query(Regex("the"), tokenization="canonical-given")
    for field in ({"prefix_cost": "zero", "unique": "tokens"}, {"prefix_weights": "encodings"}):
        with pytest.raises(ArgumentError, match=next(iter(field))):
            Query(Regex("the"), given="the", tokenization="canonical", **field)


def test_canary_says_the_date_first() -> None:
    dates = Regex("George Washington was born on (February|July|May) [0-9]{1,2}, 17[0-9]{2}")
    given = "George Washington was born on"
    query = Query(dates, given=given, tokenization="canonical")
    (hit,) = search(canary(), query, limits=Limits(hits=1))
    assert hit.text == "George Washington was born on February 22, 1732"
    assert canary().vocabulary.is_canonical([*canary().vocabulary.encode(given), *hit.token_ids])
