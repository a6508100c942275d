"""Byte-level pieces with characters outside of the byte-level alphabet, as Command-R has them."""

import json
from pathlib import Path

import pytest

from formalm import Constraint, Regex, Vocabulary, VocabularyError
from tests.unit.test_vocabulary_gguf import header

tokenizers = pytest.importorskip("tokenizers")

RAW = ["\u200d", "‼", "Ġ‼", "a€", "\u200d\u200d", "▁", "日本", "a b", "\u2028", "😀Ġ"]


def byte_characters() -> list[str]:
    """The byte-level alphabet, as the library has it."""
    return sorted(tokenizers.pre_tokenizers.ByteLevel.alphabet())


def file(raw: list[str] = RAW, *, decoder: object = None, merges: object = ()) -> bytes:
    pieces = [*byte_characters(), "ab", *raw]
    bytes_only = {
        "type": "ByteLevel",
        "add_prefix_space": False,
        "trim_offsets": True,
        "use_regex": True,
    }
    return json.dumps(
        {
            "version": "1.0",
            "added_tokens": [],
            "pre_tokenizer": bytes_only,
            "decoder": decoder or bytes_only,
            "model": {
                "type": "BPE",
                "vocab": {piece: at for at, piece in enumerate(pieces)},
                "merges": [["a", "b"], *merges],
            },
        }
    ).encode()


@pytest.mark.parametrize("loader", ["file", "object", "folder", "gguf"])
def test_raw_pieces_are_their_own_utf8_as_the_library_decodes_them(
    loader: str, tmp_path: Path
) -> None:
    data = file()
    library = tokenizers.Tokenizer.from_str(data.decode())
    if loader == "file":
        vocabulary = Vocabulary.from_tokenizer_json(data)
    elif loader == "object":
        vocabulary = Vocabulary.from_tokenizer(library)
    elif loader == "folder":
        (tmp_path / "tokenizer.json").write_bytes(data)
        vocabulary = Vocabulary.from_pretrained(tmp_path)
    else:
        pieces = [*byte_characters(), "ab", *RAW]
        entries = {
            "tokenizer.ggml.model": "gpt2",
            "tokenizer.ggml.pre": "command-r",
            "tokenizer.ggml.tokens": pieces,
            "tokenizer.ggml.token_type": [1] * len(pieces),
        }
        (tmp_path / "model.gguf").write_bytes(header(entries))
        vocabulary = Vocabulary.from_gguf(tmp_path / "model.gguf")
    first = len(byte_characters()) + 1
    for at, piece in enumerate(RAW):
        assert vocabulary.token_bytes(first + at) == piece.encode()
    for token_id in range(len(vocabulary)):
        spelled = vocabulary.token_bytes(token_id)
        assert spelled is not None
        decoded = library.decode([token_id], skip_special_tokens=False)
        assert spelled.decode(errors="replace") == decoded
    assert any("represent no byte" in note for note in vocabulary.notes)


def test_raw_pieces_take_part_in_masks() -> None:
    vocabulary = Vocabulary.from_tokenizer_json(file())
    allowed = Constraint(Regex("‼+"), vocabulary).matcher().allowed_token_ids()
    first = len(byte_characters()) + 1
    assert first + RAW.index("‼") in allowed
    assert first + RAW.index("Ġ‼") not in allowed


def test_raw_pieces_are_never_canonical_since_text_is_not_encoded_in_them() -> None:
    merges = [["\u200d", "\u200d"]]
    vocabulary = Vocabulary.from_tokenizer_json(file(merges=merges))
    library = tokenizers.Tokenizer.from_str(file(merges=merges).decode())
    first = len(byte_characters()) + 1
    for at, piece in enumerate(RAW):
        assert not vocabulary.is_canonical([first + at])
        expected = library.encode(piece, add_special_tokens=False).ids
        assert vocabulary.encode(piece) == expected
        assert vocabulary.is_canonical(expected)
    constraint = Constraint(Regex("‼"), vocabulary, tokenization="canonical")
    matcher = constraint.matcher()
    ids = library.encode("‼", add_special_tokens=False).ids
    assert list(matcher.allowed_token_ids()) == ids[:1]


def test_pieces_that_are_joined_before_decoding_have_no_bytes_of_their_own() -> None:
    """One raw piece then changes what all pieces beside it are decoded to."""
    decoder = {"type": "Sequence", "decoders": [{"type": "Fuse"}, {"type": "ByteLevel",
               "add_prefix_space": False, "trim_offsets": True, "use_regex": True}]}  # fmt: skip
    with pytest.raises(VocabularyError, match="represents no byte"):
        Vocabulary.from_tokenizer_json(file(decoder=decoder))
