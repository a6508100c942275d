"""Canonical tokens: what the tokenizer itself makes of a text, and why a sequence is not that."""

from __future__ import annotations

import random
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from formalm import _core
from formalm.errors import VocabularyError
from formalm.vocabulary.encoding import Tokenizer
from formalm.vocabulary.parts import token_ids as _integers
from formalm.vocabulary.sources import Sources

__all__ = ["CanonicalTokens", "NonCanonical", "load_encoder", "non_canonical"]

# How each kind of description is taken apart.
_READERS = {
    "tokenizer.json": _core.Encoder,
    "tiktoken": _core.Encoder.from_tiktoken,
    "sentencepiece": _core.Encoder.from_sentencepiece,
}

# What pre-tokenizers treat in ways of their own, to be strung together at random.
_SCRAPS = [
    *"a b A B é É ſ ß 1 23 4567 ² ⅷ १ ' 's 'S 'LL 're ’ . , ; :: // /* */ - _ ( ) [ ] { }".split(),
    *"\" ` < > | \\ 中 文字 あア ー 한국 Ж Ω ǅ ʰ 😀 ﷺ ！ « — … $ € № the The hello don't".split(),
    *(" ", "  ", "    ", "\t", "\n", "\n\n", "\r\n", "\r", "\x0b", "\x1c", "\x85", " the"),
    *("\u00a0", "\u2028", "\u3000", "\u200b", "\u200d", "\ufeff", "\u093e", "\u0947", "\u0301"),
]


@dataclass(frozen=True)
class NonCanonical:
    """Where and why a token sequence is not what the tokenizer makes of its text.

    Attributes
    ----------
    index
        The first token that differs from the canonical ones.
    reason
        What the tokenizer does instead, in a sentence.
    expected
        The canonical token ids of the same text; None if it has none.
    """

    index: int
    reason: str
    expected: tuple[int, ...] | None


class CanonicalTokens(Sources):
    """What a vocabulary tells of canonical tokens: a part of :class:`formalm.Vocabulary`."""

    __slots__ = ()

    def encoder(self) -> _core.Encoder:
        """The tokenizer taken apart, for canonical tokens; made and checked when first asked for.

        Raises
        ------
        VocabularyError
            If there is no tokenizer, or one that we cannot follow exactly.
        """
        if self._encoder is None:
            tokenizer = self._parts.tokenizer
            if tokenizer is None or tokenizer.kind not in _READERS:
                reason = "it encodes with a function, which can do anything"
                raise VocabularyError(
                    "canonical tokens need the tokenizer's own file: "
                    + (self._parts.cannot_encode if tokenizer is None else reason),
                    hint="from_pretrained, from_tokenizer and the readers of files keep it",
                )
            self._encoder = load_encoder(tokenizer, self.core)
        return self._encoder

    def merges_like(self, other: CanonicalTokens) -> bool:
        """Whether both have the same tokenizer, so that canonical tokens are the same."""
        mine, others = self._parts.tokenizer, other._parts.tokenizer
        if mine is None or others is None:
            return mine is others
        return mine.kind == others.kind and mine.data == others.data

    def is_canonical(self, token_ids: Iterable[int]) -> bool:
        """Whether the tokenizer itself writes the tokens' text in these tokens.

        Special tokens separate texts. Where the tokenizer puts a space in front of every text,
        tokens are judged as the continuation of a text: as they spell it, with that space.

        Raises
        ------
        VocabularyError
            As :meth:`encoder`.
        """
        return self.canonical_error(token_ids) is None

    def canonical_error(self, token_ids: Iterable[int]) -> NonCanonical | None:
        """Where and why tokens are not canonical; None if they are. See :meth:`is_canonical`."""
        encoder = self.encoder()
        ids, start = _integers(token_ids), 0
        for end in range(len(ids) + 1):
            if end < len(ids) and self.core.token_bytes(ids[end]) is not None:
                continue
            error = non_canonical(encoder, self.core, ids[start:end])
            if error is not None:
                return replace(error, index=start + error.index)
            start = end + 1
        return None


def load_encoder(tokenizer: Tokenizer, core: _core.Vocabulary) -> _core.Encoder:
    """The tokenizer taken apart, after it was checked to tokenize as its own library does.

    Raises
    ------
    VocabularyError
        If it is of a kind that we cannot follow exactly, or one of the checks failed.
    """
    encoder = _READERS[tokenizer.kind](tokenizer.data, core)
    for text in _probes(encoder, core):
        # The space that such a tokenizer puts in front is part of what its tokens spell.
        spelled = " " + text if encoder.prepends_space else text
        expected, found = tokenizer.encode(text), encoder.encode(spelled)
        if expected != found and not (found is None and _spell(core, expected) != spelled.encode()):
            raise VocabularyError(
                f"the tokenizer does not do what its file says: {text!r} becomes {expected},"
                f" we read {found}",
                hint='use tokenization="all" with this vocabulary',
            )
    return encoder


def _spell(core: _core.Vocabulary, ids: Iterable[int]) -> bytes:
    return b"".join(core.token_bytes(token_id) or b"" for token_id in ids)


def _probes(encoder: _core.Encoder, core: _core.Vocabulary) -> Iterator[str]:
    """Texts on which tokenizers differ."""
    rng = random.Random(0)
    texts = ["".join(rng.choices(_SCRAPS, k=rng.randrange(1, 12))) for _ in range(400)]
    borders = encoder.borders()
    for start in range(0, len(borders), 50):
        texts.append("".join(f"a{c} {c}1{c}'{c}\n" for c in borders[start : start + 50]))
    for _ in range(800):
        ids = [rng.randrange(len(core)) for _ in range(3)]
        texts.append(_spell(core, ids).decode(errors="ignore"))
    for text in texts:
        marked = encoder.marks_spaces and "\u2581" in text
        if not marked and not (encoder.prepends_space and text[:1] in ("", " ")):
            yield text


def non_canonical(
    encoder: _core.Encoder, core: _core.Vocabulary, ids: Sequence[int]
) -> NonCanonical | None:
    """Why ``ids``, none of them special, are not canonical; None if they are."""
    spelled = [core.token_bytes(token_id) or b"" for token_id in ids]
    try:
        text = b"".join(spelled).decode()
    except UnicodeDecodeError as error:
        ends = [sum(map(len, spelled[: at + 1])) for at in range(len(ids))]
        index = next(at for at, end in enumerate(ends) if end > error.start)
        return NonCanonical(index, "the bytes of the tokens are not UTF-8", None)
    if encoder.marks_spaces and "\u2581" in text:
        index = next((at for at, token in enumerate(spelled) if token[-1:] == b"\x81"), 0)
        return NonCanonical(index, "the tokenizer turns '\u2581' into a space", None)
    expected = encoder.encode(text)
    if expected is None:
        until = [b"".join(spelled[: at + 1]).decode(errors="ignore") for at in range(len(ids))]
        index = bisect_left(until, True, key=lambda part: encoder.encode(part) is None)
        return NonCanonical(index, "the tokenizer has no tokens that spell this text", None)
    if list(ids) == expected:
        return None
    pairs = enumerate(zip(ids, expected, strict=False))
    index = next((at for at, (found, wanted) in pairs if found != wanted), len(expected))
    return NonCanonical(index, _reason(encoder, core, ids, text), tuple(expected))


def _reason(encoder: _core.Encoder, core: _core.Vocabulary, ids: Sequence[int], text: str) -> str:
    """The first cut or merge that the tokenizer makes otherwise."""
    cuts = {start for start, _ in encoder.pieces(text)}
    end = 0
    for at, token_id in enumerate(ids):
        token = core.token_bytes(token_id) or b""
        if at and end not in cuts:
            joined = encoder.crossing(ids[at - 1], token_id)
            if joined is not None:
                left, right = (core.token_bytes(part) for part in joined)
                return f"merging joins {left!r} and {right!r} across tokens {at - 1} and {at}"
        start, end = end, end + len(token)
        cut = next((cut for cut in range(start + 1, end) if cut in cuts), None)
        if cut is not None:
            where = f"{token[: cut - start]!r} and {token[cut - start :]!r}"
            return f"text is cut between {where}, within token {at}"
        if encoder.kind(token_id) == "never":
            return f"the tokenizer never makes token {at}, {token!r}"
    if any(encoder.kind(token_id) == "byte" for token_id in ids):
        return "a character is spelled in bytes that has a token"
    return "the tokenizer takes a piece of the text whole, or does not where the tokens do"
