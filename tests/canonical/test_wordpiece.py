"""Canonical tokens of WordPiece models against `tokenizers`, the only oracle."""

from __future__ import annotations

import json
import random
from collections import Counter
from itertools import product

import pytest
from tokenizers import Tokenizer, decoders, models, normalizers, pre_tokenizers, trainers

from formalm import Constraint, LanguageError, Regex, Vocabulary, VocabularyError
from tests.canonical.small_tokenizers import TEXT, sequences

SLOW = [pytest.mark.slow, pytest.mark.timeout(3600)]


def wordpiece(
    pieces: list[str], *, limit: int = 100, cleanup: bool = True, whole: bool = False
) -> Tokenizer:
    """A WordPiece tokenizer, read back from its file."""
    vocab = {piece: at for at, piece in enumerate(dict.fromkeys(["[UNK]", *pieces]))}
    tokenizer = Tokenizer(
        models.WordPiece(vocab, unk_token="[UNK]", max_input_chars_per_word=limit)
    )
    split = pre_tokenizers.WhitespaceSplit() if whole else pre_tokenizers.BertPreTokenizer()
    tokenizer.pre_tokenizer = split
    tokenizer.decoder = decoders.WordPiece(cleanup=cleanup)
    tokenizer.add_special_tokens(["[UNK]"])
    tokenizer.encode_special_tokens = True
    return tokenizer


def encoded(tokenizer: Tokenizer, text: str) -> tuple[int, ...] | None:
    """The library's tokens of a text after its first space; None if decoding loses the text."""
    if not text:
        return ()
    ids = tokenizer.encode(text[1:], add_special_tokens=False).ids
    given_back = tokenizer.decode(ids) == text[1:] and text[0] == " " and text[1:2] not in ("", " ")
    # Where decoding drops the space before a mark, the mark's token has none.
    joined = json.loads(tokenizer.to_str())["decoder"]["cleanup"] and text[1:2] in tuple(".,?!")
    return tuple(ids) if given_back and not joined else None


def check(tokenizer: Tokenizer, words: set[str], pattern: str) -> str:
    vocabulary = Vocabulary.from_tokenizer_json(tokenizer.to_str())
    expected = {encoded(tokenizer, word) for word in words} - {None}
    try:
        constraint = Constraint(Regex(pattern), vocabulary, tokenization="canonical")
    except LanguageError:
        assert not expected, pattern
        return "empty"
    assert sequences(constraint) == expected, pattern
    return "equal"


def random_words(seed: int) -> tuple[Tokenizer, set[str], str]:
    """A random model, and the members of a language of words with its pattern."""
    rng = random.Random(seed)
    letters = "abé"[: rng.randrange(2, 4)]
    piece = lambda: "".join(rng.choices(letters, k=rng.randrange(1, 5)))  # noqa: E731
    pieces = {piece() for _ in range(rng.randrange(1, 8))}
    pieces |= {"##" + piece() for _ in range(rng.randrange(8))} | set(rng.sample(".,-", 2))
    tokenizer = wordpiece(
        sorted(pieces),
        limit=rng.choice([4, 100]),
        cleanup=rng.random() < 0.5,
        whole=rng.random() < 0.3,
    )
    alphabet = letters[:2] + rng.choice([" ", " .", " -", ",", "é"])
    count = 4 if len(alphabet) > 3 else 5
    words = {
        " " + "".join(text)
        for size in range(1, count + 1)
        for text in product(alphabet, repeat=size)
    }
    pattern = f" [{alphabet.replace('-', chr(92) + '-')}]{{1,{count}}}"
    return tokenizer, words, pattern


def check_random(seed: int) -> str:
    """The masks of a language of words allow exactly the encodings that decode to themselves."""
    return check(*random_words(seed))


@pytest.mark.parametrize("count", [120, pytest.param(10_000, marks=SLOW)])
def test_random_models_allow_exactly_the_encodings(count: int) -> None:
    found = Counter(check_random(seed) for seed in range(count))
    assert found["equal"] > 0.5 * count


def bert() -> Tokenizer:
    tokenizer = Tokenizer(models.WordPiece(unk_token="[UNK]"))
    tokenizer.normalizer = normalizers.BertNormalizer(lowercase=True)
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    tokenizer.decoder = decoders.WordPiece()
    trainer = trainers.WordPieceTrainer(
        vocab_size=400, special_tokens=["[UNK]", "[CLS]", "[SEP]"], show_progress=False
    )
    tokenizer.train_from_iterator([TEXT] * 3, trainer)
    tokenizer.encode_special_tokens = True
    return tokenizer


@pytest.mark.parametrize(
    "pattern",
    [
        r" (the|quick|brown|foxes|jumps)( (over|the|lazy|dog)){0,2}[.,]?",
        r" [a-d]{1,4}",
        r" (the|The|é|e|文|文字|a'b)( the)?",
        r" it ' s (end|ends)\.",
    ],
)
def test_the_shape_of_bert(pattern: str) -> None:
    from tests.canonical.small_tokenizers import members

    tokenizer = bert()
    texts = {text.decode() for text in members(Regex(pattern))}
    check(tokenizer, texts, pattern)
    vocabulary = Vocabulary.from_tokenizer_json(tokenizer.to_str())
    for text in texts:
        ids = encoded(tokenizer, text)
        assert ids is None or vocabulary.is_canonical(ids)


@pytest.mark.parametrize("count", [50, pytest.param(10_000, marks=SLOW)])
@pytest.mark.parametrize(
    "pattern", [r"( [a-zé]{1,9}[.,]?){1,6}", r"( (the|fox|[a-d0-9']{1,4})){1,8}"]
)
def test_walks_are_canonical(pattern: str, count: int) -> None:
    tokenizer, rng, found = bert(), random.Random(pattern), 0
    vocabulary = Vocabulary.from_tokenizer_json(tokenizer.to_str())
    constraint = Constraint(Regex(pattern), vocabulary, tokenization="canonical")
    for _ in range(count):
        matcher = constraint.matcher()
        while not (matcher.is_accepting and rng.random() < 0.1):
            allowed = matcher.allowed_token_ids()
            assert len(allowed) or matcher.is_accepting, matcher.text
            if not len(allowed):
                break
            matcher.advance(int(allowed[rng.randrange(len(allowed))]))
        assert encoded(tokenizer, matcher.text.decode()) == tuple(matcher.token_ids)
        found += len(matcher.token_ids)
    assert found > count


def test_json_is_refused_because_decoding_does_not_give_it_back() -> None:
    vocabulary = Vocabulary.from_tokenizer_json(bert().to_str())
    with pytest.raises(LanguageError, match="canonical"):
        Constraint(Regex(r'\{"a": 1\}'), vocabulary, tokenization="canonical")


def test_unknown_kinds_of_words_are_refused_by_name() -> None:
    tokenizer = wordpiece(["a"])
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    vocabulary = Vocabulary.from_tokenizer_json(tokenizer.to_str())
    with pytest.raises(VocabularyError, match="BertPreTokenizer nor WhitespaceSplit"):
        vocabulary.encoder()


def test_the_report_says_where_decoding_writes_no_space() -> None:
    tokenizer = wordpiece(["a", "b", "##a", ",", "."], cleanup=True)
    vocabulary = Vocabulary.from_tokenizer_json(tokenizer.to_str())
    constraint = Constraint(Regex(r" (a|,|\.)( a|,)?"), vocabulary, tokenization="canonical")
    assert constraint.report.excluded == (
        "6 of 9 members have no canonical tokens, because decoding does not write spaces where they"
        " have them; for example ' ,'",
    )
    unknown = Constraint(Regex(" (a|q|aq)"), vocabulary, tokenization="canonical").report.excluded
    assert "2 of 3 members" in unknown[0]
    assert "does not know" in unknown[0]
