"""Comparison of a bounded number with a threshold: true, an error, or inconclusive."""

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
    """The bounds allow both outcomes: the assertion neither holds nor fails. No test passes with
    it.

    It is not an AssertionError, so code that expects a failure does not mistake it for one.
    """


OPEN: ContextVar[list[Claim] | None] = ContextVar("claims that were not compared", default=None)


@contextmanager
def open_claims() -> Iterator[list[Claim]]:
    """Collects the claims made in its context that were never compared."""
    token = OPEN.set([])
    try:
        claims = OPEN.get()
        assert claims is not None  # it was set
        yield claims
    finally:
        OPEN.reset(token)


class Claim:
    """A number about a model, to be compared with a threshold by ``<``, ``<=``, ``>``, ``>=``,
    ``==``.

    A comparison that holds for every value within the bounds is true. One that fails for every
    value raises an AssertionError, and any other :class:`Inconclusive`. Work continues until the
    comparison is decided or a limit is reached.

    Parameters
    ----------
    name
        The name of the number.
    closing
        Intervals as work proceeds, each inside the previous one.
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
        raise ArgumentError(
            "a claim must be compared by <, <=, >, >= or ==, because a bound never proves !="
        )

    def __bool__(self) -> bool:
        __tracebackhide__ = True
        raise ArgumentError(
            f"{self.name} must be compared with a number", hint="assert_mass(query) < 1e-4"
        )

    def _told(self, wanted: str, judge: Callable[[float, float], bool | None]) -> bool:
        __tracebackhide__ = True
        claims = OPEN.get()
        if claims is not None:
            claims[:] = [one for one in claims if one is not self]
        low, high, how = 0.0, math.inf, "nothing known"
        said = judge(low, high)
        for ends, reached in self.closing():
            (low, high), how = ends, reached
            said = judge(low, high)
            if said is not None:
                break
        found = f"{self.name} must be {wanted}, got {_shown(low, high)} ({how})"
        if said is None:
            raise Inconclusive(f"inconclusive: {found}")
        if not said:
            raise AssertionError(found)
        return True

    def __repr__(self) -> str:
        return f"Claim({self.name!r})"


def _line(value: object) -> float:
    """Returns the threshold of a comparison."""
    __tracebackhide__ = True
    if isinstance(value, bool) or not isinstance(value, (int, float)) or math.isnan(value):
        raise ArgumentError(f"a claim must be compared with a number, got {value!r:.60}")
    return float(value)


def _said(holds: bool, fails: bool) -> bool | None:
    return True if holds else False if fails else None


def _shown(low: float, high: float) -> str:
    return f"{low:.4g}" if low == high else f"{low:.4g} … {high:.4g}"
