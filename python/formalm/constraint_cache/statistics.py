"""Counts and events of a cache of constraints."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["CacheEvent", "CacheStats"]


@dataclass(frozen=True)
class CacheStats:
    """Counts of a cache since it was created, and its current contents.

    Every answered request is a hit, a miss, a wait or an error hit.

    Attributes
    ----------
    hits
        Requests answered by a cached constraint, or by one that was evicted and is still in use.
    misses
        Requests that compiled.
    waits
        Requests that waited for another one to compile the same.
    error_hits
        Requests answered by a cached error.
    compiles
        Compilations that succeeded; ``misses - compiles - errors`` were interrupted or still run.
    compile_seconds
        Time of all compilations.
    errors
        Compilations that failed.
    evictions
        Constraints that were evicted, by memory or by age.
    bytes
        Memory of the cached constraints, measured for this answer: ``memory_bytes`` of each, and an
        estimate for its description. It grows with use.
    entries
        Number of cached constraints.
    evicted_in_use
        Number of evicted constraints that are still referenced; their memory is not in ``bytes``.
    """

    hits: int = 0
    misses: int = 0
    waits: int = 0
    error_hits: int = 0
    compiles: int = 0
    compile_seconds: float = 0.0
    errors: int = 0
    evictions: int = 0
    bytes: int = 0
    entries: int = 0
    evicted_in_use: int = 0


@dataclass(frozen=True)
class CacheEvent:
    """An event of a cache, for metrics.

    Attributes
    ----------
    kind
        ``"hit"``, ``"miss"``, ``"wait"``, ``"error_hit"``, ``"compile"``, ``"error"`` or
        ``"eviction"``.
    key
        Hex digest of description and options; empty if they have none.
    seconds
        Time spent compiling or waiting; 0.0 for other kinds.
    memory_bytes
        Memory of the constraint that was compiled or evicted; 0 for other kinds.
    """

    kind: str
    key: str
    seconds: float = 0.0
    memory_bytes: int = 0
