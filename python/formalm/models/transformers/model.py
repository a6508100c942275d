"""``TransformersModel``: batched and cached evaluation of a causal ``transformers`` model."""

from __future__ import annotations

import weakref
from bisect import bisect_left
from collections import deque
from collections.abc import Iterator, Sequence
from typing import Any, NoReturn

import numpy as np

from formalm.errors import ModelError
from formalm.models.model_protocols import check_runs, check_tokens
from formalm.models.transformers import kv_cache as caches
from formalm.models.transformers.forward_pass import PLACES, Floats, ForwardPass
from formalm.models.transformers.kv_pool import KvPool, PoolSlots, can_pool
from formalm.models.transformers.length_limits import switches_of
from formalm.models.transformers.prefix_state import (
    CacheBlock,
    CacheRow,
    Thinned,
    TransformersState,
)
from formalm.vocabulary import Vocabulary

__all__ = ["TransformersModel"]

PADDING = 32
"""Padding in tokens that a prefix of any length may get."""


class TransformersModel:
    """A causal model of ``transformers``; :func:`~formalm.from_transformers` makes one.

    A batch gives the results that each prefix gives alone, within the rounding of the model's own
    arithmetic.

    Attributes
    ----------
    model
        The model as it was given. It must stay in evaluation mode.
    tokenizer
        The tokenizer, or None if a vocabulary was given instead.
    vocabulary
        The vocabulary of the token ids.
    width
        Number of logits; at least ``len(vocabulary)``, because models pad their embeddings.
    bos_token_id
        The token that the tokenizer itself puts before a text; None if it puts none.
    empty_prompt_token_id
        The token that replaces an empty prompt, because a model needs some input; generation and
        queries add and report it. None if the model names none.
    context_length
        The longest prefix, in tokens; None if nothing bounds it.
    batch_size
        Maximum number of prefixes in one forward pass.
    is_padded
        True if prefixes of different lengths share a forward pass. Recurrent models take prefixes
        of one length at a time, and so does a model that failed the comparison at load time.
    is_cached
        True if ``extend`` continues from a cache. If False, prefixes are evaluated from the start.
    is_stepwise
        True if ``extend_many`` reads one token per forward pass, as recurrent models do.
    is_mixed
        True if states of different lengths share a forward pass of ``extend``. States of windows
        and recurrent layers do not.
    libraries
        The packages that it computes with, whose versions matter to its answers.
    switches
        Lengths beyond which the model evaluates the whole prefix differently, as under LongRoPE.
        Shorter and longer prefixes share no batch, and a prefix that grows beyond such a length is
        evaluated from the start.
    notes
        The reasons for any of these that is False, and other things a user should know.
    """

    libraries = ("torch", "transformers")

    def __init__(
        self,
        model: Any,
        tokenizer: Any,
        vocabulary: Vocabulary,
        *,
        width: int,
        bos_token_id: int | None,
        empty_prompt_token_id: int | None,
        context_length: int | None,
        batch_size: int,
    ) -> None:
        self.model = model
        self.tokenizer = tokenizer
        self.vocabulary = vocabulary
        self.width = width
        self.bos_token_id = bos_token_id
        self.empty_prompt_token_id = empty_prompt_token_id
        self.context_length = context_length
        self.batch_size = batch_size
        self.is_padded = True
        self.is_cached = True
        self.is_stepwise = True
        self.is_mixed = False
        self.switches = switches_of(model)
        self.notes: tuple[str, ...] = ()
        self.network = ForwardPass(model)
        self._thinned: Thinned = deque()
        self._pool: weakref.ref[KvPool] | None = None

    def __repr__(self) -> str:
        return f"<TransformersModel {type(self.model).__name__}, {self.width:,} logits>"

    def __reduce__(self) -> NoReturn:
        raise ModelError(
            "a transformers model cannot be pickled or copied",
            hint="pass the folder to the other process and call from_transformers there",
        )

    def next_logprobs(self, prefixes: Sequence[Sequence[int]]) -> Floats:
        """See :meth:`formalm.models.LanguageModel.next_logprobs`; usually float32.

        Raises
        ------
        LimitError
            If a prefix is longer than the context.
        ModelError
            If a prefix is empty, a token id is out of range, or the model returns NaN.
        """
        for prefix in prefixes:
            self._check(prefix, len(prefix))
        rows: Floats | None = None
        for batch in self._batches([len(prefix) for prefix in prefixes]):
            part = self.network.read([prefixes[place] for place in batch])
            if rows is None:
                rows = np.empty((len(prefixes), part.shape[1]), dtype=part.dtype)
            rows[batch] = part
        return np.empty((0, self.width), dtype=np.float32) if rows is None else rows

    def weights_fingerprint(self) -> str:
        """Returns a hex digest of the current weights and buffers, their types and the
        configuration.

        All of them are read, which takes some seconds for each ten gigabytes.
        """
        from formalm.models.transformers.model_metadata import weights_fingerprint

        return weights_fingerprint(self.model)

    def start(self, prefix: Sequence[int]) -> TransformersState:
        """Reads a prefix; errors as in :meth:`next_logprobs`."""
        self._check(prefix, len(prefix))
        self._shrink()
        if not self.is_cached:
            return TransformersState(
                self, tuple(prefix), self.network.read_logits([prefix])[0], None
            )
        rows, name, cache = self.network.start(prefix)
        return TransformersState(self, tuple(prefix), rows[0], self._keep(name, cache, len(prefix)))

    def _keep(self, name: str, cache: Any, length: int) -> PoolSlots | CacheRow | None:
        """Stores the cache of a first prefix."""
        if not caches.is_known(cache):
            return None
        if not can_pool(cache, length):
            return CacheRow(CacheBlock(name, cache, 1, self._thinned), 0)
        pool = None if self._pool is None else self._pool()
        if pool is None:
            pool = KvPool(name, cache)
            self._pool = weakref.ref(pool)
        return pool.keep(cache, [None], length)[0]

    def extend(
        self, states: Sequence[TransformersState], token_ids: Sequence[int]
    ) -> list[TransformersState]:
        """Reads one more token after each state; see :meth:`extend_many`."""
        if len(states) != len(token_ids):
            raise ModelError(
                f"token_ids must have one token for each of {len(states)} states, got"
                f" {len(token_ids)}"
            )
        return self.extend_many(states, [(token_id,) for token_id in token_ids])

    def extend_many(
        self, states: Sequence[TransformersState], runs: Sequence[Sequence[int]]
    ) -> list[TransformersState]:
        """Reads one or more tokens after each state; ``states`` stay valid.

        States that read equally many tokens share forward passes, of any lengths if the model
        :attr:`is_mixed`. A state of another model raises a ModelError.
        """
        check_runs(states, runs)
        for state, run in zip(states, runs, strict=True):
            if getattr(state, "model", None) is not self:
                raise ModelError("states must be made by this model")
            self._check(run, state.length + len(run))
        self._shrink()
        result: dict[int, TransformersState] = {}
        fresh = []
        for place, (state, run) in enumerate(zip(states, runs, strict=True)):
            if state.kept is None:
                fresh.append(place)
            elif self._switches_within(state, run):
                result[place] = self.start((*state.token_ids, *run))
        prefixes = [(*states[place].token_ids, *runs[place]) for place in fresh]
        if fresh:
            for batch in self._batches([len(prefix) for prefix in prefixes]):
                rows = self.network.read_logits([prefixes[at] for at in batch])
                for at, row in zip(batch, rows, strict=True):
                    state = TransformersState(self, prefixes[at], _own(row, len(batch)), None)
                    result[fresh[at]] = state
        for batch in self._cached_batches(states, runs):
            stepped = self._step([states[p] for p in batch], [runs[p] for p in batch])
            result.update(zip(batch, stepped, strict=True))
        return [result[place] for place in range(len(states))]

    def _switches_within(self, state: TransformersState, run: Sequence[int]) -> bool:
        """Returns True if a run crosses a length beyond which the whole prefix is evaluated
        differently.
        """
        side = bisect_left(self.switches, state.length)
        return side != bisect_left(self.switches, state.length + len(run))

    def _step(
        self, states: Sequence[TransformersState], runs: Sequence[Sequence[int]]
    ) -> list[TransformersState]:
        """Reads runs of one length after states, on a copy of their caches."""
        slots = [state.kept for state in states if isinstance(state.kept, PoolSlots)]
        rows = [state.kept for state in states if isinstance(state.kept, CacheRow)]
        name = slots[0].pool.name if slots else rows[0].block.name
        cache = slots[0].pool.gather(slots) if slots else _joined(rows)
        lengths = [state.length for state in states]
        width = 1 if self.is_stepwise else len(runs[0])
        for at in range(0, len(runs[0]), width):
            part = [run[at : at + width] for run in runs]
            pasts = [length + at for length in lengths]
            logits = self.network.extend(part, name, cache, pasts)
        kept: Sequence[PoolSlots | CacheRow]
        if slots:
            kept = slots[0].pool.keep(cache, slots, len(runs[0]))
        else:
            block = CacheBlock(name, cache, len(states), self._thinned)
            kept = [CacheRow(block, row) for row in range(len(states))]
        return [
            TransformersState(self, (*state.token_ids, *run), _own(row, len(states)), place)
            for state, run, row, place in zip(states, runs, logits, kept, strict=True)
        ]

    def _cached_batches(
        self, states: Sequence[TransformersState], runs: Sequence[Sequence[int]]
    ) -> Iterator[list[int]]:
        """Yields the indices of states that share a forward pass."""
        groups: dict[tuple[int, ...], list[int]] = {}
        for place, (state, run) in enumerate(zip(states, runs, strict=True)):
            if state.kept is not None and not self._switches_within(state, run):
                side = bisect_left(self.switches, state.length)
                is_mixed = self.is_mixed and isinstance(state.kept, PoolSlots)
                length = -1 if is_mixed else state.length
                groups.setdefault((len(run), side, length), []).append(place)
        for places in groups.values():
            batch: list[int] = []
            for place in sorted(places, key=lambda place: states[place].length):
                length = states[place].length
                # Padding costs as much as tokens.
                if len(batch) == self.batch_size or (
                    batch and length > 2 * states[batch[0]].length + PADDING
                ):
                    yield batch
                    batch = []
                batch.append(place)
            yield batch

    def _batches(self, lengths: Sequence[int]) -> Iterator[list[int]]:
        """Yields the indices of prefixes that share a forward pass."""
        batch: list[int] = []
        seen: set[int] = set()
        most = PLACES if self.is_padded else 1
        for place in sorted(range(len(lengths)), key=lengths.__getitem__):
            new = lengths[place] not in seen
            side = bisect_left(self.switches, lengths[place])
            full = len(batch) == self.batch_size or (new and len(seen) == most)
            if batch and (full or side != bisect_left(self.switches, lengths[batch[-1]])):
                yield batch
                batch, seen = [], set()
            batch.append(place)
            seen.add(lengths[place])
        if batch:
            yield batch

    def _shrink(self) -> None:
        """Shrinks the caches from which states were dropped."""
        while self._thinned:
            block = self._thinned.popleft()()
            if block is not None:
                block.shrink()

    def _check(self, token_ids: Sequence[int], length: int) -> None:
        check_tokens(token_ids, length, self.width, self.context_length)


def _own(row: Any, count: int) -> Any:
    """Returns a row of ``count`` that does not keep the others in memory, as a view does."""
    return row.clone() if count > 1 else row


def _joined(rows: Sequence[CacheRow]) -> Any:
    """Returns a cache of the rows of some blocks, which may grow without changing them."""
    parts: list[tuple[CacheBlock, list[int]]] = []
    for row in rows:
        if not parts or parts[-1][0] is not row.block:
            parts.append((row.block, []))
        parts[-1][1].append(row.block.places[row.row])
    first, chosen = parts[0]
    if len(parts) == 1 and chosen == list(range(first.size)):
        return caches.fork(first.cache)
    return caches.join([(block.cache, rows) for block, rows in parts])
