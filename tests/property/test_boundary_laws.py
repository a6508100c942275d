"""The end of `given`: between tokens, or inside one that is healed."""

import math
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from formalm import (
    ArgumentError,
    Choice,
    LanguageError,
    Limits,
    Query,
    Regex,
    StringLiteral,
    TableModel,
    TokenError,
    mass,
    sample,
    search,
)
from formalm.models.canary import canary
from formalm.probability import mass_table
from formalm.query import plan
from formalm.records import Records, rescore
from tests.unit.test_sample import LONGER, fits

WORDS = Regex("(a|b){1,4}")
MODELS = st.builds(
    lambda seed, order: TableModel.random(LONGER, seed=seed, order=order),
    st.integers(0, 10**6),
    st.integers(0, 3),
)


def sequences(model: TableModel, front: tuple[int, ...], text: str, event: str) -> dict:
    """Every way to spell a member that begins with a text, behind some tokens, by trying all."""
    found = {}
    begun = model.vocabulary.decode(front).decode()

    def visit(ids: tuple[int, ...], logprob: float) -> None:
        data = begun + model.vocabulary.decode(ids).decode()
        row = model.next_logprobs([(*front, *ids)])[0]
        if data.startswith(text) and WORDS.matches(data):
            found[data, ids] = logprob + (row[4] if event == "complete" else 0.0)
        if len(data) < 4:
            for token_id in range(4):
                longer = data + model.vocabulary.token_bytes(token_id).decode()
                if len(longer) <= 4 and (longer.startswith(text) or text.startswith(longer)):
                    visit((*ids, token_id), logprob + row[token_id])

    visit((), 0.0)
    return found


@given(
    MODELS,
    st.sampled_from(["a", "b", "ab", "aba", "bb"]),
    st.sampled_from(["complete", "token_prefix"]),
    st.sampled_from(["joint", "conditional"]),
)
def test_healing_is_its_definition(model: TableModel, text: str, event: str, cost: str) -> None:
    kept = tuple(LONGER.encode(text))[:-1]
    before = 0.0
    for place, token_id in enumerate(kept):
        before += model.next_logprobs([kept[:place]])[0][token_id]
    expected = sequences(model, kept, text, event)
    fields = {"given": text, "boundary": "heal", "event": event}
    hits = list(search(model, Query(WORDS, unique="tokens", prefix_cost=cost, **fields)))
    added = before if cost == "joint" else 0.0
    found = {(hit.text, hit.token_ids): hit.logprob - added for hit in hits}
    assert found == pytest.approx(expected, abs=1e-12)
    assert [hit.logprob for hit in hits] == sorted((hit.logprob for hit in hits), reverse=True)
    assert all((hit.given, hit.text) == (text, text + hit.completion) for hit in hits)
    for record, logprobs in zip(Records(hits), rescore(model, hits), strict=True):
        assert record.given_token_ids == kept
        assert record.token_logprobs == pytest.approx(logprobs, abs=1e-9)
    merged = Counter()
    for (data, _), logprob in expected.items():
        merged[data] += math.exp(logprob)
    strings = search(model, Query(WORDS, **fields), tolerance=0)
    assert {hit.text: math.exp(hit.logprob) for hit in strings} == pytest.approx(merged, abs=1e-12)
    bound = mass(model, Query(WORDS, **fields), tolerance=0)
    if event == "complete":
        assert bound.low - 1e-12 <= math.fsum(merged.values()) <= bound.high + 1e-12
        assert bound.width < 1e-9


def test_draws_and_tables_of_a_healed_query() -> None:
    model = TableModel.random(LONGER, seed=4, order=1)
    query = Query(WORDS, given="ab", boundary="heal", event="complete")
    expected = {
        key: math.exp(value) for key, value in sequences(model, (0,), "ab", "complete").items()
    }
    assert any(ids[0] == 3 for _, ids in expected)  # `ba` straddles the end of `ab`
    drawn = sample(model, query, n=4000, seed=2)
    assert {one.given for one in drawn} == {"ab"}
    assert fits(Counter((one.text, one.token_ids) for one in drawn), expected)
    grouped = Query(Regex("ab(?P<x>a|b)b?"), given="ab", boundary="heal", event="complete")
    table = mass_table(model, grouped, tolerance=0)
    split = mass(model, Query(Regex("abab?"), given="ab", boundary="heal", event="complete"))
    assert split.low - 1e-3 <= table.mass(x="a").low <= split.high + 1e-3
    assert {hit.record().groups["x"] for hit in search(model, grouped)} == {"a", "b"}
    assert plan(query).texts.count == plan(Query(WORDS & Regex("ab.*"))).texts.count


def test_canonical_tokens_continue_a_partial_word() -> None:
    language, given_text = Choice(["The man", "The woman"]), "The "
    options = {"given": given_text, "tokenization": "canonical"}
    with pytest.raises(TokenError):
        search(canary(), Query(language, **options))
    healed = list(search(canary(), Query(language, boundary="heal", **options)))
    behind = list(search(canary(), Query(language, given="The", tokenization="canonical")))
    assert [(hit.text, hit.token_ids) for hit in healed] == [
        (hit.text, hit.token_ids) for hit in behind
    ]
    assert [hit.logprob for hit in healed] == pytest.approx([hit.logprob for hit in behind])
    assert [hit.completion for hit in healed] == [hit.text[4:] for hit in healed]
    # No prompt: the first token of all is given back, and the text written as a whole.
    (whole,) = search(
        canary(), Query(StringLiteral("Then"), boundary="heal", **options | {"given": "T"})
    )
    assert whole.text == "Then"
    assert list(whole.token_ids) == canary().vocabulary.encode("Then")


def test_a_healed_search_resumes(tmp_path) -> None:
    model = TableModel.random(LONGER, seed=4, order=1)
    for unique in ("tokens", "strings"):
        query = Query(WORDS, given="ab", boundary="heal", unique=unique)
        whole = list(search(model, query))
        first = search(model, query, limits=Limits(hits=2))
        found = list(first)
        first.save(tmp_path / unique)
        found += list(search(model, query, resume=tmp_path / unique))
        assert found == whole
    assert Query.from_toml(query.to_toml()) == query


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({}, "requires given"),
        ({"given": Choice(["a", "ab"])}, "requires a single nonempty string"),
        ({"given": ""}, "boundary='heal' requires a single nonempty string in"),
        ({"given": "a", "event": "contains"}, "contains"),
        ({"given": "a", "prefix_cost": "zero", "unique": "tokens"}, "prefix_cost"),
        ({"given": "a", "prefix_weights": "encodings"}, "prefix_weights"),
        ({"given": "a", "tokenization": "canonical-given"}, "canonical-given"),
    ],
)
def test_prompts_that_cannot_be_healed(options: dict, message: str) -> None:
    with pytest.raises(ArgumentError, match=message):
        Query(WORDS, boundary="heal", **options)


def test_uniform_draws_are_not_healed() -> None:
    healed = Query(WORDS, boundary="heal", given="a")
    with pytest.raises(ArgumentError, match="split"):
        sample(TableModel.random(LONGER, seed=1), healed, target="uniform")


def test_a_text_that_begins_no_member_is_shown() -> None:
    with pytest.raises(
        LanguageError, match="given must be a prefix of a member, got 'ax': only its first byte"
    ):
        Query(WORDS, boundary="heal", given="ax")
