"""A cache of constraints for services: each description compiled once, within a bound of memory.

::

    ask ── key (SHA-256) ──► kept? ── yes ──► the constraint             hit
                               │ no
                               ├── failed before ──► the same error      error hit
                               ├── being compiled ──► wait for it        wait
                               └── compile it, tell who waits            miss

One lock guards the tables and is never held while something is compiled, measured or waited for.
Whoever finds a key missing compiles it in its own thread (an interrupt then reaches who caused the
work); a coroutine hands that to a small pool of threads.
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

from formalm.automata.encoding import checked_integer, checked_seconds
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

#: Kept constraints, least recently used first, that one eviction chooses among.
CANDIDATES = 16

#: Kept constraints whose memory is measured anew when another one is added.
MEASURED = 8

#: Bytes of a constraint beside what it counts itself, and bytes of the objects that describe it for
#: each byte of its description. Resident memory of 342 schemas of SchemaStore: 16 to 40 kB, and 3.4
#: to 4.8.
BASE_BYTES = 16 << 10
TIMES_DESCRIBED = 5

#: Part of the memory limit that kept errors may take.
ERRORS_PART = 16

#: Threads that compile what coroutines ask for.
THREADS = 4

#: Seconds after which one who waits looks whether somebody still compiles.
PAUSE = 0.5

#: Characters of a description above which a coroutine leaves reading it to a thread: 0.1 ms.
LONG = 1 << 14


@dataclass(frozen=True)
class CacheStats:
    """Counts of a cache since it was made, and what it holds now.

    Every answered ask is a hit, a miss, a wait or an error hit.

    Attributes
    ----------
    hits
        Asks answered by a constraint that was kept, or that was evicted and is still in use.
    misses
        Asks that compiled.
    waits
        Asks that waited for another one to compile the same.
    error_hits
        Asks answered by an error that was kept.
    compiles
        Compilations that ended well; ``misses - compiles - errors`` were interrupted or go on.
    compile_seconds
        Time of all compilations.
    errors
        Compilations that ended with an error.
    evictions
        Constraints that were dropped for want of memory or for their age.
    bytes
        Memory of the constraints kept, measured for this answer: ``memory_bytes`` of each and an
        estimate of what describes it. It grows with use.
    entries
        Constraints kept.
    evicted_in_use
        Constraints that were dropped while somebody holds them; their memory is not in ``bytes``.
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
    """Something that a cache did, for metrics.

    Attributes
    ----------
    kind
        ``"hit"``, ``"miss"``, ``"wait"``, ``"error_hit"``, ``"compile"``, ``"error"`` or
        ``"eviction"``.
    key
        Hex digest of description and options; empty where they have none.
    seconds
        Time that was compiled or waited; 0.0 for other kinds.
    memory_bytes
        Memory of the constraint that was compiled or evicted; 0 for other kinds.
    """

    kind: str
    key: str
    seconds: float = 0.0
    memory_bytes: int = 0


@dataclass
class _Outcome:
    """How a compilation ended: a constraint, an error, or neither where it was interrupted."""

    constraint: Constraint | None = None
    error: Exception | None = None


@dataclass
class _Making:
    """A key that a thread compiles now.

    The owner is the ask of the thread that compiles: gone with its frame, however that ended.
    """

    key: Key
    owner: ref[_Ask]
    future: Future[_Outcome] = field(default_factory=Future)
    thread: int = 0


@dataclass
class _Kept:
    """A constraint that is kept."""

    constraint: Constraint
    description_bytes: int
    compile_seconds: float
    used_at: float
    bytes: int


@dataclass
class _Failed:
    """An error that is kept."""

    error: FormalmError
    until: float
    bytes: int


class _Tables:
    """Tables of a cache, guarded by its lock."""

    def __init__(self) -> None:
        self.making: dict[Key, _Making] = {}
        # Least recently used first.
        self.kept: OrderedDict[Key, _Kept] = OrderedDict()
        # Those that are measured next come first; some are no longer kept.
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
        """All entries, or as many as are to be measured."""
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
        """Notes the memory of an entry, unless it was dropped meanwhile."""
        if self.kept.get(key) is entry:
            self.bytes += now_bytes - entry.bytes
            entry.bytes = now_bytes


class ConstraintCache:
    """Constraints of one vocabulary, each compiled once, for services.

    It is shared by threads and by the tasks of any event loop. However many ask for the same at
    once, one compiles and the others wait. What is kept stays within a bound of memory; errors are
    kept for a while, so that hostile descriptions are not compiled again and again. In a child of a
    fork it goes on with what was kept, and what was being compiled is compiled anew.

    Parameters
    ----------
    vocabulary
        The vocabulary of all constraints.
    memory_limit_bytes
        Most memory of the constraints kept. They are measured now and then, as they grow with use;
        the excess is evicted: of those least recently used the one with the most bytes × age. A
        constraint that is evicted while in use lives on with whoever holds it, and is taken back
        if it is asked for. Memory of the vocabulary is not counted.
    timeout_seconds
        Deadline of an ask that gives none, compiling and waiting included; None is no limit.
    error_seconds
        How long an error is kept; 0 keeps none.
    max_idle_seconds
        Constraints that nobody asked for this long are evicted; None is no limit.
    max_description_bytes
        Longer descriptions are refused.
    on_event
        Called with a :class:`CacheEvent` for whatever the cache does, in the thread that asks or
        compiles, without a lock. It should be quick; what it raises goes to whoever asked.

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
        # Taken again by the same thread if a signal's handler asks the cache for something.
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
        """The constraint of a language: the one that is kept, or a new one.

        Parameters
        ----------
        language
            Whatever :class:`~formalm.Constraint` takes, or a JSON Schema as a dictionary. The
            order of keywords and blanks do not matter; that of ``properties`` does, since it is the
            order in which they are written.
        timeout_seconds
            Most time for this ask; None takes the cache's.
        options
            ``tokenization``, ``width``, ``memory_limit_bytes`` and ``state_limit`` of the
            constraint.

        Raises
        ------
        LimitError
            If the description has more than ``max_description_bytes``.
        DeadlineError
            If compiling it (``what`` is ``"compile"``), or waiting for another thread that does
            (``"wait"``), takes longer than ``timeout_seconds``.
        LanguageError, VocabularyError, ArgumentError
            As :class:`~formalm.Constraint`; the same error again while it is kept.
        """
        ask = _Ask(self, timeout_seconds, options)
        ask.describe(language)
        while True:
            found = self._find(ask)
            if not isinstance(found, tuple):
                return found
            making, is_mine = found
            if is_mine:
                return self._make(making, ask)
            if making.thread == threading.get_ident() and making.owner() is not None:
                raise ConcurrencyError(
                    "a constraint is asked for while this thread compiles it",
                    hint="let no parser or validator ask the cache for its own language",
                )
            begun = time.monotonic()
            try:
                outcome = making.future.result(ask.pause())
            except WaitedTooLong:
                ask.check_wait()
                self._retire(making)
                continue
            if (taken := self._taken(outcome, ask, begun)) is not None:
                return taken

    async def aconstraint(
        self,
        language: object,
        *,
        timeout_seconds: float | None = None,
        **options: Unpack[ConstraintOptions],
    ) -> Constraint:
        """Coroutine of :meth:`constraint` for :mod:`asyncio`; the event loop goes on meanwhile.

        Cancelling it harms nobody: what it had begun to compile goes on in its thread for the
        others who wait, and is kept.

        Examples
        --------
        >>> import asyncio
        >>> from formalm import Regex, Vocabulary
        >>> from formalm.constraint_cache import ConstraintCache
        >>> cache = ConstraintCache(Vocabulary.from_tokens([b"1", b"2"]))
        >>> async def serve():
        ...     asks = [cache.aconstraint(Regex("1+2")) for _ in range(100)]
        ...     return len(set(await asyncio.gather(*asks)))
        >>> asyncio.run(serve()), cache.stats().compiles
        (1, 1)
        """
        ask = _Ask(self, timeout_seconds, options)
        loop = asyncio.get_running_loop()
        if _is_long(language):
            # In threads of their own: what is kept must not wait for what is being compiled.
            described = loop.run_in_executor(self._describing_threads(), ask.describe, language)
            while not (await asyncio.wait([described], timeout=ask.pause()))[0]:
                ask.check_wait()
            await described
        else:
            ask.describe(language)
        while True:
            found = self._find(ask)
            if not isinstance(found, tuple):
                return found
            making, is_mine = found
            begun = time.monotonic()
            if is_mine:
                making.thread = 0
                self._threads().submit(self._make_aside, making, ask)
            told = asyncio.wrap_future(making.future)
            while True:
                # Unlike `wait_for` this cancels nothing that others wait for.
                done, _ = await asyncio.wait([told], timeout=ask.pause())
                if done:
                    break
                # The compilation has the same deadline, and knows better why it failed.
                ask.check_wait(grace=1.0 if is_mine else 0.0)
                if self._retire(making):
                    break
            if not done:
                continue
            taken = self._taken(told.result(), ask, begun, is_mine=is_mine)
            if taken is not None:
                return taken

    def stats(self) -> CacheStats:
        """Counts so far, and what is held now."""
        self._shrink(None)
        with self._lock:
            tables = self._tables
            held = {"bytes": tables.bytes, "entries": len(tables.kept)}
            return replace(tables.stats, **held, evicted_in_use=len(tables.evicted))

    def clear(self) -> None:
        """Forgets all constraints and errors; those in use live on with whoever holds them."""
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

    # Finding.

    def _find(self, ask: _Ask) -> Constraint | tuple[_Making, bool]:
        """A constraint, or what is being made and whether the caller has to; a kept error."""
        key, now = ask.key, time.monotonic()
        with self._lock:
            tables = self._tables
            constraint = self._kept(key, ask.size, now)
            making = tables.making.get(key)
            if constraint is None and making is not None:
                return making, False
            failed = None if constraint is not None else tables.failed.get(key)
            if failed is not None and failed.until <= now:
                tables.drop_failed(key)
                failed = None
            if failed is not None and not ask.settles(failed.error):
                failed = None
            if constraint is not None:
                tables.count(hits=1)
            elif failed is not None:
                tables.count(error_hits=1)
            else:
                making = _Making(key, ref(ask), thread=threading.get_ident())
                # A future that runs cannot be cancelled by one of those who wait.
                making.future.set_running_or_notify_cancel()
                tables.making[key] = making
                tables.count(misses=1)
        if constraint is not None:
            self._tell("hit", ask)
            return constraint
        if failed is not None:
            self._tell("error_hit", ask)
            raise _fresh(failed.error)
        assert making is not None
        return making, True

    def _kept(self, key: Key, size: int, now: float) -> Constraint | None:
        """The constraint that is kept, or still in use; the lock is held."""
        tables = self._tables
        entry = tables.kept.get(key)
        if entry is not None:
            entry.used_at = now
            tables.kept.move_to_end(key)
            return entry.constraint
        constraint = tables.evicted.pop(key, None)
        if constraint is not None:
            # Its memory is measured, and counts, when the next one is added.
            tables.keep(key, _Kept(constraint, size, 0.0, now, 0))
        return constraint

    def _taken(
        self, outcome: _Outcome, ask: _Ask, begun: float, *, is_mine: bool = False
    ) -> Constraint | None:
        """Takes the outcome that was waited for; None to ask again."""
        error = outcome.error
        if outcome.constraint is None and (error is None or not ask.settles(error)):
            if is_mine and error is not None:
                raise _fresh(error)
            return None
        if not is_mine:
            with self._lock:
                self._tables.count(waits=1)
            self._tell("wait", ask, time.monotonic() - begun)
        if error is not None:
            raise _fresh(error)
        return outcome.constraint

    # Making.

    def _make_aside(self, making: _Making, ask: _Ask) -> None:
        """Compiles in a thread of the pool; the outcome tells all."""
        making.thread = threading.get_ident()
        try:
            self._make(making, ask)
        except Exception:
            # Whoever waits has it from the outcome.
            return

    def _make(self, making: _Making, ask: _Ask) -> Constraint:
        """Compiles, and tells who waits; an interrupt lets the next one of them do it."""
        begun = time.monotonic()
        try:
            made = ask.compiled()
        except Exception as error:
            seconds = time.monotonic() - begun
            self._finish(making, ask, seconds, error=error)
            # Told once nobody waits, as a hook may fail.
            self._tell("miss", ask)
            self._tell("error", ask, seconds)
            raise
        except BaseException:
            self._finish(making, ask, time.monotonic() - begun)
            raise
        seconds = time.monotonic() - begun
        size = _memory_of(made, ask.size)
        entry = _Kept(made, ask.size, seconds, time.monotonic(), size)
        self._finish(making, ask, seconds, entry)
        self._tell("miss", ask)
        self._tell("compile", ask, seconds, size)
        self._shrink(MEASURED)
        return made

    def _finish(
        self,
        making: _Making,
        ask: _Ask,
        seconds: float,
        entry: _Kept | None = None,
        error: Exception | None = None,
    ) -> None:
        """Keeps what came of it, and tells who waits."""
        outcome = _Outcome(None if entry is None else entry.constraint, error and _fresh(error))
        try:
            with self._lock:
                tables = self._tables
                if tables.making.get(making.key) is making:
                    del tables.making[making.key]
                tables.count(compile_seconds=seconds)
                if entry is not None:
                    tables.count(compiles=1)
                    tables.keep(making.key, entry)
                elif error is not None:
                    tables.count(errors=1)
                    self._keep_error(ask, error)
        finally:
            making.future.set_result(outcome)

    def _retire(self, making: _Making) -> bool:
        """Returns True if nobody makes it any more: an interrupt came where nothing could tell."""
        with self._lock:
            is_known = self._tables.making.get(making.key) is making
            if is_known and making.owner() is None:
                del self._tables.making[making.key]
                is_known = False
        return not is_known and not making.future.done()

    def _keep_error(self, ask: _Ask, error: Exception) -> None:
        """Keeps an error for a while; the lock is held."""
        tables = self._tables
        if not isinstance(error, FormalmError) or not isinstance(ask.key, bytes):
            return
        seconds = self._error_seconds
        if isinstance(error, DeadlineError):
            # Another time it may be quick enough; a tenth of the time is spent on it at most.
            seconds = min(seconds, 10 * error.allowed) if error.what == "compile" else 0
        if not seconds or isinstance(error, ConcurrencyError):
            return
        size = 1024 + len(error.message) + len(getattr(error, "source", None) or "")
        if ask.key in tables.failed:
            tables.drop_failed(ask.key)
        tables.failed[ask.key] = _Failed(_fresh(error), time.monotonic() + seconds, size)
        tables.failed_bytes += size
        while tables.failed_bytes > self._limit // ERRORS_PART and tables.failed:
            tables.drop_failed(next(iter(tables.failed)))

    # Memory.

    def _measure(self, most: int | None) -> None:
        """Measures kept constraints anew: those used last, which have grown, and others in turn."""
        with self._lock:
            entries = self._tables.to_measure(most)
        # Without the lock: a constraint may be busy with a mask.
        for key, entry in entries:
            found = _memory_of(entry.constraint, entry.description_bytes)
            with self._lock:
                self._tables.measured(key, entry, found)

    def _shrink(self, measured: int | None) -> None:
        """Drops constraints until the others are within the limits."""
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
            self._tell_of("eviction", key, memory_bytes=entry.bytes)

    # Telling, threads and forks.

    def _tell(self, kind: str, ask: _Ask, seconds: float = 0.0, memory_bytes: int = 0) -> None:
        if self._on_event is not None:
            self._tell_of(kind, ask.key, seconds, memory_bytes)

    def _tell_of(self, kind: str, key: Key, seconds: float = 0.0, memory_bytes: int = 0) -> None:
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
        """Goes on in a child, in which no other thread is left to finish anything."""
        self._lock = threading.RLock()
        self._pool = self._describing = None
        tables = self._tables
        tables.making = {}
        # Another thread may have been in the midst of counting.
        tables.bytes = sum(entry.bytes for entry in tables.kept.values())
        tables.failed_bytes = sum(entry.bytes for entry in tables.failed.values())


class _Ask:
    """One ask: what for, and how long it may take."""

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
        """Reads the language and makes its key."""
        cache = self._cache
        self._description = description_of(language)
        self.size = self._description.size
        if self.size > cache._longest:
            hint = "max_description_bytes of the cache allows more"
            raise LimitError("bytes of description", self.size, cache._longest, hint)
        options = tuple(self.options.get(name) for name in OPTIONS)
        self.key: Key = self._description.key(cache._vocabulary.fingerprint, options)

    def compiled(self) -> Constraint:
        """Compiles it, in the time that is left."""
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
            # Asks are compared by the time that they had.
            raise DeadlineError(error.what, self._taken(), self.allowed, error.hint) from None

    def settles(self, error: Exception) -> bool:
        """Returns True if an error of another ask holds here: a deadline, if it is no later."""
        if not isinstance(error, DeadlineError):
            return True
        is_compile = error.what == "compile"
        return is_compile and self.allowed is not None and self.allowed <= error.allowed

    def seconds_left(self) -> float | None:
        return None if self.allowed is None else self.allowed - self._taken()

    def pause(self) -> float:
        """Seconds until it looks again whether somebody still makes what it waits for."""
        left = self.seconds_left()
        return PAUSE if left is None else min(PAUSE, max(left, 0.001))

    def check_wait(self, grace: float = 0.0) -> None:
        """Fails if the time is up."""
        left = self.seconds_left()
        if left is not None and left + grace <= 0:
            raise self._late("wait")

    def _late(self, what: str) -> DeadlineError:
        assert self.allowed is not None
        return DeadlineError(what, self._taken(), self.allowed)

    def _taken(self) -> float:
        return time.monotonic() - self.begun


def _memory_of(constraint: Constraint, description_bytes: int) -> int:
    """Bytes that a constraint counts for; no other place says so."""
    return constraint.memory_bytes + BASE_BYTES + TIMES_DESCRIBED * description_bytes


def _worst(kept: OrderedDict[Key, _Kept], now: float) -> Key:
    """Of those least recently used the key with the most bytes × age; quickly compiled first."""

    def weight(key: Key) -> tuple[float, float]:
        entry = kept[key]
        return entry.bytes * (now - entry.used_at), -entry.compile_seconds

    return max(islice(kept, CANDIDATES), key=weight)


def _fresh(error: E) -> E:
    """A copy of an error for another thread, without the frames that it went through."""
    try:
        found = copy.copy(error)
    except Exception:
        # An error of somebody else's that cannot be copied.
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
