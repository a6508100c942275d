"""A cache compiles each description once and keeps within its bounds."""

from __future__ import annotations

import asyncio
import gc
import json
import random
import signal
import threading
import time
from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest

from formalm import (
    ArgumentError,
    Choice,
    Constraint,
    DeadlineError,
    FormalmError,
    Grammar,
    JsonSchema,
    LanguageError,
    LimitError,
    ParseFailure,
    Parser,
    Regex,
    StringLiteral,
    grammars,
)
from formalm.constraint_cache import CacheEvent, ConstraintCache
from formalm.constraint_keys import canonical_schema, description_of
from tests.support.processes import needs_fork, needs_limits, run_python
from tests.support.tiny_models import BYTE_VOCABULARY

SCHEMA = {
    "type": "object",
    "properties": {"b": {"type": "integer", "minimum": 1}, "a": {"enum": [{"y": 1, "x": 2}]}},
    "required": ["b", "a"],
    "additionalProperties": False,
}


class Slow(Parser):
    """A parser whose machine takes some time to make, or fails."""

    started = threading.Event()
    copies = 0

    def __init__(self, seconds: float = 0.0, failure: BaseException | None = None) -> None:
        self.seconds = seconds
        self.failure = failure

    def append(self, text: str) -> None:
        if set(text) - {"a"}:
            raise ParseFailure

    @property
    def is_accepting(self) -> bool:
        Slow.started.set()
        time.sleep(self.seconds)
        if self.failure is not None:
            raise self.failure
        return True

    def copy(self) -> Slow:
        Slow.copies += 1
        return Slow(self.seconds, self.failure)


class Compiling:
    """Counts compilations of a cache, and does something in the midst of each."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, during: Callable[[], object]) -> None:
        from formalm.constraint_cache import request

        self.count = 0
        self.started = threading.Event()
        lock = threading.Lock()

        def compiled(*arguments: Any, **options: Any) -> Constraint:
            with lock:
                self.count += 1
            self.started.set()
            during()
            return Constraint(*arguments, **options)

        monkeypatch.setattr(request, "Constraint", compiled)


def in_threads(count: int, work: Callable[[], object]) -> list[object]:
    """What each of some threads got, or raised, all at once."""
    found: list[object] = []
    gate = threading.Barrier(count)

    def run() -> None:
        gate.wait()
        try:
            found.append(work())
        except BaseException as error:
            found.append(error)

    threads = [threading.Thread(target=run) for _ in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return found


def test_the_same_description_is_compiled_once() -> None:
    cache = ConstraintCache(BYTE_VOCABULARY)
    one = cache.constraint(SCHEMA)
    again = [
        dict(reversed(list(SCHEMA.items()))),
        JsonSchema(SCHEMA),
        JsonSchema(json.dumps(SCHEMA, indent=4)),
    ]
    for other in again:
        assert cache.constraint(other) is one
    stats = cache.stats()
    assert (stats.compiles, stats.misses, stats.hits, stats.entries) == (1, 1, 3, 1)
    assert stats.bytes >= one.memory_bytes
    assert stats.compile_seconds > 0
    assert one == Constraint(JsonSchema(SCHEMA), BYTE_VOCABULARY)


DIFFERENT: dict[str, tuple[Any, dict[str, Any], Any, dict[str, Any]]] = {
    "the order of properties": (
        {"properties": {"a": {}, "b": {}}},
        {},
        {"properties": {"b": {}, "a": {}}},
        {},
    ),
    "the order within a constant": (
        {"const": {"a": 1, "b": 2}},
        {},
        {"const": {"b": 2, "a": 1}},
        {},
    ),
    "the spelling of a number": ({"const": 1.0}, {}, {"const": 1}, {}),
    "a type and its name": ({"const": 1}, {}, {"const": "1"}, {}),
    "options of a schema": (
        JsonSchema(SCHEMA),
        {},
        JsonSchema(SCHEMA, property_order="any"),
        {},
    ),
    "resources": (
        JsonSchema({"$ref": "x:a"}, resources={"x:a": {"const": 1}}),
        {},
        JsonSchema({"$ref": "x:a"}, resources={"x:a": {"const": 2}}),
        {},
    ),
    "kinds of one text": (StringLiteral("a"), {}, Regex("a"), {}),
    "how a list is cut": (["a", "bc"], {}, ["ab", "c"], {}),
    "options": (Regex("a"), {"width": 256}, Regex("a"), {"width": 257}),
    "parsers": (Slow(1e-6), {}, Slow(2e-6), {}),
    "types": (int, {}, float, {}),
    "dialects": (Regex("a."), {}, Regex("a.", dialect="ecma"), {}),
}


@pytest.mark.parametrize("what", DIFFERENT)
def test_descriptions_that_differ_have_different_keys(what: str) -> None:
    one, options, other, others = DIFFERENT[what]
    cache = ConstraintCache(BYTE_VOCABULARY)
    first = cache.constraint(one, **options)
    assert cache.constraint(other, **others) is not first
    assert cache.constraint(one, **options) is first
    assert len(cache) == 2


ACCEPTED: dict[str, Callable[[], Any]] = {
    "a regex": lambda: Regex("a+"),
    "a list": lambda: ["yes", "no"],
    "a type": lambda: list[int],
    "a grammar": lambda: Grammar('start: "a"+'),
    "an intersection": lambda: Regex("a+") & Regex("[ab]{3}"),
    "a mixed one": lambda: StringLiteral("x") + JsonSchema(SCHEMA),
    "edits": lambda: Regex("abc").edits(1),
    "a library's": lambda: grammars.JSON,
}


@pytest.mark.parametrize("kind", ACCEPTED)
def test_everything_that_constraint_accepts_is_accepted(kind: str) -> None:
    cache = ConstraintCache(BYTE_VOCABULARY)
    one = cache.constraint(ACCEPTED[kind]())
    assert cache.constraint(ACCEPTED[kind]()) is one
    expected = Constraint(ACCEPTED[kind](), BYTE_VOCABULARY)
    assert (one.matcher().mask() == expected.matcher().mask()).all()


@pytest.mark.parametrize("wrong", ["a text", b"bytes", 5, None, {"a": {1, 2}}, Regex])
def test_objects_that_are_not_languages_are_refused(wrong: Any) -> None:
    cache = ConstraintCache(BYTE_VOCABULARY)
    with pytest.raises((LanguageError, ArgumentError)):
        cache.constraint(wrong)
    assert cache.stats().compiles == 0


def test_keywords_of_schemas_have_no_order() -> None:
    rng = random.Random(3)
    schemas: list[Any] = [
        {
            "allOf": [{"properties": {"b": {}}, "required": ["b"]}],
            "properties": {"a": {}},
            "required": ["a", "c"],
            "patternProperties": {"^x": {}},
            "dependentRequired": {"a": ["z"]},
            "if": {"required": ["q"]},
            "then": {"properties": {"w": {}}, "required": ["w"]},
        },
        {
            "$ref": "#/$defs/x",
            "properties": {"a": {}},
            "required": ["a"],
            "$defs": {"x": {"properties": {"k": {}}, "required": ["k"]}},
        },
        {
            "anyOf": [{"properties": {"p": {}}, "required": ["p"]}],
            "oneOf": [{"properties": {"o": {}}, "required": ["o"]}],
            "properties": {"a": {}},
            "required": ["z", "a"],
            "dependentSchemas": {"a": {"properties": {"m": {}}, "required": ["m"]}},
            "minProperties": 7,
        },
        {"prefixItems": [{"const": 1}], "contains": {"const": 2}, "items": {"maximum": 3}},
    ]
    for schema in schemas * 5:
        other = shuffled_keywords(schema, rng)
        text, others = json.dumps(schema), json.dumps(other)
        assert canonical_schema(text) == canonical_schema(others)
        one, two = JsonSchema(text, approximate=True), JsonSchema(others, approximate=True)
        assert one.shortest() == two.shortest()
        assert one.sample(2, seed=1, random_bytes=30) == two.sample(2, seed=1, random_bytes=30)


def shuffled_keywords(schema: Any, rng: random.Random) -> Any:
    """The schema with the keywords of each subschema in another order."""
    if not isinstance(schema, dict):
        return schema
    items = list(schema.items())
    rng.shuffle(items)

    def inside(name: str, value: Any) -> Any:
        if name in ("properties", "$defs", "patternProperties", "dependentSchemas"):
            return {key: shuffled_keywords(one, rng) for key, one in value.items()}
        if name in ("allOf", "anyOf", "oneOf", "prefixItems"):
            return [shuffled_keywords(one, rng) for one in value]
        return shuffled_keywords(value, rng) if name in ("items", "if", "then") else value

    return {name: inside(name, value) for name, value in items}


@pytest.mark.parametrize(
    "text",
    ['{"a": 1, "a": 2}', "not JSON", "[" * 5000, '{"const": NaN}', '"\\ud800"', "true", "[1, 2]"],
)
def test_a_text_that_has_no_canonical_form_is_itself(text: str) -> None:
    found = canonical_schema(text)
    assert found == canonical_schema(text)
    assert json.loads(found) == json.loads(text) if text in ("true", "[1, 2]") else found


def test_descriptions_that_are_not_plain_have_no_digest() -> None:
    assert description_of(Slow()).digest is None
    assert description_of(list[int]).digest is None
    assert description_of(Regex("a") | Regex("b")).digest is not None


def test_a_thousand_threads_compile_once(monkeypatch: pytest.MonkeyPatch) -> None:
    compiling = Compiling(monkeypatch, lambda: time.sleep(0.3))
    cache = ConstraintCache(BYTE_VOCABULARY)
    found = in_threads(1000, lambda: cache.constraint(SCHEMA))
    assert len({id(one) for one in found}) == 1
    assert compiling.count == 1
    stats = cache.stats()
    assert stats.compiles == stats.misses == 1
    assert stats.hits + stats.waits == 999


def test_tasks_compile_once_without_blocking_the_event_loop(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    went_on = threading.Event()
    waits: list[bool] = []
    # It ends when the event loop has gone on, which a loop that it blocks cannot.
    compiling = Compiling(monkeypatch, lambda: waits.append(went_on.wait(30)))
    cache = ConstraintCache(BYTE_VOCABULARY)

    async def serve() -> set[int]:
        asks = [asyncio.ensure_future(cache.aconstraint(SCHEMA)) for _ in range(200)]
        while not compiling.started.is_set():
            await asyncio.sleep(0.005)
        for _ in range(10):
            await asyncio.sleep(0.005)
        went_on.set()
        return {id(constraint) for constraint in await asyncio.gather(*asks)}

    assert len(asyncio.run(serve())) == 1
    assert compiling.count == 1
    assert waits == [True]


def test_threads_and_tasks_share_a_compilation(monkeypatch: pytest.MonkeyPatch) -> None:
    compiling = Compiling(monkeypatch, lambda: time.sleep(0.2))
    cache = ConstraintCache(BYTE_VOCABULARY)
    found: list[object] = []
    thread = threading.Thread(target=lambda: found.append(cache.constraint(SCHEMA)))
    thread.start()
    assert compiling.started.wait(10)
    found.append(asyncio.run(cache.aconstraint(SCHEMA)))
    thread.join()
    assert found[0] is found[1]
    assert compiling.count == 1


def test_cancelling_a_task_harms_nobody(monkeypatch: pytest.MonkeyPatch) -> None:
    compiling = Compiling(monkeypatch, lambda: time.sleep(0.2))
    cache = ConstraintCache(BYTE_VOCABULARY)

    async def serve() -> list[object]:
        asks = [asyncio.ensure_future(cache.aconstraint(SCHEMA)) for _ in range(10)]
        while not compiling.started.is_set():
            await asyncio.sleep(0.005)
        # The first of them began to compile.
        for ask in asks[:5]:
            ask.cancel()
        return await asyncio.gather(*asks, return_exceptions=True)

    found = asyncio.run(serve())
    assert all(isinstance(one, asyncio.CancelledError) for one in found[:5])
    assert all(isinstance(one, Constraint) for one in found[5:])
    assert compiling.count == 1


def test_an_interrupt_lets_the_next_one_compile(monkeypatch: pytest.MonkeyPatch) -> None:
    interrupted: list[int] = []
    lock = threading.Lock()

    def interrupt_the_first() -> None:
        time.sleep(0.2)
        with lock:
            interrupted.append(1)
            if len(interrupted) <= 2:
                raise KeyboardInterrupt

    compiling = Compiling(monkeypatch, interrupt_the_first)
    cache = ConstraintCache(BYTE_VOCABULARY)
    found = Counter(type(one) for one in in_threads(20, lambda: cache.constraint(SCHEMA)))
    assert found == {KeyboardInterrupt: 2, Constraint: 18}
    assert compiling.count == 3
    assert cache.stats().compiles == 1


def test_a_maker_that_vanished_is_replaced() -> None:
    """An interrupt may come where no handler is in force yet."""
    from formalm.constraint_cache.request import Request

    cache = ConstraintCache(BYTE_VOCABULARY)
    ask = Request(cache._request_limits, None, {})
    ask.describe(SCHEMA)
    making, is_mine = cache._find(ask)  # type: ignore[misc]
    assert is_mine
    del ask, making
    gc.collect()
    begun = time.monotonic()
    assert isinstance(cache.constraint(SCHEMA, timeout_seconds=30), Constraint)
    assert time.monotonic() - begun < 20


HOSTILE: dict[str, tuple[Any, dict[str, Any], type[FormalmError]]] = {
    "a limit": (Regex("(a|b)*c(?!.*a{30})[ab]{9}"), {"state_limit": 3}, LimitError),
    "no member": ({"type": "integer", "minimum": 2, "maximum": 1}, {}, LanguageError),
    "a wrong option": (Regex("a"), {"width": 3}, FormalmError),
    "a deadline": (
        JsonSchema({"type": "string", "pattern": "^(ab)*c$", "minLength": 10**9}, approximate=True),
        {"timeout_seconds": 0.02},
        FormalmError,
    ),
}


@pytest.mark.parametrize("what", HOSTILE)
def test_errors_are_kept_for_a_while(what: str) -> None:
    language, options, kind = HOSTILE[what]
    cache = ConstraintCache(BYTE_VOCABULARY, error_seconds=0.15)
    raised = []
    for _ in range(4):
        with pytest.raises(kind) as caught:
            cache.constraint(language, **options)
        raised.append(caught.value)
    assert len({str(error) for error in raised}) == 1
    # Each has its own traceback.
    assert len({id(error) for error in raised}) == 4
    stats = cache.stats()
    assert (stats.errors, stats.error_hits, stats.compiles) == (1, 3, 0)
    time.sleep(0.2)
    with pytest.raises(kind):
        cache.constraint(language, **options)
    assert cache.stats().errors == 2


def test_errors_need_not_be_kept() -> None:
    cache = ConstraintCache(BYTE_VOCABULARY, error_seconds=0)
    for count in (1, 2):
        with pytest.raises(LanguageError):
            cache.constraint({"const": 1, "enum": [2]})
        assert cache.stats().errors == count


def test_errors_of_many_descriptions_take_little_memory() -> None:
    cache = ConstraintCache(BYTE_VOCABULARY, memory_limit_bytes=1 << 20)
    for at in range(300):
        with pytest.raises(LanguageError):
            cache.constraint({"const": at, "enum": [-1]})
    assert 10 < len(cache._tables.failed) < 100


def test_who_waits_gets_the_error_too(monkeypatch: pytest.MonkeyPatch) -> None:
    compiling = Compiling(monkeypatch, lambda: time.sleep(0.2))
    cache = ConstraintCache(BYTE_VOCABULARY)
    found = in_threads(50, lambda: cache.constraint({"const": 1, "enum": [2]}))
    assert {type(one) for one in found} == {LanguageError}
    assert compiling.count == 1


def test_waiting_ends_at_a_deadline(monkeypatch: pytest.MonkeyPatch) -> None:
    compiling = Compiling(monkeypatch, lambda: time.sleep(1.0))
    cache = ConstraintCache(BYTE_VOCABULARY)
    thread = threading.Thread(target=lambda: cache.constraint(SCHEMA))
    thread.start()
    assert compiling.started.wait(10)
    with pytest.raises(DeadlineError) as caught:
        cache.constraint(SCHEMA, timeout_seconds=0.05)
    assert caught.value.what == "wait"
    with pytest.raises(DeadlineError, match="wait"):
        asyncio.run(cache.aconstraint(SCHEMA, timeout_seconds=0.05))
    thread.join()
    assert cache.constraint(SCHEMA, timeout_seconds=0.05) is cache.constraint(SCHEMA)


def test_a_deadline_of_one_caller_does_not_bind_another() -> None:
    slow = JsonSchema({"const": {f"n{at}": [at] for at in range(1_500)}})
    cache = ConstraintCache(BYTE_VOCABULARY)
    with pytest.raises(DeadlineError):
        cache.constraint(slow, timeout_seconds=0.001)
    with pytest.raises(DeadlineError):
        cache.constraint(slow, timeout_seconds=0.0005)
    assert cache.stats().error_hits <= 1
    assert isinstance(cache.constraint(slow), Constraint)
    assert isinstance(cache.constraint(slow, timeout_seconds=0.001), Constraint)


def test_memory_stays_within_the_limit() -> None:
    limit = 2 << 20
    cache = ConstraintCache(BYTE_VOCABULARY, memory_limit_bytes=limit)
    for at in range(300):
        cache.constraint({"type": "object", "properties": {f"n{at}": {"maxLength": at % 50}}})
        assert cache._tables.bytes <= limit
    stats = cache.stats()
    assert len(cache._tables.turns) == len(cache)
    assert stats.bytes <= limit
    assert 0 < stats.entries < 300
    assert stats.evictions == 300 - stats.entries


def test_constraints_that_grow_are_evicted() -> None:
    cache = ConstraintCache(BYTE_VOCABULARY, memory_limit_bytes=1 << 20)
    grown = cache.constraint({"type": "object"})
    count = 0
    while grown.memory_bytes < 1 << 20:
        count += 1
        matcher = grown.matcher()
        matcher.advance_bytes(f'{{"{count * 7919:0900}":'.encode())
        assert count < 100_000
    for at in range(3):
        cache.constraint({"const": at})
    stats = cache.stats()
    assert stats.bytes <= 1 << 20
    assert stats.evicted_in_use == 1
    # It is in use, so there is one of it still.
    assert cache.constraint({"type": "object"}) is grown
    assert cache.stats().compiles == 4


def test_evicted_constraints_return_if_still_in_use_and_are_recompiled_otherwise() -> None:
    cache = ConstraintCache(BYTE_VOCABULARY, memory_limit_bytes=1)
    one = cache.constraint(SCHEMA)
    assert cache.stats().entries == 0
    matcher = one.matcher()
    first = id(one)
    del one
    gc.collect()
    assert id(cache.constraint(SCHEMA)) == first
    assert cache.stats().compiles == 1
    del matcher
    gc.collect()
    cache.constraint(SCHEMA)
    assert cache.stats().compiles == 2


def test_constraints_nobody_asks_for_go_after_a_while() -> None:
    cache = ConstraintCache(BYTE_VOCABULARY, max_idle_seconds=0.1)
    cache.constraint(Regex("a"))
    assert cache.stats().entries == 1
    time.sleep(0.15)
    assert cache.stats().entries == 0
    cache.constraint(Regex("b"))
    cache.clear()
    assert len(cache) == 0


def test_long_descriptions_are_refused() -> None:
    cache = ConstraintCache(BYTE_VOCABULARY, max_description_bytes=1000)
    assert cache.constraint({"const": "x" * 900}).memory_bytes
    long: list[Any] = [
        {"const": "x" * 1000},
        JsonSchema({"const": "x" * 1000}),
        Regex("x" * 1001),
        Choice(["x" * 501, "y" * 501]),
        StringLiteral("x" * 600) | StringLiteral("y" * 600),
    ]
    for language in long:
        with pytest.raises(LimitError, match="bytes of description, but the limit is 1,000"):
            cache.constraint(language)
        with pytest.raises(LimitError, match="bytes of description"):
            asyncio.run(cache.aconstraint(language))
    assert cache.stats().misses == 1


def test_events_report_hits_misses_and_evictions() -> None:
    events: list[CacheEvent] = []
    cache = ConstraintCache(BYTE_VOCABULARY, memory_limit_bytes=50_000, on_event=events.append)
    cache.constraint(Regex("a"))
    with pytest.raises(LanguageError):
        cache.constraint({"const": 1, "enum": [2]})
    with pytest.raises(LanguageError):
        cache.constraint({"const": 1, "enum": [2]})
    for pattern in ("b", "c", "d"):
        held = cache.constraint(Regex(pattern))
        assert cache.constraint(Regex(pattern)) is held
    kinds = Counter(event.kind for event in events)
    assert kinds == {
        "miss": 5,
        "compile": 4,
        "error": 1,
        "error_hit": 1,
        "hit": 3,
        "eviction": kinds["eviction"],
    }
    assert kinds["eviction"] == cache.stats().evictions >= 1
    compiles = [event for event in events if event.kind == "compile"]
    assert all(event.seconds > 0 and event.memory_bytes > 0 for event in compiles)
    assert all(len(event.key) == 64 for event in events)


def test_a_failing_hook_affects_only_its_caller() -> None:
    broken = True

    def hook(event: CacheEvent) -> None:
        if broken:
            raise RuntimeError(event.kind)

    cache = ConstraintCache(BYTE_VOCABULARY, on_event=hook)
    with pytest.raises(RuntimeError, match="miss"):
        cache.constraint(SCHEMA)
    with pytest.raises(RuntimeError, match="hit"):
        cache.constraint(SCHEMA)
    broken = False
    assert isinstance(cache.constraint(SCHEMA), Constraint)
    assert cache.stats().compiles == 1


@pytest.mark.parametrize(
    "options",
    [
        {"memory_limit_bytes": 0},
        {"memory_limit_bytes": True},
        {"timeout_seconds": -1},
        {"error_seconds": -1},
        {"error_seconds": "60"},
        {"max_idle_seconds": 0},
        {"max_description_bytes": None},
        {"on_event": 5},
    ],
)
def test_wrong_options_are_refused(options: dict[str, Any]) -> None:
    with pytest.raises(ArgumentError, match=next(iter(options))):
        ConstraintCache(BYTE_VOCABULARY, **options)


def test_wrong_arguments_are_refused() -> None:
    with pytest.raises(ArgumentError, match="vocabulary"):
        ConstraintCache([b"a"])  # type: ignore[arg-type]
    cache = ConstraintCache(BYTE_VOCABULARY)
    with pytest.raises(
        ArgumentError, match="options must be those of Constraint, got tokenisation"
    ):
        cache.constraint(Regex("a"), tokenisation="all")
    with pytest.raises(ArgumentError, match="timeout_seconds must be"):
        cache.constraint(Regex("a"), timeout_seconds=0)


@needs_fork
def test_a_forked_child_can_use_the_cache() -> None:
    run_python(
        """
        import os, signal, threading, time
        from formalm import Regex, Vocabulary
        from formalm.constraint_cache import ConstraintCache
        from formalm.constraint_cache import request
        from formalm.constraint import Constraint
        cache = ConstraintCache(Vocabulary.from_tokens([b"a", b"b"]))
        kept = cache.constraint(Regex("a+"))
        started, slow = threading.Event(), True
        def compiled(*arguments, **options):
            started.set()
            while slow:
                time.sleep(0.01)
            return Constraint(*arguments, **options)
        class Made(Constraint):
            def __new__(cls, *arguments, **options):
                return compiled(*arguments, **options)
        request.Constraint = Made
        thread = threading.Thread(target=lambda: cache.constraint(Regex("b+")))
        thread.start()
        started.wait()
        cache._lock.acquire()
        pid = os.fork()
        if pid == 0:
            signal.alarm(20)
            slow = False
            assert cache.constraint(Regex("a+")) is kept
            assert cache.constraint(Regex("b+")).matcher().mask().tolist() == [False, True]
            import asyncio
            asyncio.run(cache.aconstraint({"const": 1}))
            os._exit(0)
        cache._lock.release()
        _, status = os.waitpid(pid, 0)
        slow = False
        thread.join()
        assert status == 0, status
        """,
        timeout=40,
    ).check()


FLAT = """
import sys
from formalm import Vocabulary
from formalm.constraint_cache import ConstraintCache
vocabulary = Vocabulary.from_tokens([bytes([byte]) for byte in range(256)])
cache = ConstraintCache(vocabulary, memory_limit_bytes=8 << 20)
def resident():
    with open("/proc/self/status") as status:
        return next(int(line.split()[1]) << 10 for line in status if line.startswith("VmRSS"))
count = int(sys.argv[1])
half = 0
for at in range(count):
    properties = {f"name{at}": {"type": "string"}, "b": {"minimum": at}}
    schema = {"type": "object", "properties": properties}
    if at % 10 == 0:
        schema = {"const": at, "enum": [-1]}
    try:
        matcher = cache.constraint(schema).matcher()
        matcher.advance_bytes(b'{"name')
        matcher.mask()
    except ValueError:
        pass
    if at == count // 2:
        half = resident()
stats = cache.stats()
assert stats.bytes <= 8 << 20
assert stats.compiles == count - count // 10
print(resident() - half)
"""


@needs_limits
@pytest.mark.parametrize("count", [2_000, pytest.param(100_000, marks=pytest.mark.slow)])
def test_many_schemas_take_no_more_memory(count: int) -> None:
    grown = int(run_python(FLAT, str(count), timeout=280).check().stdout)
    assert grown < 4 << 20


INTERRUPTED = """
import random, signal, threading
from formalm import Vocabulary
from formalm.constraint_cache import ConstraintCache
cache = ConstraintCache(Vocabulary.from_tokens([bytes([byte]) for byte in range(256)]))
drawn = random.Random(5)
def interrupt(*_):
    raise KeyboardInterrupt
signal.signal(signal.SIGALRM, interrupt)
interrupts = 0
for at in range(300):
    schema = {"properties": {f"n{at}": {"pattern": "^(ab|[a-f]{3,9})*c$"}, "b": {"format": "date"}}}
    got = []
    thread = threading.Thread(
        target=lambda: got.append(cache.constraint(schema, timeout_seconds=60))
    )
    if at % 2:
        thread.start()
    try:
        try:
            signal.setitimer(signal.ITIMER_REAL, drawn.uniform(1e-5, 3e-3))
            cache.constraint(schema)
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0)
    except KeyboardInterrupt:
        interrupts += 1
    if not at % 2:
        thread.start()
    thread.join()
    assert len(got) == 1, at
assert not cache._tables.compilations
assert cache.stats().compiles >= 300
print(interrupts)
"""


@pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="the platform has no timers")
def test_interrupts_at_any_time_leave_nobody_waiting() -> None:
    ended = run_python(INTERRUPTED, timeout=120).check()
    assert int(ended.stdout) > 10


def test_a_cached_constraint_does_not_wait_for_another_compilation() -> None:
    cache = ConstraintCache(BYTE_VOCABULARY, timeout_seconds=2.0)
    kept = cache.constraint({"const": 0})

    def hard(number: int) -> JsonSchema:
        schema = {"type": "string", "pattern": "^(ab)*c$", "minLength": 10**9 + number}
        return JsonSchema(schema, approximate=True)

    async def serve() -> bool:
        busy = [asyncio.create_task(cache.aconstraint(hard(number))) for number in range(8)]
        await asyncio.sleep(0.05)
        found = await cache.aconstraint({"const": 0}, timeout_seconds=1.0)
        waiting = any(not one.done() for one in busy)
        await asyncio.gather(*busy, return_exceptions=True)
        return found is kept and waiting

    assert asyncio.run(serve())
