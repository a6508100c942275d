"""A cache of constraints for services: each description compiled once, within a bound of memory.

::

    request ── key (SHA-256) ──► cached? ── yes ──► the constraint         hit
                                   │ no
                                   ├── failed before ──► the same error    error hit
                                   ├── being compiled ──► wait for it      wait
                                   └── compile it, wake those who wait     miss

One lock guards the tables. It is never held during compiling, measuring or waiting. The thread that
finds a key missing compiles it, so that an interrupt reaches the caller that caused the work. A
coroutine passes that to a small pool of threads.

::

    cache ──► tables      cached constraints and errors, compilations in progress, eviction
      │  └──► request     one request: its language, options and deadline
      └─────► statistics  counts and events
"""

from formalm.constraint_cache.cache import ConstraintCache
from formalm.constraint_cache.statistics import CacheEvent, CacheStats

__all__ = ["CacheEvent", "CacheStats", "ConstraintCache"]
