"""Pre-tokenizers of llama.cpp: the steps that stand for them split text as it does."""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Sequence
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
import regex
from tokenizers import Tokenizer

from formalm import Vocabulary, VocabularyError
from formalm.vocabulary import gguf_pretokenizers
from formalm.vocabulary.gguf_pretokenizers import KNOWN_PRE, MARKED_SPACES
from tests.canonical.given_back import check_given_back, library
from tests.canonical.small_tokenizers import PIECES, trained, with_fallback

Splitter = Callable[[str], list[str]]

#: One name for each way to split text.
DISTINCT = list(
    {json.dumps(steps) + str(whole): name for name, (steps, whole) in KNOWN_PRE.items()}.values()
)
#: A run of 512 spaces is one piece, and 256 are another: too many states.
UNBOUNDED = {"jais-2"}


@cache
def tokenizer_of(name: str) -> Tokenizer:
    """A small byte-level tokenizer that splits like the name says."""
    steps, whole_pieces = KNOWN_PRE[name]
    file = json.loads(trained(PIECES["gpt2"]).to_str())
    file["pre_tokenizer"] = steps
    file["model"]["ignore_merges"] = whole_pieces
    tokenizer = Tokenizer.from_str(json.dumps(file))
    tokenizer.encode_special_tokens = True
    return tokenizer


@pytest.mark.parametrize("name", DISTINCT)
def test_languages_in_canonical_tokens(name: str) -> None:
    tokenizer = tokenizer_of(name)
    vocabulary = Vocabulary.from_tokenizer_json(tokenizer.to_str())
    if name in UNBOUNDED:
        with pytest.raises(VocabularyError, match="states"):
            vocabulary.encoder()
        return
    patterns = (r"(the|'s|'S| |\n|1){0,3}", r"[12]{1,5}|1{3,12}( |a)?", r"[ \n\t]{0,5}(a|1)?")
    for pattern in (*patterns, r"(文|あ|é|e\u0301|\+|_|a){0,3}"):
        check_given_back(library(tokenizer), vocabulary, pattern)


def split(step: str, pieces: Sequence[str], flags: int = 0) -> list[str]:
    """Splits pieces as llama.cpp does: matches and what lies between them."""
    found = []
    for piece in pieces:
        start = 0
        for match in regex.finditer(step, piece, flags | regex.V1):
            found += [piece[start : match.start()], match.group()]
            start = match.end()
        found.append(piece[start:])
    return [piece for piece in found if piece]


def groups_of_digits(text: str) -> list[str]:
    """The function of llama.cpp: a piece ends after each group of three digits from the right."""
    ends = [0]
    for run in regex.finditer(r"\p{N}+", text):
        first = len(run.group()) % 3
        ends += [run.start() + first] if first else []
        ends += range(run.start() + first + 3, run.end() + 1, 3)
    ends.append(len(text))
    return [text[one:other] for one, other in pairwise(ends) if one < other]


def definition(name: str) -> Splitter:
    """The splits of a name as llama.cpp defines them."""
    own: Any = gguf_pretokenizers
    if name == "tiny_aya":
        digits = r"\d{1,3}(?=(?:\d{3})*\b)"
        return lambda text: split(own._TINY_AYA, split(digits, [text], regex.ASCII))
    if name == "superbpe":
        return lambda text: split(r"(?=([0-9]{3})+(?![0-9]))", split(r"\p{N}+", [text]))
    if name == "afmoe":
        return lambda text: split(
            own._DEEPSEEK_3, split(own._AFMOE_SCRIPTS, groups_of_digits(text))
        )
    if name == "kimi-k2":
        letters = rf"[\p{{L}}--[{own._HAN}]]+"
        parts = own._KIMI_K2.replace(rf"(?:(?![{own._HAN}])\p{{L}})+", letters)
        assert letters in parts
        return lambda text: split(parts, [text])
    steps = [
        step.replace(r"(?![\s\S])", r"\Z")
        for step in own._DEEPSEEK_LLM_STEPS
        if isinstance(step, str)
    ]

    def in_turn(text: str) -> list[str]:
        pieces = [text]
        for step in steps:
            pieces = split(step, pieces)
        return pieces

    return in_turn


SCRAPS = [
    *"a b Z é ß É ' 's 'S 'll 1 2 3 12 123 1234 12345 1234567 ٣ ² _ - . , ; ! ( $ +".split(),
    *"文 字 漢字 あ ー ア 한 ㄱ ก Ж ω ǅ ʰ Ⴀ « … 。 ｡ ！ \u0301 \u093e 😀 \U00020000 /".split(),
    *(" ", "  ", "   ", "\n", "\n\n", "\r\n", "\t", "\u3000", "\u00a0"),
]


@pytest.mark.parametrize("name", ["tiny_aya", "superbpe", "afmoe", "kimi-k2", "deepseek-llm"])
def test_steps_split_as_the_functions_of_llama_cpp(name: str) -> None:
    splitter, rng = definition(name), random.Random(name)
    steps = tokenizer_of(name).pre_tokenizer
    for _ in range(5_000):
        text = "".join(rng.choices(SCRAPS, k=rng.randrange(1, 9)))
        found = [text[start:end] for _, (start, end) in steps.pre_tokenize_str(text)]
        assert found == splitter(text), text


def marked(pre: str) -> Callable[[Any], None]:
    """Writes a tokenizer that merges characters and marks spaces."""
    file = json.loads(with_fallback().to_str())
    ids = file["model"]["vocab"]
    pieces = sorted(ids, key=ids.__getitem__)

    def fill(writer: Any) -> None:
        writer.add_tokenizer_model("gemma4" if pre == "gemma4" else "gpt2")
        writer.add_tokenizer_pre(pre)
        writer.add_token_list(pieces)
        kinds = [2 if piece == "<unk>" else 6 if piece.startswith("<0x") else 1 for piece in pieces]
        writer.add_token_types(kinds)
        writer.add_token_merges([" ".join(pair) for pair in file["model"]["merges"]])

    return fill


@pytest.mark.parametrize("pre", MARKED_SPACES)
def test_files_of_characters_with_marked_spaces(pre: str, tmp_path: Path, write_gguf: Any) -> None:
    write_gguf(tmp_path / "model.gguf", marked(pre))
    vocabulary = Vocabulary.from_gguf(tmp_path / "model.gguf")
    assert {b" the", b"  ", "日".encode(), b"\n"} <= set(vocabulary.tokens())
    if MARKED_SPACES[pre] is None:
        with pytest.raises(VocabularyError, match="line breaks whole"):
            vocabulary.encoder()
        return
    tokenizer = Tokenizer.from_str(vocabulary._parts.tokenizer.data.decode())  # type: ignore[union-attr]
    assert tokenizer.encode("the é the\n\n日").tokens[:3] == ["the", "▁", "é"]
    for pattern in (r"(the| |é|\n|x){0,4}", r"[ab]{0,4}", r" {0,6}x?"):
        check_given_back(library(tokenizer), vocabulary, pattern)
