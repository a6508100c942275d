"""Locks on the items of a run: byte-range locks of a file, which the system releases at exit.

They keep two processes from doing the same work. Correctness does not depend on them: an answer
that was computed twice is stored once.
"""

from __future__ import annotations

import errno
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from formalm.errors import SuiteError

__all__ = ["ItemLocks"]

PLACES = 1 << 30
HELD = (errno.EACCES, errno.EAGAIN, errno.EWOULDBLOCK, errno.EDEADLK)


class ItemLocks:
    """The locks on the items of a run.

    Parameters
    ----------
    path
        The lock file; it is created if necessary, and stays empty.

    Raises
    ------
    SuiteError
        If it cannot be created.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        try:
            self._file = os.open(path, os.O_RDWR | os.O_CREAT, 0o644)
        except OSError as error:
            raise SuiteError(f"cannot write {str(path)!r}: {error.strerror}") from None

    def close(self) -> None:
        """Releases all locks."""
        os.close(self._file)

    @contextmanager
    def claim(self, key: str) -> Iterator[bool]:
        """Locks an item; returns whether no other process holds it.

        Parameters
        ----------
        key
            Hexadecimal digits.

        Raises
        ------
        SuiteError
            If the file system does not support locks. Otherwise two processes would answer the same
            item, or one would mistake the failure for another's lock and wait forever.
        """
        # Two items may share a byte; then one waits for the other.
        place = int(key[:12], 16) % PLACES
        try:
            mine = _lock(self._file, place)
        except OSError as error:
            raise SuiteError(
                f"cannot lock {str(self.path)!r}: {error.strerror or error}",
                hint="use a directory on a file system with locks, such as a local disk",
            ) from None
        try:
            yield mine
        finally:
            if mine:
                # The lock ends with the process anyway; a stored answer must not be lost.
                with suppress(OSError):
                    _unlock(self._file, place)


def _is_held(error: OSError) -> bool:
    """Returns whether a lock failed because another process holds it, not for lack of support."""
    return error.errno in HELD


if sys.platform == "win32":
    import msvcrt

    def _lock(file: int, place: int) -> bool:
        os.lseek(file, place, os.SEEK_SET)
        try:
            msvcrt.locking(file, msvcrt.LK_NBLCK, 1)
        except OSError as error:
            if not _is_held(error):
                raise
            return False
        return True

    def _unlock(file: int, place: int) -> None:
        os.lseek(file, place, os.SEEK_SET)
        msvcrt.locking(file, msvcrt.LK_UNLCK, 1)

else:
    import fcntl

    def _lock(file: int, place: int) -> bool:
        try:
            fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB, 1, place)
        except OSError as error:
            if not _is_held(error):
                raise
            return False
        return True

    def _unlock(file: int, place: int) -> None:
        fcntl.lockf(file, fcntl.LOCK_UN, 1, place)
