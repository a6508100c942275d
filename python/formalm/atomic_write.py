"""File paths and atomic file writes: whole or not at all."""

from __future__ import annotations

import contextlib
import os
import secrets
import stat
from collections.abc import Callable
from os import PathLike
from typing import Any, BinaryIO

from formalm.errors import ArgumentError

__all__ = ["path_of", "write_atomically"]


def path_of(value: Any) -> str:
    """Returns a path as a string.

    Raises
    ------
    ArgumentError
        If it is not a path; a number would be taken for an open file descriptor.
    """
    path = os.fspath(value) if isinstance(value, (str, PathLike)) else None
    if not isinstance(path, str):
        raise ArgumentError(f"path must be a string or a Path, got {value!r:.80}")
    if not path or "\0" in path:
        raise ArgumentError(
            f"path must be a nonempty string without null characters, got {path!r:.80}"
        )
    return path


def write_atomically(
    path: str | PathLike[str], write: Callable[[BinaryIO], object], *, first: bool = False
) -> None:
    """Writes a file completely or not at all.

    It is written under a temporary name in the same folder, synced to disk, and renamed. A symbolic
    link stays, and its target is written.

    Parameters
    ----------
    path, write
        The file, and the function that writes its content.
    first
        If True, a file that another process wrote meanwhile is kept.

    Raises
    ------
    ArgumentError
        If the path is not a regular file but, for example, a device, which a renamed file would
        replace.
    OSError
        If it cannot be written; the previous file is unchanged.
    """
    target = os.path.realpath(path_of(path))
    mode = _mode(target)
    partial = os.path.join(os.path.dirname(target), f".{secrets.token_hex(8)}.part")
    try:
        with open(partial, "xb") as file:
            write(file)
            file.flush()
            os.fsync(file.fileno())
        if mode is not None:
            os.chmod(partial, mode)
        if first:
            with contextlib.suppress(FileExistsError):
                os.link(partial, target)
        else:
            os.replace(partial, target)
    finally:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(partial)


def _mode(path: str) -> int | None:
    """Returns the permissions of the existing file; None if there is none."""
    try:
        found = os.stat(path)
    except FileNotFoundError:
        return None
    if not stat.S_ISREG(found.st_mode):
        raise ArgumentError(
            f"cannot write {path!r}: it exists and is not a regular file",
            hint="pass the path of a regular file or a path that does not exist yet",
        )
    return stat.S_IMODE(found.st_mode)
