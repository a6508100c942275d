"""Small tokenizers made on the spot, and canonical masks by their definition."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from typing import Any

from tokenizers import Regex as Pattern
from tokenizers import Tokenizer, decoders, models, normalizers, pre_tokenizers, trainers

from formalm import Constraint, Language, Regex, Vocabulary

TEXT = """The quick brown fox jumps over the lazy dog. "It's the end," they said, and isn't that
what we'll see? In 2024 there were 1,234 things: a, b, c;   and then   some.

    for line in lines:
        print(line, 1000 + 2000)
Ünïcode über alles, 日本語の文字, あのね; The THE then there these those. don't can't DON'T
"""

CL100K = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*"
    r"|\s*[\r\n]+|\s+(?!\S)|\s+"
)
# The same with possessive quantifiers, as newer files have it, and a few of our own.
POSSESSIVE = (
    r"'(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}++|\p{N}{1,3}| ?[^\s\p{L}\p{N}]++[\r\n]*+"
    r"|\s*[\r\n]|\s+(?!\S)|\s"
)
LAZY = r"a+?b|[ab]{2,3}?|(?=[\n ])\s| ?\p{Lu}\p{Ll}*"
PIECES = {
    "gpt2": pre_tokenizers.ByteLevel(add_prefix_space=False),
    "digits": pre_tokenizers.Sequence(
        [pre_tokenizers.Digits(individual_digits=True), pre_tokenizers.ByteLevel(False)]
    ),
    "runs": pre_tokenizers.Sequence(
        [pre_tokenizers.Digits(), pre_tokenizers.ByteLevel(False, use_regex=False)]
    ),
    "text": pre_tokenizers.Sequence(
        [pre_tokenizers.Split("a", "isolated"), pre_tokenizers.ByteLevel(False, use_regex=False)]
    ),
    "steps": pre_tokenizers.Sequence(
        [
            pre_tokenizers.Split(Pattern(r"\p{N}{1,3}"), "isolated"),
            pre_tokenizers.Split(Pattern(r"[あ-ん]+|ab"), "isolated"),
            pre_tokenizers.ByteLevel(False),
        ]
    ),
}
for name, pattern in (("cl100k", CL100K), ("possessive", POSSESSIVE), ("lazy", LAZY)):
    for behavior in ("isolated", "merged_with_previous", "merged_with_next", "contiguous"):
        for invert in (False, True):
            PIECES[f"{name} {behavior} {invert}"] = pre_tokenizers.Sequence(
                [
                    pre_tokenizers.Split(Pattern(pattern), behavior, invert),
                    pre_tokenizers.ByteLevel(False, use_regex=False),
                ]
            )

LANGUAGES = [
    r"[ab]{0,5}",
    r"( |\n|a){0,5}",
    r"[ \t\n1]{0,4}",
    r"(the|The| the|'s|'S|s| |'){0,3}",
    r"[0-9]{1,5}",
    r"\[\n    1,\n    2\n\]",
    r"(a|A|あ|b){0,4}",
    r"(é|e\u0301|日|😀|\n){0,3}",
    r"\{\"[a-c]{1,2}\": ?(1|\"x\")\}",
    r"( |\n){0,7}x?",
    r"(there|these| in| the|re|l){0,3}",
    r" William| Theodore|(?:the|th)en?",
]


@cache
def _model(ignore_merges: bool) -> str:
    tokenizer = Tokenizer(models.BPE(ignore_merges=ignore_merges))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    trainer = trainers.BpeTrainer(
        vocab_size=420,
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    tokenizer.train_from_iterator([TEXT] * 3, trainer)
    return tokenizer.to_str()


def trained(pre_tokenizer: Any, *, ignore_merges: bool = False) -> Tokenizer:
    """A byte-level tokenizer of 420 tokens."""
    tokenizer = Tokenizer.from_str(_model(ignore_merges))
    tokenizer.pre_tokenizer = pre_tokenizer
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.encode_special_tokens = True
    return tokenizer


def encode_raw(tokenizer: Tokenizer, vocabulary: Vocabulary, text: str) -> list[int] | None:
    """The tokens of a text as tokens spell it; None if no text is encoded to such.

    Where a space is put in front of text, a line break that merges with nothing stands in for what
    came before.
    """
    if vocabulary.encoder().marks_spaces and "▁" in text:
        return None
    if not vocabulary.encoder().prepends_space:
        return list(tokenizer.encode(text, add_special_tokens=False).ids)
    return list(tokenizer.encode("\n" + text, add_special_tokens=False).ids[2:])


def members(language: Language) -> set[bytes]:
    """All members of a finite language, byte by byte."""
    single = Vocabulary.from_tokens([bytes([byte]) for byte in range(256)])
    return {bytes(ids) for ids in sequences(Constraint(language, single))}


def sequences(constraint: Constraint, after: Sequence[int] = ()) -> set[tuple[int, ...]]:
    """Every sequence that masks allow up to where the text is a member; no dead end among them."""
    matcher = constraint.matcher(after=after)
    found = set()

    def follow() -> None:
        allowed = matcher.allowed_token_ids()
        if matcher.is_accepting:
            found.add(tuple(matcher.token_ids))
        assert matcher.is_accepting or len(allowed), f"a dead end: {matcher.token_ids}"
        for token_id in allowed.tolist():
            assert matcher.allows(token_id)
            matcher.advance(token_id)
            follow()
            matcher.rollback()

    follow()
    return found


def check_language(tokenizer: Tokenizer, vocabulary: Vocabulary, pattern: str) -> None:
    """The sequences that masks allow are what the tokenizer makes of the members."""
    language = Regex(pattern)
    encoded = (encode_raw(tokenizer, vocabulary, text.decode()) for text in members(language))
    expected = {tuple(ids) for ids in encoded if ids is not None}
    found = sequences(Constraint(language, vocabulary, tokenization="canonical"))
    assert found == expected
    assert all(vocabulary.is_canonical(ids) for ids in list(found)[:50])


UNKNOWN = "<unk>"


def with_fallback(*, scheme: str | None = None, split: bool = False) -> Tokenizer:
    """A tokenizer as SentencePiece's are written: spaces as marks, other characters in bytes."""
    pieces = [UNKNOWN, *(f"<0x{byte:02X}>" for byte in range(256)), *"▁abcdthe", "é", "日"]
    merges = [("t", "h"), ("▁", "▁"), ("th", "e"), ("▁", "the"), ("▁", "a"), ("a", "b")]
    merges += [("▁▁", "▁▁"), ("▁▁", "▁"), ("ab", "ab"), ("▁a", "b"), ("c", "d"), ("é", "a")]
    pieces += [left + right for left, right in merges]
    vocabulary = {piece: at for at, piece in enumerate(dict.fromkeys(pieces))}
    model = models.BPE(vocabulary, merges, unk_token=UNKNOWN, byte_fallback=True, fuse_unk=True)
    tokenizer = Tokenizer(model)
    if scheme is None:
        tokenizer.normalizer = normalizers.Sequence(
            [normalizers.Prepend("▁"), normalizers.Replace(" ", "▁")]
        )
    else:
        tokenizer.pre_tokenizer = pre_tokenizers.Metaspace(prepend_scheme=scheme, split=split)
    tokenizer.decoder = decoders.Sequence(
        [decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse()]
    )
    tokenizer.add_special_tokens([UNKNOWN])
    return tokenizer


def by_bytes(vocabulary: Vocabulary) -> dict[bytes, list[int]]:
    found: dict[bytes, list[int]] = {}
    for token_id, token in enumerate(vocabulary.tokens()):
        if token is not None:
            found.setdefault(token, []).append(token_id)
    return found


def tokenizations(text: bytes, ids: Mapping[bytes, Sequence[int]]) -> Iterator[list[int]]:
    """All of them, as the definition has it."""
    if not text:
        yield []
    for end in range(1, len(text) + 1):
        for token_id in ids.get(text[:end], ()):
            for rest in tokenizations(text[end:], ids):
                yield [token_id, *rest]
