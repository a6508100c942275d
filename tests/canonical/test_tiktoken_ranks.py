"""Canonical tokens of tiktoken's encodings, ranks and tekken.json against tiktoken."""

from __future__ import annotations

import gzip
import json
import random
from base64 import b64encode
from pathlib import Path
from typing import Any

import pytest
import tiktoken

from formalm import ArgumentError, Vocabulary, VocabularyError
from tests.canonical.small_tokenizers import LANGUAGES
from tests.parity.canonical_checks import adversarial, check, check_texts
from tests.parity.test_vocabulary_loaders import byte_level

FILES = Path(__file__).parents[3] / "shared" / "tokenizers"
GPT2 = r"'(?:[sdmt]|ll|ve|re)| ?\p{L}++| ?\p{N}++| ?[^\s\p{L}\p{N}]++|\s++$|\s+(?!\S)|\s"
CL100K = (
    r"'(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}++|\p{N}{1,3}+| ?[^\s\p{L}\p{N}]++[\r\n]*+"
    r"|\s++$|\s*[\r\n]|\s+(?!\S)|\s"
)
WORD = r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]"
SMALL = r"[\p{Ll}\p{Lm}\p{Lo}\p{M}]"
O200K = (
    rf"{WORD}*{SMALL}+(?i:'s|'t|'re|'ve|'m|'ll|'d)?|{WORD}+{SMALL}*(?i:'s|'t|'re|'ve|'m|'ll|'d)?"
    r"|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+"
)
PATTERNS = {
    "gpt2": GPT2,
    "cl100k": CL100K,
    "o200k": O200K,
    # What no match covers is lost, so that texts with it have no tokens.
    "lossy": r"[a-z]+| [a-z]|\n(?=[ab])|1{2,3}",
    "ends": r"a+b?|\s+$|'$|[^a]",
}


def encoding(seed: int, pattern: str) -> Any:
    """Random ranks: merges in a strange order, tokens that merging does not make."""
    rng = random.Random(seed)
    tokens = {bytes([byte]) for byte in range(256)}
    texts = [bytes(rng.choices(b"ab \n1'", k=rng.randrange(2, 6))) for _ in range(60)]
    tokens |= {*texts, "é".encode(), b" the", b"th", b"he", b"ere"}
    # Ways to split them, so that most are made.
    tokens |= {text[:at] for text in texts[:40] for at in range(2, len(text))}
    ranks = rng.sample(sorted(tokens), len(tokens))
    return tiktoken.Encoding(
        "random",
        pat_str=pattern,
        mergeable_ranks={token: rank for rank, token in enumerate(ranks)},
        special_tokens={"<|endoftext|>": len(ranks) + 3, "<a>": len(ranks)},
    )


@pytest.mark.parametrize("name", PATTERNS)
def test_random_ranks_encode_as_tiktoken_does(name: str) -> None:
    for seed in range(8):
        made = encoding(seed, PATTERNS[name])
        vocabulary = Vocabulary.from_tiktoken(made)
        texts = adversarial("ab \n1'", 300)
        assert check_texts(made.encode_ordinary, vocabulary, texts) > 50
        encoder = vocabulary.encoder()
        kinds = [encoder.kind(token_id) for token_id in range(len(vocabulary))]
        assert encoder.early_count > 0
        assert "whole" in kinds
        assert kinds.count("never") == 4


@pytest.mark.parametrize("name", PATTERNS)
@pytest.mark.parametrize(
    "pattern",
    [
        r"[ab]{0,6}",
        r"[ab ]{0,4}",
        r"( |\n|a|1){0,4}",
        r"('|s|b|a){0,4}",
        r"(é|e|\xe9|th|ere| the){0,3}",
        r"(<a>|a|<\|endoftext\|>){0,2}",
        r"a+(1| )?b{2}",
    ],
)
def test_masks_of_random_ranks(name: str, pattern: str) -> None:
    made = encoding(len(pattern), PATTERNS[name])
    if pattern == r"a+(1| )?b{2}":
        pattern = r"a{1,4}(1| )?b{2}"
    check(made.encode_ordinary, Vocabulary.from_tiktoken(made), pattern)


def of_file(name: str) -> tuple[dict[bytes, int], dict[str, int]]:
    """Ranks and special tokens of a byte-level ``tokenizer.json``, in order of its ids."""
    path = FILES / f"{name}.json.gz"
    if not path.exists():
        pytest.skip("no tokenizer files in ../shared/tokenizers")
    file = json.loads(gzip.decompress(path.read_bytes()))
    table = byte_level()
    added = {token["content"]: token["id"] for token in file["added_tokens"]}
    pieces = {piece: at for piece, at in file["model"]["vocab"].items() if piece not in added}
    ranks = {bytes(table[letter] for letter in piece): at for piece, at in pieces.items()}
    return ranks, {name: at for name, at in added.items() if at not in pieces.values()}


REAL = {"gpt2-50k": GPT2, "cl100k": CL100K, "o200k": O200K, "llama3-128k": CL100K}


@pytest.mark.parametrize(
    "name", [pytest.param(n, marks=() if n == "gpt2-50k" else pytest.mark.slow) for n in REAL]
)
def test_ranks_of_real_tokenizers(name: str) -> None:
    ranks, special = of_file(name)
    made = tiktoken.Encoding(
        name, pat_str=REAL[name], mergeable_ranks=ranks, special_tokens=special
    )
    vocabulary = Vocabulary.from_tiktoken(made)
    own = Path(__file__).parents[2]
    files = ("docs/internals/schema.md", "docs/guides/grammars.md", "pyproject.toml")
    texts = [(own / file).read_text(encoding="utf-8") for file in files]
    assert check_texts(made.encode_ordinary, vocabulary, [*adversarial("a \n1'", 3000), *texts])
    for pattern in (*LANGUAGES, r"(Việt| Việt|V|ệ){0,2}", r"(::|//|/|\n|a){0,4}"):
        check(made.encode_ordinary, vocabulary, pattern)


def test_ranks_in_files_and_maps(tmp_path: Path) -> None:
    made = encoding(1, CL100K)
    ranks, special = dict(made._mergeable_ranks), dict(made._special_tokens)
    lines = [f"{b64encode(token).decode()} {rank}\n" for token, rank in ranks.items()]
    (tmp_path / "tokenizer.model").write_text("".join(lines))
    vocabulary = Vocabulary.from_tiktoken(made)
    for source in (ranks, tmp_path / "tokenizer.model", str(tmp_path / "tokenizer.model")):
        other = Vocabulary.from_tiktoken(source, pattern=CL100K, special_tokens=special)
        assert other == vocabulary
        assert other.end_token_ids == vocabulary.end_token_ids
        assert other.encode("aab it's\n") == vocabulary.encode("aab it's\n")
        check(made.encode_ordinary, other, "[ab]{0,4}")
        with pytest.raises(VocabularyError, match="pattern must be given"):
            Vocabulary.from_tiktoken(source)
    with pytest.raises(ArgumentError, match="which has its own"):
        Vocabulary.from_tiktoken(made, pattern=CL100K)
    (tmp_path / "wrong").write_text("IQ== 0\nIg==\n")
    wrong: list[Any] = [tmp_path / "wrong", {b"": 1}, {"a": 1}, {b"a": -1}, {b"a": 1, b"b": 1}]
    for source in wrong:
        with pytest.raises(VocabularyError):
            Vocabulary.from_tiktoken(source, pattern=CL100K)


def test_a_saved_vocabulary_has_the_same_canonical_tokens(tmp_path: Path) -> None:
    made = encoding(2, GPT2)
    vocabulary = Vocabulary.from_tiktoken(made)
    vocabulary.save(tmp_path / "saved")
    loaded = Vocabulary.load(tmp_path / "saved")
    assert loaded.merges_like(vocabulary)
    assert not loaded.merges_like(Vocabulary.from_tiktoken(encoding(3, GPT2)))
    check(made.encode_ordinary, loaded, "[ab]{0,4}")


@pytest.mark.parametrize(
    ("pattern", "message"),
    [
        (r"a(?=bc)|\s|\S", "ahead more than one character"),
        (r"(?<=a)b|\s|\S", "is not supported in pre-tokenizer"),
        (r"^a|\s|\S", "is not supported in pre-tokenizer"),
        (r"\ba|\s|\S", "is not supported in pre-tokenizer"),
        (r"[a-z&&[^b]]|\s|\S", "is not supported in pre-tokenizer"),
        (r"[a-z--b]|\s|\S", "is not supported in pre-tokenizer"),
        (r"(?>ab|a)c|\s|\S", "possessive"),
        (r"a*", "empty string"),
    ],
)
def test_unsupported_patterns_are_refused(pattern: str, message: str) -> None:
    ranks = {bytes([byte]): byte for byte in range(256)}
    vocabulary = Vocabulary.from_tiktoken(ranks, pattern=pattern)
    with pytest.raises(VocabularyError, match=message):
        vocabulary.encoder()


def test_ranks_without_a_byte_are_refused() -> None:
    ranks = {bytes([byte]): byte for byte in range(255)}
    with pytest.raises(VocabularyError, match="0xff"):
        Vocabulary.from_tiktoken(ranks, pattern=GPT2).encoder()


def test_strings_that_encoding_loses() -> None:
    made = encoding(0, PATTERNS["lossy"])
    vocabulary = Vocabulary.from_tiktoken(made)
    ids = [vocabulary.encode(letter)[0] for letter in "aba"]
    ids.insert(2, made._mergeable_ranks[b"\xc3"])
    ids.insert(3, made._mergeable_ranks[b"\xa9"])
    error = vocabulary.canonical_error(ids)
    assert error is not None
    assert error.expected is None
    assert error.index == 3
    assert "no tokens for this text" in error.reason


def test_tekken(tmp_path: Path) -> None:
    made = encoding(5, O200K)
    ranks = made._mergeable_ranks
    entries = [
        {"rank": rank, "token_bytes": b64encode(token).decode(), "token_str": None}
        for token, rank in ranks.items()
    ]
    file = {
        "config": {
            "pattern": O200K,
            "default_vocab_size": len(ranks) + 10,
            "default_num_special_tokens": 10,
        },
        "vocab": entries,
    }
    (tmp_path / "tekken.json").write_text(json.dumps(file))
    vocabulary = Vocabulary.from_pretrained(tmp_path)

    def encode(text: str) -> list[int]:
        return [rank + 10 for rank in made.encode_ordinary(text)]

    assert check_texts(encode, vocabulary, adversarial("ab \n1'", 300)) > 1000
    for pattern in ("[ab ]{0,4}", r"( |\n|a|1){0,4}"):
        check(encode, vocabulary, pattern)
