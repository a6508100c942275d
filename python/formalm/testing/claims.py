"""Numbers about a model that are compared with a line, and say when it cannot be told."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from formalm.errors import ArgumentError

__all__ = ["Claim", "Ends", "Inconclusive", "open_claims"]

Ends = tuple[float, float]
"""Between what a number is known to be."""


class Inconclusive(Exception):  # noqa: N818 - it is an outcome, and says that nothing is wrong
    """What is known allows both: it neither holds nor fails. No test passes with it.

    It is no AssertionError, so that what expects a failure does not take it for one.
    """


OPEN: ContextVar[list[Claim] | None] = ContextVar("claims that were not compared", default=None)


@contextmanager
def open_claims() -> Iterator[list[Claim]]:
    """The claims made meanwhile that were compared with nothing: they say nothing."""
    token = OPEN.set([])
    try:
        claims = OPEN.get()
        assert claims is not None  # it was set
        yield claims
    finally:
        OPEN.reset(token)


class Claim:
    """A number about a model, to be compared with a line: ``<``, ``<=``, ``>``, ``>=``, ``==``.

    A comparison that holds for all that is known is true. One that fails for all of it raises an
    AssertionError, and any other :class:`Inconclusive`; work goes on until it can be told, or a
    limit is reached.

    Parameters
    ----------
    name
        What the number is.
    closing
        Intervals, each in the last, as work goes on.
    """

    __hash__ = None  # type: ignore[assignment]

    def __init__(self, name: str, closing: Callable[[], Iterator[tuple[Ends, str]]]) -> None:
        self.name, self.closing = name, closing
        claims = OPEN.get()
        if claims is not None:
            claims.append(self)

    def __lt__(self, line: float) -> bool:
        __tracebackhide__ = True
        line = _line(line)
        return self._told(f"< {line:g}", lambda low, high: _said(high < line, low >= line))

    def __le__(self, line: float) -> bool:
        __tracebackhide__ = True
        line = _line(line)
        return self._told(f"<= {line:g}", lambda low, high: _said(high <= line, low > line))

    def __gt__(self, line: float) -> bool:
        __tracebackhide__ = True
        line = _line(line)
        return self._told(f"> {line:g}", lambda low, high: _said(low > line, high <= line))

    def __ge__(self, line: float) -> bool:
        __tracebackhide__ = True
        line = _line(line)
        return self._told(f">= {line:g}", lambda low, high: _said(low >= line, high < line))

    def __eq__(self, line: object) -> bool:
        __tracebackhide__ = True
        value = _line(line)
        return self._told(
            f"== {value:g}",
            lambda low, high: _said(low == value == high, not low <= value <= high),
        )

    def __ne__(self, line: object) -> bool:
        __tracebackhide__ = True
        raise ArgumentError("a claim is compared by <, <=, >, >= or ==: a bound says != of nothing")

    def __bool__(self) -> bool:
        __tracebackhide__ = True
        raise ArgumentError(
            f"{self.name} is compared with nothing", hint="assert_mass(query) < 1e-4"
        )

    def _told(self, wanted: str, judge: Callable[[float, float], bool | None]) -> bool:
        __tracebackhide__ = True
        claims = OPEN.get()
        if claims is not None:
            claims[:] = [one for one in claims if one is not self]
        low, high, how = 0.0, math.inf, "nothing is known"
        said = judge(low, high)
        for ends, reached in self.closing():
            (low, high), how = ends, reached
            said = judge(low, high)
            if said is not None:
                break
        found = f"{self.name} is {_shown(low, high)} ({how}), and should be {wanted}"
        if said is None:
            raise Inconclusive(f"inconclusive: {found}")
        if not said:
            raise AssertionError(found)
        return True

    def __repr__(self) -> str:
        return f"Claim({self.name!r})"


def _line(value: object) -> float:
    """What a claim is compared with."""
    __tracebackhide__ = True
    if isinstance(value, bool) or not isinstance(value, (int, float)) or math.isnan(value):
        raise ArgumentError(f"a claim is compared with a number, not {value!r:.60}")
    return float(value)


def _said(holds: bool, fails: bool) -> bool | None:
    return True if holds else False if fails else None


def _shown(low: float, high: float) -> str:
    return f"{low:.4g}" if low == high else f"{low:.4g} … {high:.4g}"
