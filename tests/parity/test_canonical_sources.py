"""Canonical tokens of tiktoken, tekken.json, SentencePiece and GGUF against those libraries."""

from __future__ import annotations

import gzip
import io
import json
import random
import struct
from base64 import b64encode
from collections.abc import Callable, Sequence
from itertools import product
from pathlib import Path
from typing import Any

import pytest
import sentencepiece
import tiktoken
from tokenizers import Tokenizer

from formalm import ArgumentError, Constraint, LanguageError, Regex, Vocabulary, VocabularyError
from tests.parity.canonical_cases import LANGUAGES, TEXT, members, sequences, trained
from tests.parity.test_canonical import PIECES
from tests.parity.test_vocabulary_loaders import byte_level
from tests.unit.test_vocabulary_sentencepiece import field, varint

FILES = Path(__file__).parents[3] / "shared" / "tokenizers"
Encode = Callable[[str], Sequence[int]]

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


def check(encode: Encode, vocabulary: Vocabulary, pattern: str) -> None:
    """The sequences that masks allow are what the library makes of the members."""
    language = Regex(pattern)
    prefix = "\n" if vocabulary.encoder().prepends_space else ""
    expected = set()
    for text in members(language):
        # A line break that merges with nothing stands in for what came before.
        ids = tuple(encode(prefix + text.decode()))[2 if prefix else 0 :]
        if vocabulary.decode(ids) == text:
            expected.add(ids)
    if not expected:
        with pytest.raises(LanguageError, match="canonical"):
            Constraint(language, vocabulary, tokenization="canonical")
        return
    found = sequences(Constraint(language, vocabulary, tokenization="canonical"))
    ends = set(vocabulary.end_token_ids)
    if ends:
        ended = {ids[:-1] for ids in found if ids and ids[-1] in ends}
        found = {ids for ids in found if ends.isdisjoint(ids)}
        assert ended == found
    assert found == expected
    assert all(vocabulary.is_canonical(ids) for ids in list(found)[:50])


def check_texts(encode: Encode, vocabulary: Vocabulary, texts: Sequence[str]) -> int:
    """Our encoding is the library's, or says that no tokens spell the text; how often it is."""
    encoder, same = vocabulary.encoder(), 0
    for text in texts:
        if encoder.marks_spaces and "▁" in text:
            continue
        spelled = " " + text if encoder.prepends_space else text
        ids, found = list(encode(text)), encoder.encode(spelled)
        if vocabulary.decode(ids) == spelled.encode():
            assert found == ids, text
            same += 1
        else:
            assert found is None, text
    return same


def adversarial(alphabet: str, count: int) -> list[str]:
    """All short texts over a few characters, and long ones over many."""
    rng = random.Random(0)
    texts = ["".join(text) for length in range(1, 5) for text in product(alphabet, repeat=length)]
    more = alphabet + "aab  \n\r\t01239AZé中あ'sSlLſ.,!\u0301😀\u00a0\u2028ǅʰ²\0/{}\"Việt"
    return texts + ["".join(rng.choices(more, k=rng.randrange(5, 60))) for _ in range(count)]


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
    texts = [(own / file).read_text() for file in ("DESIGN.md", "pyproject.toml")]
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
        with pytest.raises(VocabularyError, match="needs a pattern"):
            Vocabulary.from_tiktoken(source)
    with pytest.raises(ArgumentError, match="of its own"):
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
        (r"a(?=bc)|\s|\S", "further than one character"),
        (r"(?<=a)b|\s|\S", "is not read"),
        (r"^a|\s|\S", "is not read"),
        (r"\ba|\s|\S", "is not read"),
        (r"[a-z&&[^b]]|\s|\S", "is not read"),
        (r"[a-z--b]|\s|\S", "is not read"),
        (r"(?>ab|a)c|\s|\S", "possessive"),
        (r"a*", "empty text"),
    ],
)
def test_patterns_that_cannot_be_followed(pattern: str, message: str) -> None:
    ranks = {bytes([byte]): byte for byte in range(256)}
    vocabulary = Vocabulary.from_tiktoken(ranks, pattern=pattern)
    with pytest.raises(VocabularyError, match=message):
        vocabulary.encoder()


def test_ranks_without_a_byte_are_refused() -> None:
    ranks = {bytes([byte]): byte for byte in range(255)}
    with pytest.raises(VocabularyError, match="0xff"):
        Vocabulary.from_tiktoken(ranks, pattern=GPT2).encoder()


def test_texts_that_are_lost() -> None:
    made = encoding(0, PATTERNS["lossy"])
    vocabulary = Vocabulary.from_tiktoken(made)
    ids = [vocabulary.encode(letter)[0] for letter in "aba"]
    ids.insert(2, made._mergeable_ranks[b"\xc3"])
    ids.insert(3, made._mergeable_ranks[b"\xa9"])
    error = vocabulary.canonical_error(ids)
    assert error is not None
    assert error.expected is None
    assert error.index == 3
    assert "no tokens that spell" in error.reason


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


def model(**options: Any) -> bytes:
    out = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter((TEXT * 5).replace("\n", " ").split(". ")),
        model_writer=out,
        hard_vocab_limit=False,
        minloglevel=2,
        **{
            "model_type": "bpe",
            "vocab_size": 420,
            "byte_fallback": True,
            "normalization_rule_name": "identity",
            "remove_extra_whitespaces": False,
            "character_coverage": 0.99,
            **options,
        },
    )
    return out.getvalue()


MODELS: dict[str, dict[str, Any]] = {
    "bytes": {},
    "no prefix": {"add_dummy_prefix": False},
    "no bytes": {"byte_fallback": False, "vocab_size": 160},
    "user-defined": {"user_defined_symbols": ["<tool>", "▁▁", "the▁", "ab", "abc", "<0x41>x", "1"]},
    "user-defined, no prefix": {
        "user_defined_symbols": ["\n", "\n\n", "▁▁▁", "t", "▁the"],
        "add_dummy_prefix": False,
        "control_symbols": ["<turn>"],
    },
}


@pytest.mark.parametrize("name", MODELS)
def test_sentencepiece_models(name: str) -> None:
    data = model(**MODELS[name])
    processor = sentencepiece.SentencePieceProcessor(model_proto=data)
    vocabulary = Vocabulary.from_sentencepiece(data)
    texts = adversarial("abthe \n1", 2000)
    assert check_texts(processor.encode, vocabulary, texts) > 1000
    languages = [r"( |a|b|t|the){0,4}", r"(é|e|日|中|\n| ){0,3}", r" {0,20}x?", r"[abc]{0,4}"]
    for pattern in (*languages, *LANGUAGES):
        check(processor.encode, vocabulary, pattern)


def by_hand(seed: int, *, prefix: bool) -> bytes:
    """Pieces with random scores, many of them equal."""
    rng = random.Random(seed)
    texts = {"".join(rng.choices("ab▁é", k=rng.randrange(2, 6))) for _ in range(40)}
    texts |= {text[:at] for text in list(texts)[:20] for at in range(2, len(text))}
    pieces = [("<unk>", 2, 0.0), ("<s>", 3, 0.0), ("</s>", 3, 0.0)]
    pieces += [(f"<0x{byte:02X}>", 6, 0.0) for byte in range(256)]
    score = rng.choice([lambda: -float(rng.randrange(5)), lambda: -1e9, lambda: -rng.random()])
    pieces += [(text, 1, score()) for text in rng.sample(sorted(texts), len(texts))]
    pieces += [(letter, 1, -100.0) for letter in "ab▁é"]
    if seed % 2:
        pieces.append(("ba", 4, 0.0) if "ba" not in texts else ("b▁ab▁", 4, 0.0))
    data = b""
    for text, kind, value in {piece[0]: piece for piece in pieces}.values():
        fields = field(1, text.encode()) + varint(2 << 3 | 5) + struct.pack("<f", value)
        data += field(1, fields + field(3, kind))
    normalizer = field(1, b"identity") + field(3, int(prefix)) + field(4, 0)
    return data + field(2, field(3, 2) + field(35, 1)) + field(3, normalizer)


@pytest.mark.parametrize("prefix", [False, True])
@pytest.mark.parametrize("seed", range(12))
def test_scores_that_are_equal_or_in_a_strange_order(seed: int, prefix: bool) -> None:
    data = by_hand(seed, prefix=prefix)
    processor = sentencepiece.SentencePieceProcessor(model_proto=data)
    vocabulary = Vocabulary.from_sentencepiece(data)
    texts = ["".join(text) for length in range(1, 6) for text in product("ab é", repeat=length)]
    texts += [text * 3 for text in texts[-300:]]
    assert check_texts(processor.encode, vocabulary, texts) == len(texts)
    for pattern in (r"[ab]{0,6}", r"[ab é]{0,4}", r"(é|\n|a| ){0,3}"):
        check(processor.encode, vocabulary, pattern)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"model_type": "unigram", "vocab_size": 350}, "Unigram: it chooses the best"),
        ({"model_type": "word", "vocab_size": 30, "byte_fallback": False}, "whole words"),
        ({"model_type": "char", "vocab_size": 60, "byte_fallback": False}, "single characters"),
        ({"remove_extra_whitespaces": True}, "repeated spaces"),
        ({"normalization_rule_name": "nmt_nfkc"}, "nmt_nfkc"),
        ({"treat_whitespace_as_suffix": True}, "spaces behind words"),
    ],
)
def test_models_that_are_refused(options: dict[str, Any], message: str) -> None:
    vocabulary = Vocabulary.from_sentencepiece(model(**options))
    with pytest.raises(VocabularyError, match=message):
        Constraint(Regex("a"), vocabulary, tokenization="canonical")


@pytest.mark.parametrize("pre", ["gpt-2", "llama-bpe", "qwen2"])
def test_gguf(pre: str, tmp_path: Path, write_gguf: Any) -> None:
    tokenizer = trained(PIECES["gpt2" if pre == "gpt-2" else "cl100k isolated False"])
    file = json.loads(tokenizer.to_str())
    file["model"]["ignore_merges"] = pre == "llama-bpe"
    ids = file["model"]["vocab"]

    def fill(writer: Any) -> None:
        writer.add_tokenizer_model("gpt2")
        writer.add_tokenizer_pre(pre)
        writer.add_token_list(sorted(ids, key=ids.__getitem__))
        writer.add_token_types([1] * len(ids))
        writer.add_token_merges([" ".join(pair) for pair in file["model"]["merges"]])

    write_gguf(tmp_path / "model.gguf", fill)
    vocabulary = Vocabulary.from_gguf(tmp_path / "model.gguf")
    if pre == "qwen2":
        with pytest.raises(VocabularyError, match="is not certain"):
            vocabulary.encoder()
        return
    tokenizer = Tokenizer.from_str(json.dumps(file))

    def encode(text: str) -> list[int]:
        ids: list[int] = tokenizer.encode(text, add_special_tokens=False).ids
        return ids

    for pattern in LANGUAGES[:6]:
        check(encode, vocabulary, pattern)
