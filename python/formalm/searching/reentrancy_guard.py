"""A non-reentrant guard: refuses a second caller while a step is in progress."""

from __future__ import annotations

from threading import Lock

from formalm.errors import ConcurrencyError

__all__ = ["ReentrancyGuard"]


class ReentrancyGuard:
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
            hint = "create one per thread"
            raise ConcurrencyError(
                f"{self._what} must not be used by several callers at once", hint=hint
            )

    def __exit__(self, *error: object) -> None:
        self._lock.release()
