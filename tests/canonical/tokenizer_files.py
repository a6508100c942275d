"""Real tokenizer files, each with the library that they are written for."""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import pytest
from tokenizers import Tokenizer

from formalm import Constraint, Regex, Vocabulary

FILES = Path(__file__).parents[3] / "shared" / "tokenizers"
NAMES = sorted(path.name.removesuffix(".json.gz") for path in FILES.glob("*.json.gz"))
QUICK = {"gpt2-50k", "mistral-v1-32k"}
BATCH = 50_000
# Llama 3's is ranked too, but tiktoken cannot be kept from taking pieces whole.
RANKED = ("gpt2", "cl100k", "o200k", "tekken")


def _bytes_of_characters() -> dict[str, int]:
    """How byte-level files write bytes: as themselves where they are seen, else shifted."""
    seen = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    rest = [byte for byte in range(256) if byte not in seen]
    return {
        **{chr(byte): byte for byte in seen},
        **{chr(256 + at): byte for at, byte in enumerate(rest)},
    }


BYTES = _bytes_of_characters()
needs_files = pytest.mark.skipif(not NAMES, reason="no tokenizer files in ../shared/tokenizers")


def quick_and_slow(names: Sequence[str] = NAMES) -> list[Any]:
    """The names as parameters: two that every run takes, the others marked slow."""
    return [pytest.param(name, marks=() if name in QUICK else pytest.mark.slow) for name in names]


@dataclass(frozen=True)
class Case:
    """A tokenizer, as its library and as we read it."""

    name: str
    data: bytes

    @cached_property
    def tokenizer(self) -> Tokenizer:
        """The library's, which takes names of special tokens in a text for text."""
        tokenizer = Tokenizer.from_str(self.data.decode())
        tokenizer.encode_special_tokens = True
        return tokenizer

    @cached_property
    def vocabulary(self) -> Vocabulary:
        return Vocabulary.from_tokenizer_json(self.data)

    @cached_property
    def file(self) -> dict[str, Any]:
        return dict(json.loads(self.data))

    @cached_property
    def anything(self) -> Constraint:
        """All texts, in canonical tokens."""
        return Constraint(Regex(r"(?s:.*)"), self.vocabulary, tokenization="canonical")

    @cached_property
    def pieces(self) -> list[str | None]:
        """What the file calls each token; None for ids that only added tokens have."""
        found: list[str | None] = [None] * len(self.vocabulary)
        for piece, token_id in self.file["model"]["vocab"].items():
            found[token_id] = piece
        return found

    @cached_property
    def merging(self) -> Tokenizer:
        """The library's merging alone, of texts written in pieces: no cuts, nothing taken whole."""
        file = {**self.file, "pre_tokenizer": None, "normalizer": None, "post_processor": None}
        file["model"] = {**file["model"], "ignore_merges": False}
        file["added_tokens"] = []
        return Tokenizer.from_str(json.dumps(file))

    def merged(self, texts: list[str]) -> Iterator[list[int]]:
        """What merging alone makes of texts written in pieces.

        Asked is tiktoken where its rule, a token's rank is its id, is the file's: it is the library
        that those vocabularies are from. Otherwise ``tokenizers``.
        """
        if self.name.startswith(RANKED):
            for text in texts:
                yield self.ranked._encode_single_piece(bytes(map(BYTES.__getitem__, text)))
        else:
            encoded = self.merging.encode_batch_fast(texts, add_special_tokens=False)
            yield from (encoding.ids for encoding in encoded)

    @cached_property
    def ranked(self) -> Any:
        from tiktoken import Encoding

        tokens = enumerate(self.vocabulary.tokens())
        ranks = {token: at for at, token in tokens if token is not None}
        return Encoding(self.name, pat_str=".+", mergeable_ranks=ranks, special_tokens={})

    def uncut(self) -> Case:
        """The same without a pre-tokenizer and without added tokens: merging alone."""
        file = dict(self.file)
        if file["model"].get("byte_fallback"):
            return self
        level = {"type": "ByteLevel", "add_prefix_space": False, "use_regex": False}
        file["pre_tokenizer"] = {**level, "trim_offsets": True}
        file["model"] = {**file["model"], "ignore_merges": False}
        file["added_tokens"] = [token for token in file["added_tokens"] if token["special"]]
        return Case(f"{self.name}, uncut", json.dumps(file).encode())

    def ids_of_kind(self, *kinds: str) -> list[int]:
        encoder = self.vocabulary.encoder()
        return [at for at in range(len(self.vocabulary)) if encoder.kind(at) in kinds]

    def encode_all(self, texts: Iterable[str]) -> Iterator[list[int] | None]:
        """What the library makes of texts as tokens spell them; None if no text becomes such, or
        if its decoding does not give the text back.

        Where a space is put in front of text, a line break that merges with nothing stands in for
        what came before.
        """
        encoder = self.vocabulary.encoder()
        front, marks = "\n" if encoder.prepends_space else "", encoder.marks_spaces
        skipped = 2 if front else 0
        texts = list(texts)
        for start in range(0, len(texts), BATCH):
            batch = texts[start : start + BATCH]
            encoded = self.tokenizer.encode_batch_fast(
                [front + text for text in batch], add_special_tokens=False
            )
            for text, encoding in zip(batch, encoded, strict=True):
                lost = self.normalizes and self.decode(encoding.ids) != text
                yield None if lost or (marks and "▁" in text) else list(encoding.ids[skipped:])

    @cached_property
    def normalizes(self) -> bool:
        """Whether the library changes some texts before encoding."""
        return self.file.get("normalizer") is not None and not self.file["model"].get(
            "byte_fallback"
        )

    def decode(self, ids: Sequence[int]) -> str:
        return str(self.tokenizer.decode(ids, skip_special_tokens=False))

    def encode(self, text: str) -> list[int] | None:
        (ids,) = self.encode_all([text])
        return ids


def load(name: str) -> Case:
    return Case(name, gzip.decompress((FILES / f"{name}.json.gz").read_bytes()))
