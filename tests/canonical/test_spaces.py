"""The space that some tokenizers put in front of a text, where a model writes one."""

from __future__ import annotations

from typing import Any

import pytest
from tokenizers import Tokenizer, decoders, models, normalizers, pre_tokenizers

from formalm import (
    Choice,
    Constraint,
    FunctionModel,
    Grammar,
    Language,
    Regex,
    Vocabulary,
    continuation,
    generate,
)
from tests.canonical.cases import sequences

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
