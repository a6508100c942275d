"""Budgets of tokens for the regions of a structure: reasoning and free text."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import cast

import numpy as np

from formalm.constraint import Constraint, Matcher
from formalm.errors import ArgumentError, TokenError
from formalm.execution.arguments import positive
from formalm.languages.structure import Structure
from formalm.languages.structure.delimiters import mark_bytes
from formalm.languages.structure.open_regions import RegionKind, open_region, region_exits
from formalm.models.logit_rows import Words

__all__ = [
    "RegionBudget",
    "RegionCounter",
    "SequenceCounters",
    "region_budgets",
    "within_budgets",
]


@dataclass(frozen=True)
class _Exit:
    """The state that decides which tokens lead out of a region."""

    remainders: tuple[bytes, ...]
    """The bytes that each way out still needs."""
    pending: int
    """Bytes that complete the last character; 0 if it is complete."""


class RegionBudget:
    """A maximum number of tokens in each region of one kind.

    A token counts if the text was inside the region before it and still is after it. Once the
    budget is used up, only tokens that lead out may follow: those of a mark that ends the region,
    first those that complete a character; for free text, also the end of the text. The tokens of
    the mark come on top of the budget.

    Parameters
    ----------
    constraint
        The constraint of a :class:`~formalm.Structure`, with any tokens.
    kind
        The kind of region.
    limit
        The number of tokens.

    Raises
    ------
    ArgumentError
        If the language has no such region, or tokens must be canonical.
    """

    def __init__(self, constraint: Constraint, kind: RegionKind, limit: int) -> None:
        name = f"max_{kind}_tokens"
        structure = constraint.language
        if not isinstance(structure, Structure):
            raise ArgumentError(
                f"{name} must be None for a {type(structure).__name__}",
                hint="regions are those of a Structure or of ToolCalls",
            )
        if constraint.tokenization == "canonical":
            raise ArgumentError(
                f"{name} is not supported with tokenization='canonical', because the canonical"
                " tokens of a mark depend on the text before it",
                hint='use tokenization="all"',
            )
        self.limit = limit
        self.inside = Constraint(open_region(structure, kind), constraint.vocabulary)
        self._exits = tuple(mark_bytes(mark) for mark in region_exits(structure, kind))
        self.tail_length = max(map(len, self._exits))
        self._spelled = constraint.spelled
        self._ends = list(constraint.vocabulary.end_token_ids) if kind == "free" else []
        self._tokens: list[bytes | None] | None = None
        self._masks: dict[tuple[_Exit, int], Words] = {}

    def counter(self) -> RegionCounter:
        """Returns a counter at the start of a text."""
        return RegionCounter(self)

    def token_bytes(self, token_id: int) -> bytes:
        """Returns the bytes of a token, those of a special token included."""
        return self._spelled.core.token_bytes(token_id) or b""

    def exits(self, tail: bytes, words: int) -> list[Words]:
        """Returns the masks of tokens that lead out after a text, the ones to prefer first.

        Parameters
        ----------
        tail
            The last :attr:`tail_length` bytes of the text, and no fewer than four if there are.
        words
            Number of words of a mask.
        """
        begun = tuple(
            mark[overlap:] for mark in self._exits if (overlap := _overlap(tail, mark)) > 0
        )
        fresh = _Exit(self._exits, _missing_bytes(tail))
        wanted = [_Exit(begun, 0), fresh] if begun else [fresh]
        return [self._mask(one, words) for one in wanted]

    def _mask(self, wanted: _Exit, words: int) -> Words:
        found = self._masks.get((wanted, words))
        if found is None:
            if self._tokens is None:
                read = self._spelled.core.token_bytes
                self._tokens = [read(token_id) for token_id in range(len(self._spelled))]
            allowed = np.zeros(32 * words, dtype=np.bool_)
            ids = [at for at, one in enumerate(self._tokens) if one and _leads_out(one, wanted)]
            allowed[ids] = True
            allowed[self._ends] = True
            found = np.packbits(allowed, bitorder="little").view(np.int32)
            self._masks[wanted, words] = found
        return found


class RegionCounter:
    """The tokens that one sequence has spent in its current region."""

    __slots__ = ("_budget", "_matcher", "_tail", "_used")

    def __init__(self, budget: RegionBudget) -> None:
        self._budget = budget
        self._matcher: Matcher | None = budget.inside.matcher()
        self._tail = b""
        self._used: int | None = 0 if self._matcher.is_accepting else None

    def fork(self) -> RegionCounter:
        """Returns an independent copy."""
        copy = object.__new__(RegionCounter)
        copy._budget, copy._tail, copy._used = self._budget, self._tail, self._used
        copy._matcher = None if self._matcher is None else self._matcher.fork()
        return copy

    def append(self, token_id: int) -> None:
        """Reads a token that is not an end token."""
        budget = self._budget
        length = max(4, budget.tail_length)
        self._tail = (self._tail + budget.token_bytes(token_id))[-length:]
        if self._matcher is not None:
            try:
                self._matcher.advance(token_id)
            except TokenError:
                self._matcher = None
        is_inside = self._matcher is not None and self._matcher.is_accepting
        if _missing_bytes(self._tail) and self._matcher is not None:
            # No text ends inside a character; the region is that of the characters before.
            is_inside = self._used is not None
        if not is_inside:
            self._used = None
        else:
            self._used = 0 if self._used is None else self._used + 1

    def restricted(self, words: Words) -> Words:
        """Returns a mask without the tokens that stay in a region whose budget is used up."""
        if self._used is None or self._used < self._budget.limit:
            return words
        left = words
        for exits in self._budget.exits(self._tail, len(words)):
            left = words & exits
            if left.any():
                break
        return left


class SequenceCounters:
    """The counters of one sequence, whose last tokens may be taken back, as rejected drafts are.

    Parameters
    ----------
    budgets
        The budgets of its regions; none restrict nothing.
    """

    __slots__ = ("_after",)

    def __init__(self, budgets: Sequence[RegionBudget]) -> None:
        # One list of counters after each token, the first before all of them.
        self._after = [[budget.counter() for budget in budgets]]

    def follow(self, token_ids: Sequence[int], same: int) -> None:
        """Reads tokens, the first ``same`` of which are those that were read before.

        None of them is an end token.
        """
        if not self._after[0]:
            return
        del self._after[same + 1 :]
        for token_id in token_ids[same:]:
            counters = [each.fork() for each in self._after[-1]]
            for each in counters:
                each.append(token_id)
            self._after.append(counters)

    def restricted(self, words: Words) -> Words:
        """Returns a mask without the tokens that exceed a budget.

        Raises
        ------
        TokenError
            If the mask allows tokens, but none of them leads out of a region whose budget is used
            up.
        """
        left = within_budgets(self._after[-1], words, finish=False)
        if left is not words and words.any() and not left.any():
            raise TokenError(
                "no token leads out of the region whose budget is used up",
                hint="the vocabulary may lack the tokens of the mark that ends the region",
            )
        return left


def region_budgets(
    constraint: Constraint | None, max_reasoning_tokens: object, max_free_tokens: object
) -> tuple[RegionBudget, ...]:
    """Returns the budgets that were given.

    Raises
    ------
    ArgumentError
        If one is no number of tokens, or the language lacks its region.
    """
    given: dict[RegionKind, object] = {"reasoning": max_reasoning_tokens, "free": max_free_tokens}
    made = []
    for kind, limit in given.items():
        positive(f"max_{kind}_tokens", limit, least=0)
        if limit is None:
            continue
        if constraint is None:
            raise ArgumentError(
                f"max_{kind}_tokens requires a language",
                hint="regions are those of a Structure or of ToolCalls",
            )
        made.append(RegionBudget(constraint, kind, cast(int, limit)))
    return tuple(made)


def within_budgets(counters: Sequence[RegionCounter], words: Words, *, finish: bool) -> Words:
    """Returns a mask without the tokens that exceed a budget.

    With ``finish``, the mask holds tokens after which a member fits; if none of them leads out, it
    is kept.
    """
    left = words
    for counter in counters:
        left = counter.restricted(left)
    return words if finish and not left.any() else left


def _overlap(tail: bytes, mark: bytes) -> int:
    """Returns the length of the longest proper prefix of a mark that ends a text."""
    for length in range(min(len(mark) - 1, len(tail)), 0, -1):
        if tail.endswith(mark[:length]):
            return length
    return 0


def _missing_bytes(tail: bytes) -> int:
    """Returns how many bytes complete the last character of a text; 0 if it is complete."""
    for back in range(1, min(4, len(tail) + 1)):
        byte = tail[-back]
        if byte & 0xC0 == 0x80:
            continue
        size = 2 if 0xC2 <= byte < 0xE0 else 3 if byte & 0xF0 == 0xE0 else 4
        return max(0, size - back) if 0xC2 <= byte <= 0xF4 else 0
    return 0


def _leads_out(token: bytes, wanted: _Exit) -> bool:
    """Returns True if a token completes a character, a way out, or a part of them."""
    if wanted.pending:
        head, token = token[: wanted.pending], token[wanted.pending :]
        if any(byte & 0xC0 != 0x80 for byte in head):
            return False
        if not token:
            return True
    return any(rest.startswith(token) or token.startswith(rest) for rest in wanted.remainders)
