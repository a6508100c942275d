"""Ctrl-C ends every long call within a second, and sizes and depths end in typed errors."""

import signal
from collections.abc import Callable
from typing import Dict, List, Optional, Tuple  # noqa: UP035 - what users nest

import pytest

from formalm import (
    Constraint,
    LimitError,
    PythonType,
    Regex,
    Vocabulary,
    fill_bitmasks,
    new_bitmask,
)
from formalm.errors import FormalmError
from tests.support.processes import needs_limits, run_python

PREAMBLE = """
import os, random, signal, sys, threading, time
from formalm import *
from formalm import grammars
from formalm.models.canary import canary
V = canary().vocabulary
drawn = random.Random(0)
def over(language, **options):
    return Constraint(language, V, **options)
def objects(count):
    members = {f"p{i}": {"pattern": f"^a{i}[a-z]{{3,{i % 50 + 3}}}$"} for i in range(count)}
    return {"type": "object", "properties": members, "required": list(members)}
"""

# Each takes many seconds, or for ever, unless it is interrupted.
LONG = {
    "a long text": ("text = 'ab' * 200_000_000; r = Regex('(a|b)*')", "r.matches(text)"),
    "a text in ever new states": (
        "text = ''.join(drawn.choices('ab', k=4_000_000));"
        " r = Regex('(?:a|b)*a(?:a|b){300}(?:ab|b){0,200}')",
        "r.matches(text)",
    ),
    "a search for a live state": (
        "text = ''.join(drawn.choices('abc', k=200_000));"
        " r = Regex('.*a.{200}b.*') & Regex('.*b.{201}a.*') & ~Regex('.*a.{199}c.*')",
        "r.matches(text)",
    ),
    "a text that may begin members": (
        "text = 'ab' * 200_000_000; r = Regex('(a|b)*c')",
        "r.is_viable(text)",
    ),
    "bytes of a regex": (
        "text = b'ab' * 100_000_000; m = over(Regex('(a|b)*')).matcher()",
        "m.advance_bytes(text)",
    ),
    "bytes of a schema": (
        "text = b'[' + b'{\"a\":[1,2]},' * 1_000_000; m = over(JsonSchema({})).matcher()",
        "m.advance_bytes(text)",
    ),
    "bytes of a grammar": (
        "text = b'[' + b'{\"a\":[1,2]},' * 8_000_000; m = over(grammars.JSON).matcher()",
        "m.advance_bytes(text)",
    ),
    "tokens": (
        "ids = V.encode('ab' * 50) * 40_000; m = over(Regex('(?s:.)*')).matcher()",
        "[m.advance_many(ids) for _ in range(50)]",
    ),
    "a comparison": (
        "a, b = (Regex(f'(?:a|b)*{x}(?:a|b){{17}}') for x in 'ab')",
        "a.equivalent(b)",
    ),
    "many strings": (
        "texts = [''.join(drawn.choices('abcdefgh', k=20)) for _ in range(400_000)]",
        "Choice(texts).matches('a')",
    ),
    "a schema of many patterns": ("s = objects(3000)", "over(JsonSchema(s)).matcher().bitmask()"),
    "tokenizations": ("", "[V.tokenizations('aaaa' * 1000) for _ in range(99)]"),
}


QUICK = ("a search for a live state", "bytes of a regex", "bytes of a schema", "a comparison")


@needs_limits
@pytest.mark.skipif(not hasattr(signal, "pthread_kill"), reason="the platform sends no signals")
@pytest.mark.parametrize(
    "name", [one if one in QUICK else pytest.param(one, marks=pytest.mark.slow) for one in LONG]
)
def test_ctrl_c_ends_a_long_call_within_a_second(name: str) -> None:
    before, call = LONG[name]
    program = f"""{PREAMBLE}
{before}
sent = []
def send():
    time.sleep(0.3)
    sent.append((time.monotonic(), time.process_time()))
    os.kill(os.getpid(), signal.SIGINT)
thread = threading.Thread(target=send, daemon=True)
try:
    thread.start()
    {call}
    time.sleep(1)
    print("ended by itself")
except KeyboardInterrupt:
    waited = time.monotonic() - sent[0][0]
    # A busy machine lets this process wait; what it computed tells.
    worked = time.process_time() - sent[0][1]
    assert min(waited, worked) < 1, f"{{waited:.2f}} s, {{worked:.2f}} s of work"
    print("interrupted")
"""
    ended = run_python(program, timeout=60).check()
    assert ended.stdout.strip() == "interrupted"


@pytest.mark.parametrize("depth", [300, 3_000, 30_000])
@pytest.mark.parametrize(
    "nest",
    [
        pytest.param(lambda inner: List[inner], id="List"),  # noqa: UP006
        pytest.param(lambda inner: list[inner], id="list"),
        pytest.param(lambda inner: Dict[str, inner], id="Dict"),  # noqa: UP006
        pytest.param(lambda inner: Optional[Tuple[inner, int]], id="Optional"),  # noqa: UP006, UP045
        pytest.param(lambda inner: tuple[inner, ...], id="tuple"),
    ],
)
def test_an_annotation_that_is_nested_too_deeply_is_refused(
    nest: Callable[[object], object], depth: int
) -> None:
    annotation: object = int
    try:
        for _ in range(depth):
            annotation = nest(annotation)
    except RecursionError:
        pytest.skip("the typing module itself cannot nest so deeply")
    with pytest.raises(LimitError, match="levels of nesting"):
        PythonType(annotation)


def test_an_annotation_of_fifty_levels_is_a_type() -> None:
    annotation: object = int
    for _ in range(50):
        annotation = List[annotation]  # noqa: UP006
    made = PythonType(annotation)
    assert made.matches("[" * 50 + "1" + "]" * 50)
    assert "List" in repr(made)


def test_classes_that_refer_to_one_another_too_deeply_are_refused() -> None:
    pydantic = pytest.importorskip("pydantic")
    inner: type = int
    for at in range(2_000):
        inner = pydantic.create_model(f"Level{at}", below=(inner, ...))
        if at % 500 == 499:
            try:
                PythonType(inner)
            except FormalmError:
                return


VOCABULARY = Vocabulary.from_tokens([b"a", b"b", None], [2])
CONSTRAINT = Constraint(Regex("a+"), VOCABULARY)

SIZES: dict[str, Callable[[int], object]] = {
    "rows of a bitmask": lambda n: new_bitmask(n, 100),
    "width of a bitmask": lambda n: new_bitmask(1, n),
    "row": lambda n: CONSTRAINT.matcher().fill_bitmask(new_bitmask(1, 3), n),
    "rows": lambda n: fill_bitmasks([CONSTRAINT.matcher()], new_bitmask(1, 3), [n]),
    "width": lambda n: Constraint(Regex("a"), VOCABULARY, width=n),
    "repetitions": lambda n: Regex("a").repeat(n, None),
    "steps back": lambda n: CONSTRAINT.matcher().rollback(n),
    "token": lambda n: CONSTRAINT.matcher().advance(n),
    "end token": lambda n: Vocabulary.from_tokens([b"a"], [n]),
}


@pytest.mark.parametrize("size", [2**40, 2**63, 2**64, 10**30, -1, -(2**70)])
@pytest.mark.parametrize("name", SIZES)
def test_a_size_that_cannot_be_is_a_typed_error(name: str, size: int) -> None:
    with pytest.raises(FormalmError):
        SIZES[name](size)


@needs_limits
def test_a_bitmask_that_does_not_fit_in_memory_is_a_typed_error() -> None:
    program = """
        from formalm import LimitError, new_bitmask
        try:
            new_bitmask(1 << 14, 1 << 24)
        except LimitError as error:
            print(error.what)
        """
    assert run_python(program, memory_bytes=1 << 30).check().stdout.strip() == "bytes"


def test_an_invalid_number_of_threads_is_refused() -> None:
    ended = run_python("import formalm", env={"FORMALM_THREADS": "many"})
    assert ended.code == 1
    assert "FORMALM_THREADS must be a number" in ended.stderr
    run_python("import formalm", env={"FORMALM_THREADS": "2"}).check()
