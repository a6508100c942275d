"""Who works on what: locks on places of a file, which a process that dies lets go.

They keep two processes from doing the same work. Nothing depends on them being seen: an answer that
was computed twice is kept once.
"""

from __future__ import annotations

import errno
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from formalm.errors import SuiteError

__all__ = ["Claims"]

PLACES = 1 << 30
HELD = (errno.EACCES, errno.EAGAIN, errno.EWOULDBLOCK, errno.EDEADLK)


class Claims:
    """The claims on the items of a run.

    Parameters
    ----------
    path
        The file; it is made if there is none, and stays empty.

    Raises
    ------
    SuiteError
        If it cannot be made.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        try:
            self._file = os.open(path, os.O_RDWR | os.O_CREAT, 0o644)
        except OSError as error:
            raise SuiteError(f"cannot write {str(path)!r}: {error.strerror}") from None

    def close(self) -> None:
        """Let go of everything."""
        os.close(self._file)

    @contextmanager
    def claim(self, key: str) -> Iterator[bool]:
        """Claim an item; whether nobody else has it.

        Parameters
        ----------
        key
            Hexadecimal digits.

        Raises
        ------
        SuiteError
            If the file system cannot lock. Two processes would then ask the same item, and one that
            took a failure for another's claim would wait for it forever.
        """
        # Two items can share a place; then one waits for the other, and nothing worse.
        place = int(key[:12], 16) % PLACES
        try:
            mine = _lock(self._file, place)
        except OSError as error:
            raise SuiteError(
                f"cannot lock {str(self.path)!r}: {error.strerror or error}",
                hint="take a directory whose file system has locks, such as one of a local disk",
            ) from None
        try:
            yield mine
        finally:
            if mine:
                # The lock ends with the process anyway; an answer that is kept must not be lost.
                with suppress(OSError):
                    _unlock(self._file, place)


def _is_held(error: OSError) -> bool:
    """Whether a lock failed because another process has it, and not because there are no locks."""
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
