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
"""

from __future__ import annotations

import asyncio
import copy
import os
import threading
import time
from collections import OrderedDict
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from concurrent.futures import TimeoutError as WaitedTooLong
from dataclasses import dataclass, field, replace
from itertools import islice
from typing import TYPE_CHECKING, TypeVar
from weakref import WeakSet, WeakValueDictionary, ref

from formalm.automata.text_and_argument_checks import checked_integer, checked_seconds
from formalm.constraint import Constraint, ConstraintOptions
from formalm.constraint_keys import Key, description_of
from formalm.errors import ArgumentError, ConcurrencyError, DeadlineError, FormalmError, LimitError
from formalm.languages import Language
from formalm.vocabulary import Vocabulary
from formalm.vocabulary.vocabulary import check_vocabulary

if TYPE_CHECKING:
    from typing_extensions import Unpack

__all__ = ["CacheEvent", "CacheStats", "ConstraintCache"]

E = TypeVar("E", bound=Exception)

#: Options of a constraint that the cache takes.
OPTIONS = ("tokenization", "width", "memory_limit_bytes", "state_limit")

#: Number of least recently used constraints among which an eviction chooses. Chosen, not measured.
CANDIDATES = 16

#: Number of cached constraints whose memory is measured again when one is added. Chosen, not
#: measured.
MEASURED = 8

#: Bytes of a constraint that it does not count itself, and bytes of the objects that describe it
#: per byte of its description. Resident memory of 342 schemas of SchemaStore: 16 to 40 kB, and 3.4
#: to 4.8.
BASE_BYTES = 16 << 10
TIMES_DESCRIBED = 5

#: Cached errors may use one part in this many of the memory limit. Chosen, not measured.
ERRORS_PART = 16

#: Number of threads that compile the requests of coroutines. Chosen, not measured.
THREADS = 4

#: Seconds between checks that a compilation that is waited for still runs. Chosen, not measured.
PAUSE = 0.5

#: Characters of a description above which a coroutine reads it in a thread: that takes 0.1 ms.
LONG = 1 << 14


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


@dataclass
class _Outcome:
    """The outcome of a compilation: a constraint, an error, or neither if it was interrupted."""

    constraint: Constraint | None = None
    error: Exception | None = None


@dataclass
class _Compilation:
    """A compilation in progress.

    The owner is the request of the thread that compiles. It disappears with that thread's frame,
    however that ended.
    """

    key: Key
    owner: ref[_Request]
    future: Future[_Outcome] = field(default_factory=Future)
    thread: int = 0


@dataclass
class _Kept:
    """A cached constraint."""

    constraint: Constraint
    description_bytes: int
    compile_seconds: float
    used_at: float
    bytes: int


@dataclass
class _Failed:
    """A cached error."""

    error: FormalmError
    until: float
    bytes: int


class _Tables:
    """Tables of a cache, guarded by its lock."""

    def __init__(self) -> None:
        self.compilations: dict[Key, _Compilation] = {}
        # Least recently used first.
        self.kept: OrderedDict[Key, _Kept] = OrderedDict()
        # The next to be measured come first; some are no longer cached.
        self.turns: OrderedDict[Key, None] = OrderedDict()
        # Oldest first.
        self.failed: OrderedDict[Key, _Failed] = OrderedDict()
        self.evicted: WeakValueDictionary[Key, Constraint] = WeakValueDictionary()
        self.bytes = 0
        self.failed_bytes = 0
        self.stats = CacheStats()

    def count(self, **more: float) -> None:
        now = {name: getattr(self.stats, name) + by for name, by in more.items()}
        self.stats = replace(self.stats, **now)

    def keep(self, key: Key, entry: _Kept) -> None:
        if key in self.kept:
            self.bytes -= self.kept.pop(key).bytes
        self.kept[key] = entry
        self.turns[key] = None
        self.bytes += entry.bytes

    def to_measure(self, most: int | None) -> list[tuple[Key, _Kept]]:
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
        self.failed_bytes -= self.failed.pop(key).bytes

    def measured(self, key: Key, entry: _Kept, now_bytes: int) -> None:
        """Records the memory of an entry, unless it was evicted meanwhile."""
        if self.kept.get(key) is entry:
            self.bytes += now_bytes - entry.bytes
            entry.bytes = now_bytes


class ConstraintCache:
    """Constraints of one vocabulary, each compiled once, for services.

    Threads and the tasks of any event loop may share it. Of simultaneous requests for the same
    constraint, one compiles and the others wait. Cached constraints stay within a memory limit.
    Errors are cached for a while, so that hostile descriptions are not compiled repeatedly. In a
    forked child, the cached constraints remain, and compilations in progress start again.

    Parameters
    ----------
    vocabulary
        The vocabulary of all constraints.
    memory_limit_bytes
        Maximum memory of the cached constraints. They are measured from time to time, because they
        grow with use. Beyond the limit, the one with the most bytes × age among the least recently
        used is evicted. A constraint that is evicted while in use stays valid, and is cached again
        if it is requested. Memory of the vocabulary is not counted.
    timeout_seconds
        Default deadline of a request, for compiling and waiting together; None means no limit.
    error_seconds
        Time for which an error is cached; 0 caches none.
    max_idle_seconds
        Constraints not requested for this long are evicted; None means no limit.
    max_description_bytes
        Maximum size of a description; longer ones are refused.
    on_event
        Called with a :class:`CacheEvent` after each event, in the thread that requests or compiles,
        without a lock. It should be quick; an exception that it raises reaches the caller.

    Examples
    --------
    >>> from formalm import Vocabulary
    >>> from formalm.constraint_cache import ConstraintCache
    >>> cache = ConstraintCache(Vocabulary.from_tokens([b"1", b"2", b"[", b"]"]))
    >>> one = cache.constraint({"type": "integer", "minimum": 2})
    >>> one is cache.constraint({"minimum": 2, "type": "integer"})
    True
    >>> stats = cache.stats()
    >>> stats.compiles, stats.hits
    (1, 1)
    """

    def __init__(
        self,
        vocabulary: Vocabulary,
        *,
        memory_limit_bytes: int = 256 << 20,
        timeout_seconds: float | None = None,
        error_seconds: float = 60.0,
        max_idle_seconds: float | None = None,
        max_description_bytes: int = 4 << 20,
        on_event: Callable[[CacheEvent], object] | None = None,
    ) -> None:
        check_vocabulary(vocabulary)
        if on_event is not None and not callable(on_event):
            raise ArgumentError(f"on_event must be callable, got {type(on_event).__name__}")
        self._vocabulary = vocabulary
        self._limit = checked_integer("memory_limit_bytes", memory_limit_bytes, least=1)
        self._longest = checked_integer("max_description_bytes", max_description_bytes, least=1)
        self._timeout = checked_seconds("timeout_seconds", timeout_seconds)
        self._idle = checked_seconds("max_idle_seconds", max_idle_seconds)
        self._error_seconds = checked_seconds("error_seconds", error_seconds, otherwise="0") or 0.0
        self._on_event = on_event
        self._tables = _Tables()
        # Reentrant, because a signal handler may use the cache in the same thread.
        self._lock = threading.RLock()
        self._pool: ThreadPoolExecutor | None = None
        self._describing: ThreadPoolExecutor | None = None
        _CACHES.add(self)

    @property
    def vocabulary(self) -> Vocabulary:
        """The vocabulary of all constraints."""
        return self._vocabulary

    def constraint(
        self,
        language: object,
        *,
        timeout_seconds: float | None = None,
        **options: Unpack[ConstraintOptions],
    ) -> Constraint:
        """Returns the constraint of a language: the cached one, or a new one.

        Parameters
        ----------
        language
            Anything that :class:`~formalm.Constraint` takes, or a JSON Schema as a dictionary. The
            order of keywords and whitespace do not matter. The order of ``properties`` matters,
            because it is the order in which they are written.
        timeout_seconds
            Maximum time of this request; None means the cache's.
        options
            ``tokenization``, ``width``, ``memory_limit_bytes`` and ``state_limit`` of the
            constraint.

        Raises
        ------
        LimitError
            If the description has more than ``max_description_bytes``.
        DeadlineError
            If compiling (``what`` is ``"compile"``), or waiting for another thread that compiles
            (``"wait"``), takes longer than ``timeout_seconds``.
        LanguageError, VocabularyError, ArgumentError
            As :class:`~formalm.Constraint`; the same error again while it is cached.
        """
        request = _Request(self, timeout_seconds, options)
        request.describe(language)
        while True:
            found = self._find(request)
            if not isinstance(found, tuple):
                return found
            compilation, is_mine = found
            if is_mine:
                return self._compile(compilation, request)
            if compilation.thread == threading.get_ident() and compilation.owner() is not None:
                raise ConcurrencyError(
                    "a constraint must not be requested while the same thread compiles it",
                    hint="a parser or validator must not request its own language from the cache",
                )
            begun = time.monotonic()
            try:
                outcome = compilation.future.result(request.pause())
            except WaitedTooLong:
                request.check_wait()
                self._retire(compilation)
                continue
            if (taken := self._taken(outcome, request, begun)) is not None:
                return taken

    async def aconstraint(
        self,
        language: object,
        *,
        timeout_seconds: float | None = None,
        **options: Unpack[ConstraintOptions],
    ) -> Constraint:
        """Coroutine of :meth:`constraint` for :mod:`asyncio`; it does not block the event loop.

        If it is cancelled, a compilation that it started continues in its thread for the others
        that wait, and is cached.

        Examples
        --------
        >>> import asyncio
        >>> from formalm import Regex, Vocabulary
        >>> from formalm.constraint_cache import ConstraintCache
        >>> cache = ConstraintCache(Vocabulary.from_tokens([b"1", b"2"]))
        >>> async def serve():
        ...     requests = [cache.aconstraint(Regex("1+2")) for _ in range(100)]
        ...     return len(set(await asyncio.gather(*requests)))
        >>> asyncio.run(serve()), cache.stats().compiles
        (1, 1)
        """
        request = _Request(self, timeout_seconds, options)
        loop = asyncio.get_running_loop()
        if _is_long(language):
            # In threads of their own: cached constraints must not wait for compilations.
            described = loop.run_in_executor(self._describing_threads(), request.describe, language)
            while not (await asyncio.wait([described], timeout=request.pause()))[0]:
                request.check_wait()
            await described
        else:
            request.describe(language)
        while True:
            found = self._find(request)
            if not isinstance(found, tuple):
                return found
            compilation, is_mine = found
            begun = time.monotonic()
            if is_mine:
                compilation.thread = 0
                self._threads().submit(self._compile_in_pool, compilation, request)
            outcome_future = asyncio.wrap_future(compilation.future)
            while True:
                # Unlike `wait_for`, this does not cancel what others wait for.
                done, _ = await asyncio.wait([outcome_future], timeout=request.pause())
                if done:
                    break
                # The compilation has the same deadline, and knows better why it failed.
                request.check_wait(grace=1.0 if is_mine else 0.0)
                if self._retire(compilation):
                    break
            if not done:
                continue
            taken = self._taken(outcome_future.result(), request, begun, is_mine=is_mine)
            if taken is not None:
                return taken

    def stats(self) -> CacheStats:
        """Returns the counts so far and the current contents."""
        self._shrink(None)
        with self._lock:
            tables = self._tables
            held = {"bytes": tables.bytes, "entries": len(tables.kept)}
            return replace(tables.stats, **held, evicted_in_use=len(tables.evicted))

    def clear(self) -> None:
        """Drops all constraints and errors; constraints in use stay valid."""
        with self._lock:
            tables = self._tables
            for key, entry in tables.kept.items():
                tables.evicted[key] = entry.constraint
            tables.kept.clear()
            tables.turns.clear()
            tables.failed.clear()
            tables.bytes = tables.failed_bytes = 0

    def __len__(self) -> int:
        return len(self._tables.kept)

    def __repr__(self) -> str:
        return f"<ConstraintCache of {len(self)} constraints over {self._vocabulary!r}>"

    # Lookup.

    def _find(self, request: _Request) -> Constraint | tuple[_Compilation, bool]:
        """Returns a constraint, or a compilation and True if the caller must run it.

        Raises
        ------
        FormalmError
            If the error of an earlier compilation is cached.
        """
        key, now = request.key, time.monotonic()
        with self._lock:
            tables = self._tables
            constraint = self._kept(key, request.size, now)
            compilation = tables.compilations.get(key)
            if constraint is None and compilation is not None:
                return compilation, False
            failed = None if constraint is not None else tables.failed.get(key)
            if failed is not None and failed.until <= now:
                tables.drop_failed(key)
                failed = None
            if failed is not None and not request.settles(failed.error):
                failed = None
            if constraint is not None:
                tables.count(hits=1)
            elif failed is not None:
                tables.count(error_hits=1)
            else:
                compilation = _Compilation(key, ref(request), thread=threading.get_ident())
                # A waiter cannot cancel a future that runs.
                compilation.future.set_running_or_notify_cancel()
                tables.compilations[key] = compilation
                tables.count(misses=1)
        if constraint is not None:
            self._report("hit", request)
            return constraint
        if failed is not None:
            self._report("error_hit", request)
            raise _fresh(failed.error)
        assert compilation is not None
        return compilation, True

    def _kept(self, key: Key, size: int, now: float) -> Constraint | None:
        """Returns the constraint that is cached or still in use; the caller holds the lock."""
        tables = self._tables
        entry = tables.kept.get(key)
        if entry is not None:
            entry.used_at = now
            tables.kept.move_to_end(key)
            return entry.constraint
        constraint = tables.evicted.pop(key, None)
        if constraint is not None:
            # Its memory is measured and counted when the next one is added.
            tables.keep(key, _Kept(constraint, size, 0.0, now, 0))
        return constraint

    def _taken(
        self, outcome: _Outcome, request: _Request, begun: float, *, is_mine: bool = False
    ) -> Constraint | None:
        """Returns or raises the outcome that was waited for; None means that it does not apply."""
        error = outcome.error
        if outcome.constraint is None and (error is None or not request.settles(error)):
            if is_mine and error is not None:
                raise _fresh(error)
            return None
        if not is_mine:
            with self._lock:
                self._tables.count(waits=1)
            self._report("wait", request, time.monotonic() - begun)
        if error is not None:
            raise _fresh(error)
        return outcome.constraint

    # Compilation.

    def _compile_in_pool(self, compilation: _Compilation, request: _Request) -> None:
        """Compiles in a thread of the pool; the result is in the outcome."""
        compilation.thread = threading.get_ident()
        try:
            self._compile(compilation, request)
        except Exception:
            # Those who wait take it from the outcome.
            return

    def _compile(self, compilation: _Compilation, request: _Request) -> Constraint:
        """Compiles and wakes those who wait; after an interrupt, the next of them compiles."""
        begun = time.monotonic()
        try:
            made = request.compiled()
        except Exception as error:
            seconds = time.monotonic() - begun
            self._finish(compilation, request, seconds, error=error)
            # Reported when nobody waits any more, because a hook may fail.
            self._report("miss", request)
            self._report("error", request, seconds)
            raise
        except BaseException:
            self._finish(compilation, request, time.monotonic() - begun)
            raise
        seconds = time.monotonic() - begun
        size = _memory_of(made, request.size)
        entry = _Kept(made, request.size, seconds, time.monotonic(), size)
        self._finish(compilation, request, seconds, entry)
        self._report("miss", request)
        self._report("compile", request, seconds, size)
        self._shrink(MEASURED)
        return made

    def _finish(
        self,
        compilation: _Compilation,
        request: _Request,
        seconds: float,
        entry: _Kept | None = None,
        error: Exception | None = None,
    ) -> None:
        """Caches the result and wakes those who wait."""
        outcome = _Outcome(None if entry is None else entry.constraint, error and _fresh(error))
        try:
            with self._lock:
                tables = self._tables
                if tables.compilations.get(compilation.key) is compilation:
                    del tables.compilations[compilation.key]
                tables.count(compile_seconds=seconds)
                if entry is not None:
                    tables.count(compiles=1)
                    tables.keep(compilation.key, entry)
                elif error is not None:
                    tables.count(errors=1)
                    self._keep_error(request, error)
        finally:
            compilation.future.set_result(outcome)

    def _retire(self, compilation: _Compilation) -> bool:
        """Returns True if nobody compiles it any more, after an interrupt that nothing recorded."""
        with self._lock:
            is_known = self._tables.compilations.get(compilation.key) is compilation
            if is_known and compilation.owner() is None:
                del self._tables.compilations[compilation.key]
                is_known = False
        return not is_known and not compilation.future.done()

    def _keep_error(self, request: _Request, error: Exception) -> None:
        """Caches an error for a while; the caller holds the lock."""
        tables = self._tables
        if not isinstance(error, FormalmError) or not isinstance(request.key, bytes):
            return
        seconds = self._error_seconds
        if isinstance(error, DeadlineError):
            # The next attempt may be quick enough. Attempts take at most a tenth of the time.
            seconds = min(seconds, 10 * error.allowed) if error.what == "compile" else 0
        if not seconds or isinstance(error, ConcurrencyError):
            return
        size = 1024 + len(error.message) + len(getattr(error, "source", None) or "")
        if request.key in tables.failed:
            tables.drop_failed(request.key)
        tables.failed[request.key] = _Failed(_fresh(error), time.monotonic() + seconds, size)
        tables.failed_bytes += size
        while tables.failed_bytes > self._limit // ERRORS_PART and tables.failed:
            tables.drop_failed(next(iter(tables.failed)))

    # Memory.

    def _measure(self, most: int | None) -> None:
        """Measures cached constraints: those used last, which grew, and others by turns."""
        with self._lock:
            entries = self._tables.to_measure(most)
        # Without the lock: a constraint may be busy with a mask.
        for key, entry in entries:
            found = _memory_of(entry.constraint, entry.description_bytes)
            with self._lock:
                self._tables.measured(key, entry, found)

    def _shrink(self, measured: int | None) -> None:
        """Evicts constraints until the others are within the limits."""
        self._measure(measured)
        dropped = []
        with self._lock:
            tables, now = self._tables, time.monotonic()
            while tables.kept:
                oldest = next(iter(tables.kept))
                if self._idle is not None and now - tables.kept[oldest].used_at > self._idle:
                    key = oldest
                elif tables.bytes > self._limit:
                    key = _worst(tables.kept, now)
                else:
                    break
                entry = tables.kept.pop(key)
                tables.bytes -= entry.bytes
                tables.turns.pop(key, None)
                tables.evicted[key] = entry.constraint
                tables.count(evictions=1)
                dropped.append((key, entry))
        for key, entry in dropped:
            self._report_key("eviction", key, memory_bytes=entry.bytes)

    # Events, threads and forks.

    def _report(
        self, kind: str, request: _Request, seconds: float = 0.0, memory_bytes: int = 0
    ) -> None:
        if self._on_event is not None:
            self._report_key(kind, request.key, seconds, memory_bytes)

    def _report_key(self, kind: str, key: Key, seconds: float = 0.0, memory_bytes: int = 0) -> None:
        if self._on_event is not None:
            name = key.hex() if isinstance(key, bytes) else ""
            self._on_event(CacheEvent(kind, name, seconds, memory_bytes))

    def _threads(self) -> ThreadPoolExecutor:
        with self._lock:
            if self._pool is None:
                self._pool = ThreadPoolExecutor(THREADS, thread_name_prefix="formalm-compile")
            return self._pool

    def _describing_threads(self) -> ThreadPoolExecutor:
        with self._lock:
            if self._describing is None:
                name = "formalm-describe"
                self._describing = ThreadPoolExecutor(THREADS, thread_name_prefix=name)
            return self._describing

    def _after_fork(self) -> None:
        """Repairs the state in a forked child, where no other thread is left to finish anything."""
        self._lock = threading.RLock()
        self._pool = self._describing = None
        tables = self._tables
        tables.compilations = {}
        # Another thread may have been counting.
        tables.bytes = sum(entry.bytes for entry in tables.kept.values())
        tables.failed_bytes = sum(entry.bytes for entry in tables.failed.values())


class _Request:
    """A request: its language, options and deadline."""

    def __init__(
        self, cache: ConstraintCache, timeout_seconds: float | None, options: ConstraintOptions
    ) -> None:
        for name in options:
            if name not in OPTIONS:
                raise ArgumentError(
                    f"options must be those of Constraint, got {name}",
                    hint=f"the options are {', '.join(OPTIONS)}",
                )
        self.begun = time.monotonic()
        given = checked_seconds("timeout_seconds", timeout_seconds)
        self.allowed = cache._timeout if given is None else given
        self.options = options
        self.size = 0
        self._cache = cache

    def describe(self, language: object) -> None:
        """Reads the language and computes its key."""
        cache = self._cache
        self._description = description_of(language)
        self.size = self._description.size
        if self.size > cache._longest:
            hint = "raise max_description_bytes of the cache"
            raise LimitError("bytes of description", self.size, cache._longest, hint)
        options = tuple(self.options.get(name) for name in OPTIONS)
        self.key: Key = self._description.key(cache._vocabulary.fingerprint, options)

    def compiled(self) -> Constraint:
        """Compiles the constraint in the time that is left."""
        left = self.seconds_left()
        if left is not None and left <= 0:
            raise self._late("wait")
        try:
            return Constraint(
                self._description.made(),
                self._cache._vocabulary,
                timeout_seconds=left,
                **self.options,
            )
        except DeadlineError as error:
            if self.allowed is None:
                raise
            # Errors are compared by the time that the whole request had.
            raise DeadlineError(error.what, self._taken(), self.allowed, error.hint) from None

    def settles(self, error: Exception) -> bool:
        """Returns True if another request's error applies: of a deadline, if ours is no later."""
        if not isinstance(error, DeadlineError):
            return True
        is_compile = error.what == "compile"
        return is_compile and self.allowed is not None and self.allowed <= error.allowed

    def seconds_left(self) -> float | None:
        return None if self.allowed is None else self.allowed - self._taken()

    def pause(self) -> float:
        """Returns the seconds until the next check that the compilation still runs."""
        left = self.seconds_left()
        return PAUSE if left is None else min(PAUSE, max(left, 0.001))

    def check_wait(self, grace: float = 0.0) -> None:
        """Raises if the time is over."""
        left = self.seconds_left()
        if left is not None and left + grace <= 0:
            raise self._late("wait")

    def _late(self, what: str) -> DeadlineError:
        assert self.allowed is not None
        return DeadlineError(what, self._taken(), self.allowed)

    def _taken(self) -> float:
        return time.monotonic() - self.begun


def _memory_of(constraint: Constraint, description_bytes: int) -> int:
    """Returns the bytes that a constraint counts for; the only definition."""
    return constraint.memory_bytes + BASE_BYTES + TIMES_DESCRIBED * description_bytes


def _worst(kept: OrderedDict[Key, _Kept], now: float) -> Key:
    """Returns the key with the most bytes × age of the least recently used; then the quickest."""

    def weight(key: Key) -> tuple[float, float]:
        entry = kept[key]
        return entry.bytes * (now - entry.used_at), -entry.compile_seconds

    return max(islice(kept, CANDIDATES), key=weight)


def _fresh(error: E) -> E:
    """Returns a copy of an error for another thread, without the frames that it went through."""
    try:
        found = copy.copy(error)
    except Exception:
        # A foreign error that cannot be copied.
        found = error
    found.__cause__ = error.__cause__
    found.__suppress_context__ = error.__suppress_context__
    return found.with_traceback(None)


def _is_long(language: object) -> bool:
    """Returns True if reading a description could hold up an event loop."""
    if isinstance(language, Language):
        arguments = language._arguments
        return sum(len(one) for one in arguments if isinstance(one, str | bytes | tuple)) > LONG
    return True


_CACHES: WeakSet[ConstraintCache] = WeakSet()


def _after_fork() -> None:
    for cache in list(_CACHES):
        cache._after_fork()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)
