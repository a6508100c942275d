"""The space that some tokenizers prepend, and where a model writes one."""

from __future__ import annotations

import math
from typing import Any

import pytest
from tokenizers import Tokenizer, decoders, models, normalizers, pre_tokenizers

from formalm import (
    Choice,
    Constraint,
    FunctionModel,
    Grammar,
    Language,
    Query,
    Regex,
    TableModel,
    Vocabulary,
    generate,
    mass,
    sample,
    score,
    search,
)
from formalm.continuations import continuation
from tests.canonical.small_tokenizers import sequences

SCHEMES = ["first", "always", "never", "normalizer"]
LANGUAGES: list[Language] = [
    Choice(["ab", "a", " ab", "b a"]),
    Regex("(a|b| ){0,3}"),
    Choice(["b", "ba", ""]),
]


def made(scheme: str) -> Tokenizer:
    pieces = ["<s>", "<x>", *(f"<0x{byte:02X}>" for byte in range(256))]
    pieces += ["a", "b", "▁", "ab", "▁a", "▁ab", "▁▁", "ba"]
    merges = [("▁", "a"), ("a", "b"), ("▁a", "b"), ("▁", "▁"), ("b", "a"), ("▁", "ab")]
    vocab = {piece: at for at, piece in enumerate(pieces)}
    tokenizer = Tokenizer(models.BPE(vocab, merges, byte_fallback=True))
    if scheme == "normalizer":
        tokenizer.normalizer = normalizers.Sequence(
            [normalizers.Prepend("▁"), normalizers.Replace(" ", "▁")]
        )
    else:
        tokenizer.pre_tokenizer = pre_tokenizers.Metaspace(prepend_scheme=scheme, split=False)
    steps: list[Any] = [decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse()]
    if scheme != "never":
        steps.append(decoders.Strip(" ", 1, 0))
    tokenizer.decoder = decoders.Sequence(steps)
    tokenizer.add_special_tokens(["<s>", "<x>"])
    return tokenizer


@pytest.mark.parametrize("scheme", SCHEMES)
@pytest.mark.parametrize("front", [(), (0,), (0, 1)])
def test_a_text_begins_as_the_tokenizer_begins_it(scheme: str, front: tuple[int, ...]) -> None:
    tokenizer = made(scheme)
    vocabulary = Vocabulary.from_tokenizer_json(tokenizer.to_str())
    for language in LANGUAGES:
        constraint = Constraint(language, vocabulary, tokenization="canonical")
        found = continuation(constraint, front)
        # A beginning of sequence is put there by a template, and is no part of the text.
        shown = "<s><x>" if len(front) > 1 else ""
        wanted = set()
        for text in map(str, language.to_automaton()):
            ids = tokenizer.encode(shown + text).ids
            # Where a space is put unless one is there, that one is lost.
            if tokenizer.decode(ids) == text or (shown and scheme == "first"):
                wanted.add(tuple(ids[len(shown) // 3 :]))
        assert sequences(found.constraint, found.token_ids) == wanted


@pytest.mark.parametrize("measure", [False, True])
def test_texts_come_without_the_space(measure: bool) -> None:
    tokenizer = made("normalizer")
    vocabulary = Vocabulary.from_tokenizer_json(tokenizer.to_str())
    model = FunctionModel(vocabulary, lambda rows: [[0.0] * len(vocabulary)] * len(rows))
    grammar = Grammar('root ::= "a" root | "b"', syntax="gbnf")
    for language in (Choice(["ab", "a b", "ba"]), grammar):
        given: dict[str, Any] = {"tokenization": "canonical", "measure": measure, "max_tokens": 20}
        for result in generate(model, [0], language, n=8, seed=1, **given):
            assert result.regenerated == b" "
            if result.complete:
                assert language.matches(result.text)
                assert list(result.token_ids) == tokenizer.encode(result.text).ids
    healed = generate(
        model, tokenizer.encode("a").ids, grammar, tokenization="canonical", heal=1, seed=3,
        max_tokens=30,
    )  # fmt: skip
    assert healed.regenerated == b" a"
    assert vocabulary.is_canonical(healed.token_ids)


@pytest.mark.parametrize("scheme", SCHEMES)
@pytest.mark.parametrize("front", [(0,), (0, 1)])
def test_queries_begin_as_the_tokenizer_begins(scheme: str, front: tuple[int, ...]) -> None:
    tokenizer = made(scheme)
    vocabulary = Vocabulary.from_tokenizer_json(tokenizer.to_str(), end_token_ids=[1])
    model = TableModel.random(vocabulary, seed=2, order=1)
    shown = "<s><x>" if len(front) > 1 else ""
    for language, given in (*((one, None) for one in LANGUAGES), (Choice(["ab", "aba"]), "a")):
        query = Query(language, given=given, tokenization="canonical", event="complete")
        expected = {}
        for text in map(str, language.to_automaton()):
            ids = tokenizer.encode(shown + text).ids[len(shown) // 3 :]
            kept = tokenizer.decode(ids) == text or (shown and scheme == "first")
            begun = begun_of(tokenizer, given, shown)
            if kept and ids[: len(begun)] == begun:
                expected[text] = tuple(ids[len(begun) :])
        if not expected:
            continue
        hits = {hit.text: hit for hit in search(model, query, prompt=front, bos=None)}
        assert {text: hit.token_ids for text, hit in hits.items()} == expected
        for text, ids in expected.items():
            whole = (*front, *begun_of(tokenizer, given, shown), *ids)
            rows = [
                model.next_logprobs([whole[:n]])[0][whole[n]]
                for n in range(len(whole) - len(ids), len(whole))
            ]
            total = math.fsum([*rows, model.next_logprobs([whole])[0][1]])
            assert hits[text].logprob == pytest.approx(total, abs=1e-9)
            assert hits[text].completion == text[len(given or "") :]
        truth = math.fsum(math.exp(hit.logprob) for hit in hits.values())
        bound = mass(model, Query(**fields_of(query), bos=None), prompt=front, tolerance=0)
        assert bound.low - 1e-12 <= truth <= bound.high + 1e-12
        drawn = sample(model, Query(**fields_of(query), bos=None), n=20, prompt=front, seed=1)
        assert {(one.text, one.token_ids) for one in drawn} <= set(expected.items())
        if given is None:
            for found in score(
                model, list(expected), prompt=front, bos=None, tokenization="canonical"
            ):
                assert found.token_ids == expected[found.text]
                assert found.possible


def begun_of(tokenizer: Tokenizer, given: str | None, shown: str) -> list[int]:
    return [] if given is None else tokenizer.encode(shown + given).ids[len(shown) // 3 :]


def fields_of(query: Query) -> dict[str, Any]:
    names = ("language", "given", "tokenization", "event")
    return {name: getattr(query, name) for name in names}
