"""A non-reentrant guard: refuses a second caller while a step is in progress."""

from __future__ import annotations

from threading import Lock

from formalm.errors import ConcurrencyError

__all__ = ["Alone"]


class Alone:
    """A context manager that admits one caller at a time and refuses any other.

    Raises
    ------
    ConcurrencyError
        If another thread is inside, or if a user's function called from inside enters again.
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
