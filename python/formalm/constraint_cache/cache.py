"""The cache of constraints: lookup, compilation, waiting, memory, events and forks."""

from __future__ import annotations

import asyncio
import os
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from concurrent.futures import TimeoutError as WaitedTooLong
from dataclasses import replace
from typing import TYPE_CHECKING
from weakref import WeakSet, ref

from formalm.argument_checks import checked_integer, checked_seconds
from formalm.constraint import Constraint, ConstraintOptions
from formalm.constraint_cache.request import Request, RequestLimits, is_long
from formalm.constraint_cache.statistics import CacheEvent, CacheStats
from formalm.constraint_cache.tables import Compilation, Kept, Outcome, Tables, fresh, memory_of
from formalm.constraint_keys import Key
from formalm.errors import ArgumentError, ConcurrencyError, DeadlineError, FormalmError
from formalm.vocabulary import Vocabulary
from formalm.vocabulary.vocabulary import check_vocabulary

if TYPE_CHECKING:
    from typing_extensions import Unpack

__all__ = ["ConstraintCache"]

#: Number of cached constraints whose memory is measured again when one is added. Chosen, not
#: measured.
MEASURED = 8

#: Cached errors may use one part in this many of the memory limit. Chosen, not measured.
ERRORS_PART = 16

#: Number of threads that compile the requests of coroutines. Chosen, not measured.
THREADS = 4


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
    warm_up_seconds
        Time for which a compiled constraint computes masks ahead of requests, see
        :meth:`~formalm.Constraint.warm_up`; 0 computes none. It runs in the thread that compiled,
        when those who wait have the constraint: a call of :meth:`constraint` that compiles returns
        so much later, a coroutine of :meth:`aconstraint` does not.
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
        warm_up_seconds: float = 0.0,
        on_event: Callable[[CacheEvent], object] | None = None,
    ) -> None:
        check_vocabulary(vocabulary)
        if on_event is not None and not callable(on_event):
            raise ArgumentError(f"on_event must be callable, got {type(on_event).__name__}")
        self._vocabulary = vocabulary
        self._limit = checked_integer("memory_limit_bytes", memory_limit_bytes, least=1)
        self._request_limits = RequestLimits(
            vocabulary,
            checked_seconds("timeout_seconds", timeout_seconds),
            checked_integer("max_description_bytes", max_description_bytes, least=1),
        )
        self._idle = checked_seconds("max_idle_seconds", max_idle_seconds)
        self._error_seconds = checked_seconds("error_seconds", error_seconds, otherwise="0") or 0.0
        warm_up = checked_seconds("warm_up_seconds", warm_up_seconds, otherwise="0")
        self._warm_up_seconds = warm_up or 0.0
        self._on_event = on_event
        self._tables = Tables()
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
        request = Request(self._request_limits, timeout_seconds, options)
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
        request = Request(self._request_limits, timeout_seconds, options)
        loop = asyncio.get_running_loop()
        if is_long(language):
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
            self._tables.clear()

    def __len__(self) -> int:
        return len(self._tables.kept)

    def __repr__(self) -> str:
        return f"<ConstraintCache of {len(self)} constraints over {self._vocabulary!r}>"

    # Lookup.

    def _find(self, request: Request) -> Constraint | tuple[Compilation, bool]:
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
                compilation = Compilation(key, ref(request), thread=threading.get_ident())
                # A waiter cannot cancel a future that runs.
                compilation.future.set_running_or_notify_cancel()
                tables.compilations[key] = compilation
                tables.count(misses=1)
        if constraint is not None:
            self._report("hit", request)
            return constraint
        if failed is not None:
            self._report("error_hit", request)
            raise fresh(failed.error)
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
            tables.keep(key, Kept(constraint, size, 0.0, now, 0))
        return constraint

    def _taken(
        self, outcome: Outcome, request: Request, begun: float, *, is_mine: bool = False
    ) -> Constraint | None:
        """Returns or raises the outcome that was waited for; None means that it does not apply."""
        error = outcome.error
        if outcome.constraint is None and (error is None or not request.settles(error)):
            if is_mine and error is not None:
                raise fresh(error)
            return None
        if not is_mine:
            with self._lock:
                self._tables.count(waits=1)
            self._report("wait", request, time.monotonic() - begun)
        if error is not None:
            raise fresh(error)
        return outcome.constraint

    # Compilation.

    def _compile_in_pool(self, compilation: Compilation, request: Request) -> None:
        """Compiles in a thread of the pool; the result is in the outcome."""
        compilation.thread = threading.get_ident()
        try:
            self._compile(compilation, request)
        except Exception:
            # Those who wait take it from the outcome.
            return

    def _compile(self, compilation: Compilation, request: Request) -> Constraint:
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
        size = memory_of(made, request.size)
        entry = Kept(made, request.size, seconds, time.monotonic(), size)
        self._finish(compilation, request, seconds, entry)
        self._report("miss", request)
        self._report("compile", request, seconds, size)
        self._shrink(MEASURED)
        if self._warm_up_seconds:
            made.warm_up(self._warm_up_seconds)
        return made

    def _finish(
        self,
        compilation: Compilation,
        request: Request,
        seconds: float,
        entry: Kept | None = None,
        error: Exception | None = None,
    ) -> None:
        """Caches the result and wakes those who wait."""
        outcome = Outcome(None if entry is None else entry.constraint, error and fresh(error))
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

    def _retire(self, compilation: Compilation) -> bool:
        """Returns True if nobody compiles it any more, after an interrupt that nothing recorded."""
        with self._lock:
            is_known = self._tables.compilations.get(compilation.key) is compilation
            if is_known and compilation.owner() is None:
                del self._tables.compilations[compilation.key]
                is_known = False
        return not is_known and not compilation.future.done()

    def _keep_error(self, request: Request, error: Exception) -> None:
        """Caches an error for a while; the caller holds the lock."""
        if not isinstance(error, FormalmError) or not isinstance(request.key, bytes):
            return
        seconds = self._error_seconds
        if isinstance(error, DeadlineError):
            # The next attempt may be quick enough. Attempts take at most a tenth of the time.
            seconds = min(seconds, 10 * error.allowed) if error.what == "compile" else 0
        if not seconds or isinstance(error, ConcurrencyError):
            return
        self._tables.keep_failed(request.key, error, seconds, self._limit // ERRORS_PART)

    # Memory.

    def _measure(self, most: int | None) -> None:
        """Measures cached constraints: those used last, which grew, and others by turns."""
        with self._lock:
            entries = self._tables.to_measure(most)
        # Without the lock: a constraint may be busy with a mask.
        for key, entry in entries:
            found = memory_of(entry.constraint, entry.description_bytes)
            with self._lock:
                self._tables.measured(key, entry, found)

    def _shrink(self, measured: int | None) -> None:
        """Evicts constraints until the others are within the limits."""
        self._measure(measured)
        with self._lock:
            dropped = self._tables.evict(self._limit, self._idle)
        for key, entry in dropped:
            self._report_key("eviction", key, memory_bytes=entry.bytes)

    # Events, threads and forks.

    def _report(
        self, kind: str, request: Request, seconds: float = 0.0, memory_bytes: int = 0
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
        self._tables.after_fork()


_CACHES: WeakSet[ConstraintCache] = WeakSet()


def _after_fork() -> None:
    for cache in list(_CACHES):
        cache._after_fork()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)
