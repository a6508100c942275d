"""A cache of prefixes in an engine that keeps several sequences, shares their cells and copies
them: llama.cpp.
"""

from __future__ import annotations

from collections import Counter, OrderedDict
from collections.abc import Sequence
from typing import NamedTuple, Protocol

from formalm.errors import LimitError
from formalm.models.local_engines.prefix_model import Floats

__all__ = ["BatchToken", "SequenceCache", "SequenceEngine"]


class BatchToken(NamedTuple):
    """A token that the engine is to read."""

    token_id: int
    position: int
    sequence: int
    is_last: bool
    """True if the logits after it are wanted."""


class SequenceEngine(Protocol):
    """The operations of an engine on its sequences, which are numbered from 0."""

    sequences: int
    """Number of sequences."""
    batch_tokens: int
    """Maximum number of tokens in one call of ``decode``."""
    can_copy_parts: bool
    """True if the beginning of a sequence can be copied. Recurrent models copy whole ones only."""

    def copy(self, source: int, target: int, length: int) -> None:
        """Makes ``target``, which is empty, the first ``length`` tokens of ``source``."""
        ...

    def drop(self, sequence: int) -> None:
        """Empties a sequence."""
        ...

    def decode(self, tokens: Sequence[BatchToken]) -> list[Floats] | None:
        """Reads tokens at the ends of their sequences, and returns the wanted rows in order; None,
        and changes nothing, if there is no room.
        """
        ...


class SequenceCache:
    """Evaluates prefixes, each from the longest prefix of it that the engine still has.

    Every evaluated prefix gets a sequence of its own, which shares the cells of the one it
    continues. The least recently used are dropped when sequences or cells run out.

    Parameters
    ----------
    engine
        The engine; nobody else may use its sequences.

    Attributes
    ----------
    tokens_read
        Number of tokens that the engine was made to read.
    """

    def __init__(self, engine: SequenceEngine) -> None:
        self._engine = engine
        self._free = list(range(engine.sequences))[::-1]
        self._known: OrderedDict[tuple[int, ...], int] = OrderedDict()
        self._lengths: Counter[int] = Counter()
        self.tokens_read = 0

    def rows(self, prefixes: Sequence[tuple[int, ...]]) -> list[Floats]:
        """Returns the logits after each prefix.

        Raises
        ------
        LimitError
            If a prefix alone does not fit into the engine's cells.
        """
        wanted = list(dict.fromkeys(prefixes))
        found: dict[tuple[int, ...], Floats] = {}
        # Half of the sequences are left for those that the others continue.
        most = max(1, self._engine.sequences // 2)
        for start in range(0, len(wanted), most):
            self._read(wanted[start : start + most], found)
        return [found[prefix] for prefix in prefixes]

    def _read(
        self, prefixes: Sequence[tuple[int, ...]], found: dict[tuple[int, ...], Floats]
    ) -> None:
        """Evaluates prefixes together, or in smaller batches if there is no room."""
        sources = [self._source(prefix) for prefix in prefixes]
        for source, _ in sources:
            if source is not None:
                self._known.move_to_end(source)
        pinned = {source for source, _ in sources if source is not None}
        targets = []
        for source, length in sources:
            target = self._free_sequence(pinned)
            if source is not None:
                self._engine.copy(self._known[source], target, length)
            targets.append(target)
        tokens = [
            BatchToken(prefix[at], at, target, at == len(prefix) - 1)
            for prefix, target, (_, length) in zip(prefixes, targets, sources, strict=True)
            for at in range(length, len(prefix))
        ]
        rows = self._decode(tokens)
        if rows is None:
            for target in targets:
                self._engine.drop(target)
            self._free += targets
            if len(prefixes) == 1:
                raise LimitError(
                    "tokens that the engine can keep",
                    len(prefixes[0]),
                    len(prefixes[0]) - 1,
                    "raise cached_tokens of the model",
                )
            half = len(prefixes) // 2
            self._read(prefixes[:half], found)
            self._read(prefixes[half:], found)
            return
        for prefix, target, row in zip(prefixes, targets, rows, strict=True):
            if prefix in self._known:  # read again for its logits
                self._drop(prefix)
            self._known[prefix] = target
            self._lengths[len(prefix)] += 1
            found[prefix] = row

    def _source(self, prefix: tuple[int, ...]) -> tuple[tuple[int, ...] | None, int]:
        """Returns the known prefix to continue from, and how many of its tokens to copy."""
        most = len(prefix) - 1
        if self._engine.can_copy_parts and prefix in self._known and most:
            return prefix, most
        for length in sorted(self._lengths, reverse=True):
            if length <= most and prefix[:length] in self._known:
                return prefix[:length], length
        return None, 0

    def _decode(self, tokens: Sequence[BatchToken]) -> list[Floats] | None:
        """Returns the wanted rows; None if there is no room although all else was dropped."""
        rows: list[Floats] = []
        size = self._engine.batch_tokens
        for start in range(0, len(tokens), size):
            part = tokens[start : start + size]
            answer = self._engine.decode(part)
            while answer is None:
                if not self._known:
                    return None
                for _ in range(-(-len(self._known) // 2)):
                    self._drop(next(iter(self._known)))
                answer = self._engine.decode(part)
            rows += answer
            self.tokens_read += len(part)
        return rows

    def _free_sequence(self, pinned: set[tuple[int, ...]]) -> int:
        if not self._free:
            self._drop(next(prefix for prefix in self._known if prefix not in pinned))
        return self._free.pop()

    def _drop(self, prefix: tuple[int, ...]) -> None:
        sequence = self._known.pop(prefix)
        self._lengths[len(prefix)] -= 1
        if not self._lengths[len(prefix)]:
            del self._lengths[len(prefix)]
        self._engine.drop(sequence)
        self._free.append(sequence)
