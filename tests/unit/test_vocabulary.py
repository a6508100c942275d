"""Vocabularies: from token lists and tokenizer files, saved and loaded."""

import gzip
import json
import pickle
from pathlib import Path

import numpy as np
import pytest

from formalm import ArgumentError, LimitError, Vocabulary, VocabularyError
from formalm.vocabulary import saved_vocabulary

TOKENS = [b"a", b"b", b"ab", "é".encode()[:1], "é".encode()[1:], None]


def characters(text: str) -> list[int]:
    return ["ab".index(character) for character in text]


@pytest.fixture
def tokenizer() -> dict:
    """A small byte-level BPE, as the tokenizers package writes it."""
    tokenizers = pytest.importorskip("tokenizers")
    built = tokenizers.Tokenizer(tokenizers.models.BPE())
    built.pre_tokenizer = tokenizers.pre_tokenizers.ByteLevel(add_prefix_space=False)
    built.decoder = tokenizers.decoders.ByteLevel()
    trainer = tokenizers.trainers.BpeTrainer(
        vocab_size=300,
        special_tokens=["<|end|>"],
        initial_alphabet=tokenizers.pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    built.train_from_iterator(["the cat, the hat, the rat"] * 9, trainer)
    parsed = json.loads(built.to_str())
    return parsed


def test_from_tokens() -> None:
    vocabulary = Vocabulary.from_tokens(TOKENS, end_token_ids=[5], encode=characters)
    assert len(vocabulary) == 6
    assert vocabulary.tokens() == TOKENS
    assert vocabulary.end_token_ids == (5,)
    assert vocabulary.special_token_ids == (5,)
    assert vocabulary.decode([2, 3, 4, 5]) == "abé".encode()
    assert vocabulary.decode_text([0, 3]) == "a\ufffd"
    assert vocabulary.encode("ba") == [1, 0]


@pytest.mark.parametrize(
    ("arguments", "options"),
    [
        ((), {}),
        ((), {"tokens": [b"a"]}),
        (([b"a"],), {}),
        (([b"a"],), {"end_token_ids": [0]}),
        (([b"a"], [0]), {}),
    ],
)
def test_the_class_itself_says_what_creates_one(arguments: tuple, options: dict) -> None:
    with pytest.raises(ArgumentError) as raised:
        Vocabulary(*arguments, **options)
    assert "Vocabulary.from_tokens" in str(raised.value.hint)


def test_equal_masks_equal_vocabularies() -> None:
    one = Vocabulary.from_tokens(TOKENS, end_token_ids=[5])
    two = Vocabulary.from_tokens(list(TOKENS), end_token_ids=[5], encode=characters)
    assert one == two
    assert hash(one) == hash(two)
    assert one != Vocabulary.from_tokens(TOKENS)
    assert one != Vocabulary.from_tokens([*TOKENS, b"c"], end_token_ids=[5])
    assert pickle.loads(pickle.dumps(two)).encode("ab") == [0, 1]  # noqa: S301


def test_without_a_tokenizer_nothing_is_encoded() -> None:
    with pytest.raises(VocabularyError, match="made without a tokenizer"):
        Vocabulary.from_tokens(TOKENS).encode("a")


def test_from_tokenizer_json(tokenizer: dict, tmp_path: Path) -> None:
    text = json.dumps(tokenizer)
    plain, packed = tmp_path / "tokenizer.json", tmp_path / "tokenizer.json.gz"
    plain.write_text(text, encoding="utf-8")
    packed.write_bytes(gzip.compress(text.encode()))
    sources = [
        tokenizer,
        text,
        text.encode(),
        str(plain),
        plain,
        packed,
        packed.read_bytes(),
        tmp_path,
    ]
    made = [Vocabulary.from_tokenizer_json(source, end_token_ids="<|end|>") for source in sources]
    assert len(set(made)) == 1
    vocabulary = made[0]
    assert vocabulary.end_token_ids == (tokenizer["model"]["vocab"]["<|end|>"],)
    assert vocabulary.special_tokens["<|end|>"] == vocabulary.end_token_ids[0]
    assert vocabulary.decode(vocabulary.encode("the cat é")) == "the cat é".encode()


def test_text_is_never_a_special_token(tokenizer: dict) -> None:
    vocabulary = Vocabulary.from_tokenizer_json(tokenizer, end_token_ids=["<|end|>"])
    ids = vocabulary.encode("a<|end|>")
    assert vocabulary.end_token_ids[0] not in ids
    assert vocabulary.decode(ids) == b"a<|end|>"


def test_saved_and_loaded(tokenizer: dict, tmp_path: Path) -> None:
    vocabulary = Vocabulary.from_tokenizer_json(tokenizer, end_token_ids=["<|end|>"])
    path = tmp_path / "vocabulary"
    vocabulary.save(path)
    loaded = Vocabulary.load(path)
    assert loaded == vocabulary
    assert loaded.encode("the cat") == vocabulary.encode("the cat")
    assert pickle.loads(pickle.dumps(loaded)) == loaded  # noqa: S301
    bare = Vocabulary.from_tokens(TOKENS, end_token_ids=[5])
    bare.save(path)
    assert Vocabulary.load(path) == bare
    assert not Vocabulary.load(path).can_encode


@pytest.mark.parametrize(
    "damage",
    [
        lambda data: b"",
        lambda data: b"{}\n" + data,
        lambda data: data[:-1],
        lambda data: data + b"x",
        lambda data: data.replace(b'"version": 3', b'"version": 9'),
        lambda data: data.partition(b"\n")[0] + b"\n" + bytes(len(data.partition(b"\n")[2])),
    ],
)
def test_a_damaged_file_is_refused(damage, tmp_path: Path) -> None:
    path = tmp_path / "vocabulary"
    Vocabulary.from_tokens(TOKENS).save(path)
    path.write_bytes(damage(path.read_bytes()))
    with pytest.raises(VocabularyError):
        Vocabulary.load(path)


@pytest.mark.parametrize(
    "source",
    ["{", b"[]", {"model": {}}, {}, b"\x1f\x8b broken", "/nowhere/tokenizer.json"],
)
def test_a_broken_tokenizer_is_refused(source: object) -> None:
    with pytest.raises(VocabularyError):
        Vocabulary.from_tokenizer_json(source)


def test_a_packed_file_may_not_explode(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(saved_vocabulary, "MAX_TOKENIZER_BYTES", 1000)
    with pytest.raises(LimitError):
        Vocabulary.from_tokenizer_json(gzip.compress(bytes(2000)))


def test_names_and_ids_of_end_tokens(tokenizer: dict) -> None:
    with pytest.raises(VocabularyError, match="nothing"):
        Vocabulary.from_tokenizer_json(tokenizer, end_token_ids=["nothing"])
    for wrong in ([-1], [10_000], [1.5]):
        with pytest.raises(VocabularyError):
            Vocabulary.from_tokenizer_json(tokenizer, end_token_ids=wrong)
        with pytest.raises(VocabularyError):
            Vocabulary.from_tokens(TOKENS, end_token_ids=wrong)
    with pytest.raises(VocabularyError):
        Vocabulary.from_tokens(["a", b"b"])


def test_wrong_arguments(tokenizer: dict) -> None:
    vocabulary = Vocabulary.from_tokens(TOKENS)
    for call in (
        lambda: vocabulary.token_bytes(6),
        lambda: vocabulary.token_bytes(-1),
        lambda: vocabulary.encode(b"a"),
        lambda: Vocabulary.from_tokenizer_json(3),
    ):
        with pytest.raises(ArgumentError):
            call()


@pytest.mark.parametrize("given", [5, np.int64(5), np.array(5), [np.int32(5)], np.array([5]), {5}])
def test_ends_are_integers_of_any_kind(given: object) -> None:
    assert Vocabulary.from_tokens(TOKENS, end_token_ids=given).end_token_ids == (5,)


@pytest.mark.parametrize(
    "given", [True, np.True_, np.array([True]), 5.0, np.float64(5), [5.0], [[5]]]
)
def test_ends_that_are_no_integers(given: object) -> None:
    with pytest.raises(VocabularyError, match="integer"):
        Vocabulary.from_tokens(TOKENS, end_token_ids=given)
