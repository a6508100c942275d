"""The tables of a cache: constraints, errors and compilations in progress, and what is evicted.

All methods are called with the cache's lock held.
"""

from __future__ import annotations

import copy
import time
from collections import OrderedDict
from concurrent.futures import Future
from dataclasses import dataclass, field, replace
from itertools import islice
from typing import TypeVar
from weakref import WeakValueDictionary, ref

from formalm.constraint import Constraint
from formalm.constraint_cache.request import Request
from formalm.constraint_cache.statistics import CacheStats
from formalm.constraint_keys import Key
from formalm.errors import FormalmError

__all__ = ["Compilation", "Failed", "Kept", "Outcome", "Tables", "fresh", "memory_of"]

E = TypeVar("E", bound=Exception)

#: Number of least recently used constraints among which an eviction chooses. Chosen, not measured.
CANDIDATES = 16

#: Bytes of a constraint that it does not count itself, and bytes of the objects that describe it
#: per byte of its description. Resident memory of 342 schemas of SchemaStore: 16 to 40 kB, and 3.4
#: to 4.8.
BASE_BYTES = 16 << 10
TIMES_DESCRIBED = 5


@dataclass
class Outcome:
    """The outcome of a compilation: a constraint, an error, or neither if it was interrupted."""

    constraint: Constraint | None = None
    error: Exception | None = None


@dataclass
class Compilation:
    """A compilation in progress.

    The owner is the request of the thread that compiles. It disappears with that thread's frame,
    however that ended.
    """

    key: Key
    owner: ref[Request]
    future: Future[Outcome] = field(default_factory=Future)
    thread: int = 0


@dataclass
class Kept:
    """A cached constraint."""

    constraint: Constraint
    description_bytes: int
    compile_seconds: float
    used_at: float
    bytes: int


@dataclass
class Failed:
    """A cached error."""

    error: FormalmError
    until: float
    bytes: int


class Tables:
    """Tables of a cache, guarded by its lock."""

    def __init__(self) -> None:
        self.compilations: dict[Key, Compilation] = {}
        # Least recently used first.
        self.kept: OrderedDict[Key, Kept] = OrderedDict()
        # The next to be measured come first; some are no longer cached.
        self.turns: OrderedDict[Key, None] = OrderedDict()
        # Oldest first.
        self.failed: OrderedDict[Key, Failed] = OrderedDict()
        self.evicted: WeakValueDictionary[Key, Constraint] = WeakValueDictionary()
        self.bytes = 0
        self.failed_bytes = 0
        self.stats = CacheStats()

    def count(self, **more: float) -> None:
        """Adds to the counts."""
        now = {name: getattr(self.stats, name) + by for name, by in more.items()}
        self.stats = replace(self.stats, **now)

    def keep(self, key: Key, entry: Kept) -> None:
        """Caches a constraint, and replaces the key's previous one."""
        if key in self.kept:
            self.bytes -= self.kept.pop(key).bytes
        self.kept[key] = entry
        self.turns[key] = None
        self.bytes += entry.bytes

    def to_measure(self, most: int | None) -> list[tuple[Key, Kept]]:
        """Returns the entries to measure: all, or at most ``most``."""
        if most is None:
            return list(self.kept.items())
        found = [(key, self.kept[key]) for key in islice(reversed(self.kept), most // 2)]
        for key in list(islice(self.turns, most // 2)):
            if key in self.kept:
                self.turns.move_to_end(key)
                found.append((key, self.kept[key]))
            else:
                del self.turns[key]
        return found

    def drop_failed(self, key: Key) -> None:
        """Drops a cached error."""
        self.failed_bytes -= self.failed.pop(key).bytes

    def measured(self, key: Key, entry: Kept, now_bytes: int) -> None:
        """Records the memory of an entry, unless it was evicted meanwhile."""
        if self.kept.get(key) is entry:
            self.bytes += now_bytes - entry.bytes
            entry.bytes = now_bytes

    def keep_failed(self, key: Key, error: FormalmError, seconds: float, limit_bytes: int) -> None:
        """Caches an error for a while; the oldest are dropped beyond the limit."""
        size = 1024 + len(error.message) + len(getattr(error, "source", None) or "")
        if key in self.failed:
            self.drop_failed(key)
        self.failed[key] = Failed(fresh(error), time.monotonic() + seconds, size)
        self.failed_bytes += size
        while self.failed_bytes > limit_bytes and self.failed:
            self.drop_failed(next(iter(self.failed)))

    def evict(self, limit_bytes: int, max_idle_seconds: float | None) -> list[tuple[Key, Kept]]:
        """Evicts constraints until the others are within the limits, and returns them."""
        dropped, now = [], time.monotonic()
        while self.kept:
            oldest = next(iter(self.kept))
            idle = now - self.kept[oldest].used_at
            if max_idle_seconds is not None and idle > max_idle_seconds:
                key = oldest
            elif self.bytes > limit_bytes:
                key = self._worst(now)
            else:
                break
            entry = self.kept.pop(key)
            self.bytes -= entry.bytes
            self.turns.pop(key, None)
            self.evicted[key] = entry.constraint
            self.count(evictions=1)
            dropped.append((key, entry))
        return dropped

    def _worst(self, now: float) -> Key:
        """Returns the key with the most bytes × age of the least recently used; or the quickest."""

        def weight(key: Key) -> tuple[float, float]:
            entry = self.kept[key]
            return entry.bytes * (now - entry.used_at), -entry.compile_seconds

        return max(islice(self.kept, CANDIDATES), key=weight)

    def clear(self) -> None:
        """Drops all constraints and errors; constraints in use stay valid."""
        for key, entry in self.kept.items():
            self.evicted[key] = entry.constraint
        self.kept.clear()
        self.turns.clear()
        self.failed.clear()
        self.bytes = self.failed_bytes = 0

    def after_fork(self) -> None:
        """Drops compilations, which other threads ran; one of them may have been counting."""
        self.compilations = {}
        self.bytes = sum(entry.bytes for entry in self.kept.values())
        self.failed_bytes = sum(entry.bytes for entry in self.failed.values())


def memory_of(constraint: Constraint, description_bytes: int) -> int:
    """Returns the bytes that a constraint counts for; the only definition."""
    return constraint.memory_bytes + BASE_BYTES + TIMES_DESCRIBED * description_bytes


def fresh(error: E) -> E:
    """Returns a copy of an error for another thread, without the frames that it went through."""
    try:
        found = copy.copy(error)
    except Exception:
        # A foreign error that cannot be copied.
        found = error
    found.__cause__ = error.__cause__
    found.__suppress_context__ = error.__suppress_context__
    return found.with_traceback(None)
