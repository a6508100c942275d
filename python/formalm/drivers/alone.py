"""One caller at a time."""

from __future__ import annotations

from threading import Lock

from formalm.errors import ConcurrencyError

__all__ = ["Alone"]


class Alone:
    """A step that one caller takes from its beginning to its end; a second one is refused.

    Raises
    ------
    ConcurrencyError
        If another thread is at it, or the step has come back to itself through a function of the
        user's.
    """

    def __init__(self, what: str) -> None:
        self._what = what
        self._lock = Lock()

    def __enter__(self) -> None:
        if not self._lock.acquire(blocking=False):
            hint = "give each thread one of its own"
            raise ConcurrencyError(f"{self._what} is used twice at once", hint=hint)

    def __exit__(self, *error: object) -> None:
        self._lock.release()
