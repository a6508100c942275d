"""Explanation of non-canonical token sequences: the first difference, and its merge or boundary."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate

from formalm import _core

__all__ = ["NonCanonical", "find"]

MARK = "\u2581"


@dataclass(frozen=True)
class NonCanonical:
    """The place and the reason why a token sequence is not canonical.

    Attributes
    ----------
    index
        The first token that differs from the canonical ones.
    reason
        What the tokenizer does instead, in one sentence.
    expected
        The canonical token ids of the same text, with special tokens in place; None if it has none.
    merge
        The two tokens that the tokenizer merges across the border of two adjacent tokens. Given
        only if merging these two alone already merges some, so that they are never adjacent within
        a piece.
    boundary
        The position of that border, or of a split inside a token, in bytes of the text; None if it
        is neither.
    """

    index: int
    reason: str
    expected: tuple[int, ...] | None
    merge: tuple[int, int] | None = None
    boundary: int | None = None


def find(encoder: _core.Encoder, core: _core.Vocabulary, ids: Sequence[int]) -> NonCanonical | None:
    """Returns why ``ids`` are not canonical; None if they are. Special tokens separate texts."""
    error: NonCanonical | None = None
    expected: list[int] | None = []
    start = spelled = 0
    for end in range(len(ids) + 1):
        if end < len(ids) and core.token_bytes(ids[end]) is not None:
            continue
        text = _Text(encoder, core, ids[start:end], start, spelled)
        error = error or text.error()
        if expected is not None:
            own = text.own
            expected = None if own is None else [*expected, *own, *ids[end : end + 1]]
        start, spelled = end + 1, spelled + len(text.bytes)
    if error is None:
        return None
    return NonCanonical(
        error.index,
        error.reason,
        None if expected is None else tuple(expected),
        error.merge,
        error.boundary,
    )


class _Text:
    """Tokens of one text, none of them special, after ``before`` tokens and ``offset`` bytes."""

    def __init__(
        self,
        encoder: _core.Encoder,
        core: _core.Vocabulary,
        ids: Sequence[int],
        before: int,
        offset: int,
    ) -> None:
        self.encoder, self.core, self.ids = encoder, core, ids
        self.before, self.offset = before, offset
        self.tokens = [core.token_bytes(token_id) or b"" for token_id in ids]
        self.bytes = b"".join(self.tokens)
        self.starts = [0, *accumulate(map(len, self.tokens))]
        try:
            self.text: str | None = self.bytes.decode()
        except UnicodeDecodeError as error:
            self.text, self.broken = None, error.start
        marked = encoder.marks_spaces and self.text is not None and MARK in self.text
        self.marked = self.bytes.index(MARK.encode()) if marked else None
        self.own = None if self.text is None or marked else encoder.encode(self.text)

    def error(self) -> NonCanonical | None:
        if self.own is None:
            if self.text is None:
                return self._at(self._token(self.broken), "the bytes of the tokens are not UTF-8")
            if (at := self.encoder.first_change(self.text)) is not None:
                found = self.bytes[at:].decode()[0]
                reason = f"the tokenizer's normalizer ({self.encoder.normalizer}) changes the text"
                return self._at(self._token(at), f"{reason} because of {found!r}")
            if self.marked is None:
                lost = self.encoder.lost_text(self.text)
                if lost is not None and lost[1] is not None:
                    found = self.bytes[lost[1] :].decode()[0]
                    reason = f"the tokenizer has no tokens for this text because of {found!r}"
                    return self._at(self._token(lost[1] + len(found.encode()) - 1), reason)
                return self._at(self._unspelled(), "the tokenizer has no tokens for this text")
            return self._at(self._token(self.marked), f"the tokenizer turns {MARK!r} into a space")
        pairs = enumerate(zip(self.ids, self.own, strict=False))
        index = next((at for at, (found, own) in pairs if found != own), None)
        if index is None:
            if len(self.ids) == len(self.own):
                return None
            index = min(len(self.ids), len(self.own))
        return self._why(index)

    def _unspelled(self) -> int:
        """Returns the first token up to which the tokenizer does not produce the text."""
        for at, end in enumerate(self.starts[1:]):
            if self.encoder.encode(self.bytes[:end].decode(errors="ignore")) is None:
                return at
        return len(self.ids) - 1

    def _token(self, byte: int) -> int:
        """Returns the token with a given byte of the text; of several, the last to begin there."""
        return bisect_right(self.starts, byte, hi=len(self.ids)) - 1

    def _at(
        self,
        index: int,
        reason: str,
        merge: tuple[int, int] | None = None,
        boundary: int | None = None,
    ) -> NonCanonical:
        place = None if boundary is None else self.offset + boundary
        return NonCanonical(self.before + index, reason, None, merge, place)

    def _why(self, index: int) -> NonCanonical:
        """Returns the first split or merge that differs, in the piece of the first wrong token."""
        pieces = self.encoder.pieces(self.text or "")
        start = self.starts[index]
        number = max(at for at, (begin, _) in enumerate(pieces) if begin <= start)
        first, added = pieces[number]
        last = pieces[number + 1][0] if number + 1 < len(pieces) else len(self.bytes)
        piece = self.bytes[first:last]
        if added:
            return self._at(index, f"{piece!r} is always one added token")
        return self._within(index, first, last) or self._at(index, self._wholly(index, piece))

    def _within(self, index: int, first: int, last: int) -> NonCanonical | None:
        """Returns a merge or a split inside the piece from ``first`` to ``last``."""
        ids, starts = self.ids, self.starts
        kept = set(accumulate(len(self.core.token_bytes(each) or b"") for each in self.own or ()))
        for at in range(index, len(ids)):
            if starts[at] >= last:
                break
            here, shown = starts[at], self.before + at
            # A border that stays may be between tokens that are never adjacent, but then another
            # border is where the first merge differs.
            gone = here > first and here not in kept
            if gone and (merge := self.encoder.crossing(ids[at - 1], ids[at])) is not None:
                left, right = (self.core.token_bytes(part) for part in merge)
                reason = (
                    f"merging joins {left!r} and {right!r} across tokens {shown - 1} and {shown}"
                )
                return self._at(index, reason, merge, here)
            if starts[at + 1] > last:
                where = f"{self.bytes[here:last]!r} and {self.bytes[last : starts[at + 1]]!r}"
                reason = f"the pre-tokenizer splits the text between {where}, inside token {shown}"
                return self._at(index, reason, boundary=last)
            kind = self.encoder.kind(ids[at])
            if kind == "never":
                reason = f"the tokenizer never produces token {shown}, {self.tokens[at]!r}"
                return self._at(index, reason)
            if kind == "byte" and (known := self._character(here)) is not None:
                reason = f"token {shown} is a single byte of {known!r}, which has a token"
                return self._at(index, reason)
        return None

    def _character(self, byte: int) -> str | None:
        """Returns the character that contains a byte, if it is written in one token."""
        while self.bytes[byte] & 0xC0 == 0x80:
            byte -= 1
        character = self.bytes[byte : byte + 4].decode(errors="ignore")[:1]
        return character if len(self.encoder.encode(character) or ()) == 1 else None

    def _wholly(self, index: int, piece: bytes) -> str:
        """Explains a piece that differs by neither a merge nor a split."""
        token, shown = self.tokens[index], self.before + index
        kind = self.encoder.kind(self.ids[index])
        if not self.encoder.is_merging and kind != "added":
            return (
                f"the tokenizer segments {piece!r} into other tokens than token {shown}, {token!r}"
            )
        if kind == "added":
            return (
                f"token {shown}, {token!r}, is an added token that the tokenizer does not use here"
            )
        if kind == "whole" and token != piece:
            return f"token {shown}, {token!r}, must be a whole pre-token, but is part of {piece!r}"
        return f"the tokenizer produces one token for the whole of {piece!r}"
