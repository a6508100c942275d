"""distortion: the article's figures, brute force on a small tokenizer, and estimates."""

from __future__ import annotations

import math
from collections import defaultdict

import numpy as np
import pytest
from tokenizers import pre_tokenizers

from formalm import ArgumentError, Choice, LimitError, Query, Regex, TableModel, Vocabulary
from formalm.probability import distortion
from formalm.probability.divergence import between
from formalm.query import Decoding, Limits
from tests.canonical.small_tokenizers import trained
from tests.canonical.tokenizer_files import NAMES, load

ARTICLE = "mistral-v1-32k"


@pytest.mark.skipif(ARTICLE not in NAMES, reason=f"no {ARTICLE} in ../shared/tokenizers")
def test_the_articles_figures() -> None:
    vocabulary = load(ARTICLE).vocabulary
    ids = {data: i for i, data in reversed(list(enumerate(vocabulary.tokens()))) if i >= 259}

    def row(**probabilities: float) -> np.ndarray:
        """The rest goes to a token that is in no name; nothing is impossible."""
        values = np.full(len(vocabulary), 1e-12)
        for text, probability in probabilities.items():
            values[ids[text.encode()]] = probability
        values[ids[b"zzz" if b"zzz" in ids else b"#"]] += 1 - values.sum()
        return values

    # Sums as the article's notebook printed them; the shares of what is not canonical are made up.
    first = {" William": 0.0236205, " Will": 0.004, " W": 0.0008124}
    first |= {" Theod": 0.00388619, " The": 0.0194, " Th": 0.002, " T": 0.00007801}
    table = {
        (): row(**first),
        (ids[b" Theod"],): row(ore=0.00387837 / 0.00388619),
        (ids[b" The"],): row(od=(0.00388386 - 0.00387837) / 0.0194),
        (ids[b" The"], ids[b"od"]): row(ore=1 - 1e-6),
        (ids[b" Will"],): row(iam=(0.0236206 - 0.0236205) / 0.004),
    }
    model = TableModel(vocabulary, table, default=row())
    found = distortion(model, Regex(" William| Theodore"), event="token_prefix")
    assert found.exact
    william = found.share(" William")
    printed = {way: round(share, 5) for way, share in william.items()}
    assert printed["true"] == 0.85879
    assert printed["local"] == 0.52852
    assert printed["canonical_local"] == 0.85872
    assert printed["canonical"] == 0.85896
    local, canonical = found.divergences["local"], found.divergences["canonical_local"]
    assert local.total_variation.low == pytest.approx(0.330, abs=6e-4)
    assert local.kl is not None
    assert local.kl.low == pytest.approx(0.247, abs=6e-4)
    assert canonical.total_variation.low == pytest.approx(7.3e-5, rel=0.1)
    assert canonical.kl is not None
    assert canonical.kl.low == pytest.approx(2.2e-8, rel=0.1)
    assert found.mass.low == pytest.approx(0.0236206 + 0.00388386, rel=1e-4)


def small() -> tuple[Vocabulary, TableModel]:
    """A small tokenizer with an end, and a model of it."""
    tokenizer = trained(pre_tokenizers.ByteLevel(add_prefix_space=False))
    tokenizer.add_special_tokens(["</s>"])
    vocabulary = Vocabulary.from_tokenizer(tokenizer, "</s>")
    return vocabulary, TableModel.random(vocabulary, seed=4, order=1, concentration=0.2)


def by_definition(
    model: TableModel, texts: list[str], front: tuple[int, ...] = ()
) -> dict[str, dict[str, float]]:
    """Each way, by enumerating sequences and renormalizing at each step."""
    vocabulary = model.vocabulary
    (end,) = vocabulary.end_token_ids
    members = [text.encode() for text in texts]
    canonical = [(*vocabulary.encode(text), end) for text in texts]
    found: dict[str, dict[str, float]] = defaultdict(lambda: defaultdict(float))

    def allowed_all(ids: tuple[int, ...]) -> list[int]:
        data = vocabulary.decode(ids)
        return [
            token_id
            for token_id, token in enumerate(vocabulary.tokens())
            if (token_id == end and data in members)
            or (token and any(one.startswith(data + token) for one in members))
        ]

    def allowed_canonical(ids: tuple[int, ...]) -> list[int]:
        return sorted({way[len(ids)] for way in canonical if way[: len(ids)] == ids})

    def follow(kind: str, ids: tuple[int, ...], own: float, local: float) -> None:
        row = np.exp(model.next_logprobs([(*front, *ids)])[0])
        allowed = (allowed_all if kind == "all" else allowed_canonical)(ids)
        total = row[allowed].sum()
        for token_id in allowed:
            probability = float(row[token_id])
            if token_id == end:
                text = vocabulary.decode(ids).decode()
                found[f"{kind} model"][text] += own * probability
                found[f"{kind} local"][text] += local * probability / total
            else:
                follow(kind, (*ids, token_id), own * probability, local * probability / total)

    for kind in ("all", "canonical"):
        follow(kind, (), 1.0, 1.0)
    return found


@pytest.mark.parametrize("texts", [["the", "then", "there"], ["ab", "a", "line 1"], ["x", "yes"]])
@pytest.mark.parametrize("prompted", [False, True])
def test_shares_are_those_of_the_definition(texts: list[str], prompted: bool) -> None:
    vocabulary, model = small()
    # A special token begins a text anew, so that canonical tokens are those of the text alone.
    front = vocabulary.end_token_ids if prompted else ()
    found = distortion(model, Choice(texts), event="complete", prompt=list(front) or None)
    true = by_definition(model, texts, front)
    mass = sum(true["all model"].values())
    own = sum(true["canonical model"].values())
    assert found.exact
    assert found.mass.low == pytest.approx(mass, rel=1e-10)
    assert found.canonical_mass is not None
    assert found.canonical_mass.low == pytest.approx(own, rel=1e-10)
    for text in texts:
        shares = found.share(text)
        assert shares["true"] == pytest.approx(true["all model"][text] / mass, rel=1e-10)
        assert shares["local"] == pytest.approx(true["all local"][text], rel=1e-10)
        assert shares["canonical"] == pytest.approx(true["canonical model"][text] / own, rel=1e-10)
        local = true["canonical local"][text]
        assert shares["canonical_local"] == pytest.approx(local, rel=1e-10)
    for way, divergence in found.divergences.items():
        p, q = found.shares["true"], found.shares[way]
        assert divergence.total_variation.low == pytest.approx(0.5 * np.abs(p - q).sum())
        assert divergence.kl is not None
        assert divergence.kl.low == pytest.approx(float((p * np.log(p / q)).sum()), abs=1e-12)


def test_estimates_hold_the_distances_of_token_sequences() -> None:
    vocabulary = Vocabulary.from_tokens([b"a", b"b", b"ab", b"c", None], end_token_ids=[4])
    model = TableModel.random(vocabulary, seed=11, order=1, concentration=1.0)
    language = Regex("ab|abc|c")
    p: dict[tuple[int, ...], float] = {}
    q: dict[tuple[int, ...], float] = {}

    def follow(ids: tuple[int, ...], own: float, local: float) -> None:
        data = vocabulary.decode(ids)
        row = np.exp(model.next_logprobs([ids])[0])
        allowed = [k for k in range(4) if language.is_viable(data + vocabulary.decode([k]))]
        allowed += [4] * language.matches(data)
        for k in allowed:
            step = float(row[k]), float(row[k] / row[allowed].sum())
            if k == 4:
                p[ids], q[ids] = own * step[0], local * step[1]
            else:
                follow((*ids, k), own * step[0], local * step[1])

    follow((), 1.0, 1.0)
    mass = sum(p.values())
    truth = between(np.array(list(p.values())) / mass, np.array(list(q.values())))
    held = 0
    for seed in range(20):
        found = distortion(model, language, event="complete", exact=False, draws=400, seed=seed)
        assert not found.exact
        assert found.notes[0].startswith("the canonical distribution")
        estimate = found.divergences["local"]
        assert estimate.kl is not None
        assert truth.kl is not None
        held += (
            found.mass.low <= mass <= found.mass.high
            and estimate.total_variation.low <= truth.total_variation.low
            and truth.total_variation.low <= estimate.total_variation.high
            and estimate.kl.low <= truth.kl.low <= estimate.kl.high
        )
    assert held >= 19
    assert estimate.total_variation.width < 0.5


def test_an_infinite_language_is_estimated_in_canonical_tokens_too() -> None:
    vocabulary, _ = small()
    row = np.full(len(vocabulary), 0.5 / (len(vocabulary) - 1))
    row[list(vocabulary.end_token_ids)] = 0.5
    model = TableModel(vocabulary, {}, default=row)
    found = distortion(model, Regex("(the|a)+"), event="complete", draws=200, seed=1)
    assert set(found.divergences) == {"local", "canonical_local", "canonical"}
    assert all(0 <= one.total_variation.low <= 1 for one in found.divergences.values())
    assert "infinitely many" in found.notes[-1]
    assert "estimated" in str(found)


def test_distances() -> None:
    apart = between(np.array([1.0, 0.0]), np.array([0.0, 1.0]))
    assert apart.total_variation.low == 1
    assert apart.kl is not None
    assert apart.kl.low == math.inf
    lost = between(np.array([0.5, 0.5]), np.array([0.25, 0.25]))
    assert lost.total_variation.low == 0.5


def test_options_without_effect_are_refused() -> None:
    vocabulary = Vocabulary.from_tokens([b"a", b"b", None], end_token_ids=[2])
    model = TableModel.random(vocabulary, seed=1)
    for query in (
        Query(Regex("ab"), event="complete", given="a"),
        Query(Regex("ab"), event="complete", max_tokens=3),
        Query(Regex("ab"), event="complete", unique="tokens"),
        Query(Regex("ab"), event="complete", limits=Limits(hits=1)),
        Query(Regex("ab")),
        Query(Regex("ab"), event="contains"),
    ):
        with pytest.raises(ArgumentError):
            distortion(model, query)
    with pytest.raises(ArgumentError, match="prefix of another"):
        distortion(model, ["a", "ab"], event="token_prefix")
    with pytest.raises(ArgumentError, match="only exact comparison"):
        distortion(model, Regex("a+b"), event="token_prefix")
    with pytest.raises(ArgumentError, match="exact=True requires a finite language"):
        distortion(model, Regex("a+b"), event="complete", exact=True)
    with pytest.raises(LimitError):
        distortion(model, Regex("[ab]{3}"), event="complete", exact=True, limits=Limits(forwards=5))
    with pytest.raises(LimitError):
        distortion(model, Regex("[ab]{3}"), event="complete", limits=Limits(forwards=2), seed=1)
    greedy = Query(Regex("ab"), event="complete", decoding=Decoding(temperature=0))
    with pytest.raises(ArgumentError, match="the model assigns probability 0 to every member"):
        distortion(TableModel(vocabulary, {}, default=[0, 0, 1]), greedy)
