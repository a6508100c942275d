"""Canonical tokens of vocabularies that were saved and loaded."""

from __future__ import annotations

import json
from collections.abc import Callable
from hashlib import sha256
from pathlib import Path

import pytest
from tokenizers import Tokenizer, normalizers

from formalm import ArgumentError, Constraint, Regex, Vocabulary, VocabularyError
from formalm.vocabulary import canonical_tokens, saved_vocabulary
from tests.canonical.small_tokenizers import check_language, sequences, trained
from tests.canonical.test_trained_tokenizers import PIECES, shuffled, with_fallback
from tests.canonical.test_unigram import sentence_model
from tests.canonical.test_wordpiece import bert
from tests.canonical.unigram_models import tokenizer_of


def added() -> Tokenizer:
    tokenizer = trained(PIECES["gpt2"], ignore_merges=True)
    tokenizer.add_tokens(["<|user|>", "the end"])
    return tokenizer


TOKENIZERS = {
    "gpt2": lambda: trained(PIECES["gpt2"]),
    "added": added,
    "steps": lambda: trained(PIECES["steps"], ignore_merges=True),
    "early": lambda: shuffled(0),
    "fallback": with_fallback,
    "words": lambda: with_fallback(scheme="always", split=True),
}


@pytest.mark.parametrize("name", TOKENIZERS)
def test_saved_encoders_are_loaded_without_rebuilding(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tokenizer = TOKENIZERS[name]()
    original = Vocabulary.from_tokenizer_json(tokenizer.to_str())
    original.save(tmp_path / "saved", canonical=True)
    monkeypatch.setattr(canonical_tokens, "load_encoder", None)
    loaded = Vocabulary.load(tmp_path / "saved")
    loaded.save(tmp_path / "again")
    assert (tmp_path / "again").read_bytes() == (tmp_path / "saved").read_bytes()
    for pattern in (r"(the| the|he|é|t|\n){0,3}", r"( |a|<\|user\|>|the end| end){0,3}"):
        check_language(tokenizer, loaded, pattern)
    loaded.save(tmp_path / "again")
    assert (tmp_path / "again").read_bytes() == (tmp_path / "saved").read_bytes()
    encoder, other = original.encoder(), loaded.encoder()
    assert encoder.early_count == other.early_count
    for token_id in range(0, len(original), 7):
        assert encoder.kind(token_id) == other.kind(token_id)
        for after in (True, False):
            assert encoder.forbidden(token_id, after) == other.forbidden(token_id, after)


def test_only_computed_tables_are_saved(tmp_path: Path) -> None:
    vocabulary = Vocabulary.from_tokenizer_json(trained(PIECES["gpt2"]).to_str())
    vocabulary.save(tmp_path / "before")
    Constraint(Regex("the"), vocabulary, tokenization="canonical")
    vocabulary.save(tmp_path / "after")
    sizes = [(tmp_path / name).stat().st_size for name in ("before", "after")]
    assert sizes[0] < sizes[1]
    vocabulary.save(tmp_path / "bare", tokenizer=False)
    with pytest.raises(VocabularyError, match="own file"):
        Vocabulary.load(tmp_path / "bare").encoder()
    with pytest.raises(ArgumentError, match="saved with their tokenizer"):
        vocabulary.save(tmp_path / "bare", tokenizer=False, canonical=True)
    with pytest.raises(ArgumentError, match="types must be True or False, got 'no'"):
        vocabulary.save(tmp_path / "bare", types="no")  # type: ignore[arg-type]
    plain = Vocabulary.from_tokens([b"a"])
    with pytest.raises(VocabularyError, match="own file"):
        plain.save(tmp_path / "plain", canonical=True)


def test_a_saved_encoder_is_that_of_one_tokenizer_and_whole(tmp_path: Path) -> None:
    vocabulary = Vocabulary.from_tokenizer_json(trained(PIECES["gpt2"]).to_str())
    path = tmp_path / "saved"
    vocabulary.save(path, canonical=True)
    data = path.read_bytes()
    size = json.loads(data.partition(b"\n")[0])["canonical"]
    path.write_bytes(data[:-1] + bytes([data[-1] ^ 1]))
    with pytest.raises(VocabularyError, match="damaged"):
        Vocabulary.load(path).encoder()
    own, file = data[-size:], vocabulary._parts.tokenizer.checksum
    other = Vocabulary.from_tokenizer_json(added().to_str())
    for core, tokenizer in ((other.core, file), (vocabulary.core, bytes(16))):
        with pytest.raises(VocabularyError, match="another tokenizer"):
            type(vocabulary.encoder()).from_saved(own, core, tokenizer)
    changed = own.replace(b"formalm encoder\n\x08", b"formalm encoder\n\x09")
    with pytest.raises(VocabularyError, match="format"):
        type(vocabulary.encoder()).from_saved(changed, vocabulary.core, file)
    with pytest.raises(VocabularyError, match="not in a known format"):
        type(vocabulary.encoder()).from_saved(b"", vocabulary.core, file)


def _with_header(path: Path, changes: dict[str, object]) -> Path:
    """Writes the file again with other values in its first line; None removes one."""
    line, _, body = path.read_bytes().partition(b"\n")
    header = {**json.loads(line), **changes}
    header = {name: value for name, value in header.items() if value is not None}
    changed = path.with_name("changed")
    changed.write_bytes(json.dumps(header).encode() + b"\n" + body)
    return changed


def test_a_saved_tokenizer_is_unpacked_when_something_is_encoded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    vocabulary = Vocabulary.from_tokenizer_json(trained(PIECES["gpt2"]).to_str())
    path = tmp_path / "saved"
    vocabulary.save(path, canonical=True)
    unpacked: list[str] = []
    unpack = saved_vocabulary._unpack

    def noted(data: bytes, name: str) -> bytes:
        unpacked.append(name)
        return unpack(data, name)

    monkeypatch.setattr(saved_vocabulary, "_unpack", noted)
    loaded = Vocabulary.load(path)
    Constraint(Regex("the"), loaded, tokenization="canonical").matcher().bitmask()
    facts = 1
    assert len(unpacked) == facts
    assert loaded.encode("the") == vocabulary.encode("the")
    loaded.encode("then")
    assert len(unpacked) == facts + 1
    # A file of before.
    older = Vocabulary.load(_with_header(path, {"checksums": None}))
    assert older.encode("the") == vocabulary.encode("the")
    assert older.encoder().encode("the") == vocabulary.encoder().encode("the")


def test_a_damaged_tokenizer_is_refused(tmp_path: Path) -> None:
    vocabulary = Vocabulary.from_tokenizer_json(trained(PIECES["gpt2"]).to_str())
    path = tmp_path / "saved"
    vocabulary.save(path, canonical=True)
    data = path.read_bytes()
    header = json.loads(data.partition(b"\n")[0])
    at = data.index(b"\n") + 1 + header["prepared"] + header["tokenizer"] // 2
    damaged = tmp_path / "damaged"
    damaged.write_bytes(data[:at] + bytes([data[at] ^ 1]) + data[at + 1 :])
    of_text, of_packed = header["checksums"]
    wrong: list[object] = [["ab", of_packed[:-1] + "g"], [of_text], 12, ["", of_text]]
    for file in (damaged, *(_with_header(path, {"checksums": one}) for one in wrong)):
        with pytest.raises(VocabularyError, match="damaged: its tokenizer"):
            Vocabulary.load(file)
    another = Vocabulary.load(_with_header(path, {"checksums": [of_packed, of_packed]}))
    with pytest.raises(VocabularyError, match="another tokenizer"):
        another.encoder()
    with pytest.raises(VocabularyError, match="damaged: its tokenizer"):
        another.encode("the")


def normalizing() -> Tokenizer:
    tokenizer = tokenizer_of([("▁", -2.0), *((letter, -3.0) for letter in "theé"), ("the", -4.0)])
    tokenizer.normalizer = normalizers.NFC()
    return tokenizer


OPEN_PIECES: dict[str, Callable[[], Vocabulary]] = {
    "Unigram": lambda: Vocabulary.from_tokenizer_json(normalizing().to_str()),
    "SentencePiece": lambda: Vocabulary.from_sentencepiece(sentence_model(1_000)),
    "WordPiece": lambda: Vocabulary.from_tokenizer_json(bert().to_str()),
}


@pytest.mark.parametrize("name", OPEN_PIECES)
def test_tokenizers_with_open_pieces_are_not_checked_again(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    original = OPEN_PIECES[name]()
    original.save(tmp_path / "saved", canonical=True)
    monkeypatch.setattr(canonical_tokens, "load_encoder", None)
    monkeypatch.setattr(canonical_tokens, "library_answers", None)
    loaded = Vocabulary.load(tmp_path / "saved")
    language = Regex(" (the|quick|e\u0301|é){1,2}")
    sets = [
        sequences(Constraint(language, vocabulary, tokenization="canonical"))
        for vocabulary in (original, loaded)
    ]
    assert sets[0] == sets[1] != set()
    loaded.save(tmp_path / "again")
    data = (tmp_path / "saved").read_bytes()
    assert (tmp_path / "again").read_bytes() == data
    (tmp_path / "saved").write_bytes(data[:-1] + bytes([data[-1] ^ 1]))
    with pytest.raises(VocabularyError, match="damaged"):
        Vocabulary.load(tmp_path / "saved").encoder()
    size = json.loads(data.partition(b"\n")[0])["canonical"]
    other = OPEN_PIECES["Unigram" if name != "Unigram" else "WordPiece"]()
    other._parts = other._parts._replace(encoder=data[-size:])
    with pytest.raises(VocabularyError, match="another tokenizer"):
        other.encoder()
    payload = data[-size:].replace(b'"format": 1', b'"format": 7')
    head, start = payload[:26], payload[26 + 32 :]
    loaded = Vocabulary.load(tmp_path / "again")
    loaded._parts = loaded._parts._replace(encoder=head + sha256(start).digest() + start)
    with pytest.raises(VocabularyError, match="format 7"):
        loaded.encoder()
