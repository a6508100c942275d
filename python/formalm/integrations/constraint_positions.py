"""A cache from token sequences to matchers of a constraint, a pure function of the tokens."""

from __future__ import annotations

import sys
from collections import OrderedDict
from collections.abc import Iterable
from typing import TYPE_CHECKING

import numpy as np

from formalm.constraint import Constraint
from formalm.continuations import Rest
from formalm.errors import TokenError
from formalm.integrations.prompt_boundaries import ID_BYTES
from formalm.vocabulary.canonical_tokens import LeadingSpace

if TYPE_CHECKING:
    from formalm import _core

__all__ = ["ConstraintPositions", "Key"]

# A text and its prompt, as the bytes of their ids in int64. The prompt is empty if it cannot
# matter.
Key = tuple[bytes, bytes]

# Approximate memory of an entry without its key.
ENTRY_BYTES = 600


class ConstraintPositions:
    """A cache from token sequences to positions in a constraint.

    A sequence that extends a cached one costs one step, any other a walk from the start. Callers
    may therefore continue, go back, repeat and mix sequences.

    Parameters
    ----------
    constraint
        The constraint on the tokens.
    memory_limit_bytes
        Approximate maximum memory; the least recently used positions are evicted first.
    lengths
        For each position that these continue: the lengths in bytes of the sequences requested.
    """

    def __init__(
        self, constraint: Constraint, memory_limit_bytes: int, lengths: Iterable[int] = ()
    ) -> None:
        self._constraint = constraint
        # After the space that a tokenizer may put before a text.
        self._spaced: dict[LeadingSpace, Constraint] = {}
        self._ends = frozenset(constraint.vocabulary.end_token_ids)
        self._size = len(constraint.vocabulary)
        self._known: OrderedDict[Key, _core.Matcher | None] = OrderedDict()
        self.memory_limit_bytes = memory_limit_bytes
        self._used = 0
        self.lengths = set(lengths)
        self._is_whole = not self.lengths

    def after(self, key: Key) -> _core.Matcher | None:
        """Returns the matcher after a text; the caller must not advance it.

        None if an end token was read, or a token that was not allowed.

        Raises
        ------
        TokenError
            If no text at all continues the prompt.
        """
        known = self._known
        if key in known:
            known.move_to_end(key)
            return known[key]
        text, prompt = key
        before = text[:-ID_BYTES], prompt
        if text and before in known:
            last = int.from_bytes(text[-ID_BYTES:], sys.byteorder, signed=True)
            position = self._walk(known[before], [last])
        else:
            position = self._walk(self._start(prompt), _ids(text))
        known[key] = position
        self.lengths.add(len(text))
        self._used += len(text) + len(prompt) + ENTRY_BYTES
        while self._used > self.memory_limit_bytes and len(known) > 1:
            oldest, _ = known.popitem(last=False)
            self._used -= sum(map(len, oldest)) + ENTRY_BYTES
            self._is_whole = False
        return position

    def was_never_requested(self, key: Key) -> bool:
        """Returns True if a text was certainly never requested without its last token.

        False is possible after an eviction, because the evicted text may have been that one.
        """
        text, prompt = key
        before = text[:-ID_BYTES]
        if not text or (before, prompt) in self._known:
            return False
        return self._is_whole or len(before) not in self.lengths

    def is_over(self, key: Key) -> bool:
        """Returns True if a sequence is a text of the language, its end, and padding."""
        text, prompt = key
        ids = _ids(text)
        end = next((place for place, each in enumerate(ids) if each in self._ends), None)
        if end is None or len(set(ids[end + 1 :])) > 1:
            return False
        matcher = self._walk(self._start(prompt), ids[:end])
        return matcher is not None and matcher.is_accepting

    def _start(self, prompt: bytes) -> _core.Matcher:
        front = _ids(prompt)
        constraint = self._constraint
        if constraint.tokenization == "canonical":
            space = constraint.vocabulary.space_after(front)
            if space is not None:
                if space not in self._spaced:
                    self._spaced[space] = Rest(constraint, b" ", space)
                constraint = self._spaced[space]
        return constraint.matcher(after=front).core

    def _walk(self, start: _core.Matcher | None, token_ids: list[int]) -> _core.Matcher | None:
        if start is None:
            return None
        matcher = start.fork()
        for token_id in token_ids:
            if not 0 <= token_id < self._size or token_id in self._ends:
                return None
            try:
                matcher.advance(token_id)
            except TokenError:
                return None
        return matcher


def _ids(text: bytes) -> list[int]:
    ids: list[int] = np.frombuffer(text, np.int64).tolist()
    return ids
