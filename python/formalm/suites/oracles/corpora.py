"""Membership in large sets of strings: Bloom filters, and suffix-array indexes of corpora."""

from __future__ import annotations

import math
from collections.abc import Iterable
from hashlib import blake2b
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from formalm.atomic_write import write_atomically
from formalm.errors import ArgumentError, SuiteError

__all__ = ["Bloom", "CorpusIndex"]

BLOOM = b"formalm-bloom 1\n"
CORPUS = b"formalm-corpus 1\n"
MOST_BYTES = 1 << 28


class Bloom:
    """A Bloom filter of strings: never denies a member, and rarely affirms another string.

    Parameters
    ----------
    bits
        ``(bytes,)``, ``uint8``.
    hashes
        Number of hash functions.

    Examples
    --------
    >>> from formalm.suites import Bloom
    >>> known = Bloom.of(["a.example", "b.example"], false_positives=1e-6)
    >>> "a.example" in known, "c.example" in known
    (True, False)
    """

    def __init__(self, bits: npt.NDArray[np.uint8], hashes: int) -> None:
        self.bits, self.hashes = bits, hashes

    @classmethod
    def of(cls, texts: Iterable[str], *, false_positives: float = 1e-4) -> Bloom:
        """Creates a filter.

        Parameters
        ----------
        texts
            The members.
        false_positives
            The approximate share of other strings that it takes for members.

        Raises
        ------
        ArgumentError
            If the share is not between 0 and 1.
        """
        if not 0 < false_positives < 1:
            raise ArgumentError(f"false_positives must be between 0 and 1, got {false_positives!r}")
        listed = list(texts)
        per_text = -math.log(false_positives) / math.log(2) ** 2
        size = max(64, math.ceil(per_text * max(1, len(listed)) / 8))
        made = cls(np.zeros(size, np.uint8), max(1, round(per_text * math.log(2))))
        for text in listed:
            places = made._places(text)
            np.bitwise_or.at(made.bits, places >> 3, (1 << (places & 7)).astype(np.uint8))
        return made

    def __contains__(self, text: object) -> bool:
        places = self._places(str(text))
        return bool(np.all(self.bits[places >> 3] >> (places & 7) & 1))

    def _places(self, text: str) -> npt.NDArray[np.int64]:
        # Two halves of one digest generate all hashes (Kirsch and Mitzenmacher, 2006).
        digest = blake2b(text.encode(), digest_size=16).digest()
        first, step = int.from_bytes(digest[:8], "little"), int.from_bytes(digest[8:], "little") | 1
        size = 8 * len(self.bits)
        return np.array([(first + k * step) % (1 << 64) % size for k in range(self.hashes)])

    def write(self, path: str | PathLike[str]) -> None:
        """Writes the filter to a file.

        Raises
        ------
        SuiteError
            If it cannot be written.
        """
        head = BLOOM + self.hashes.to_bytes(4, "little") + len(self.bits).to_bytes(8, "little")
        _write(Path(path), head + self.bits.tobytes())

    @classmethod
    def read(cls, path: str | PathLike[str]) -> Bloom:
        """Reads a file of :meth:`write`.

        Raises
        ------
        SuiteError
            If it cannot be read, or is not a filter.
        """
        data = _read(Path(path), BLOOM)
        hashes, size = int.from_bytes(data[:4], "little"), int.from_bytes(data[4:12], "little")
        if not 1 <= hashes <= 1000 or size != len(data) - 12 or size == 0:
            raise SuiteError(f"{str(path)!r} is damaged")
        return cls(np.frombuffer(data, np.uint8, offset=12), hashes)


class CorpusIndex:
    """A suffix array of a text, which finds any substring.

    Parameters
    ----------
    data
        The text.
    order
        ``(len(data),)``: the positions of its suffixes, in sorted order.

    Examples
    --------
    >>> from formalm.suites import CorpusIndex
    >>> index = CorpusIndex.of("one ring to rule them all")
    >>> "to rule" in index, "two" in index
    (True, False)
    """

    def __init__(self, data: bytes, order: npt.NDArray[np.int64]) -> None:
        self.data, self.order = data, order

    @classmethod
    def of(cls, text: str | bytes) -> CorpusIndex:
        """Creates an index.

        Parameters
        ----------
        text
            At most 256 MiB; building takes about 40 bytes of memory per byte.

        Raises
        ------
        ArgumentError
            If it is larger.
        """
        data = text.encode() if isinstance(text, str) else text
        if len(data) > MOST_BYTES:
            raise ArgumentError(
                f"an index must have at most {MOST_BYTES:,} bytes, got {len(data):,}",
                hint="index parts of the corpus, or build a Bloom filter of the strings to look up",
            )
        ranks = np.frombuffer(data, np.uint8).astype(np.int64)
        size, step = len(ranks), 1
        order = np.argsort(ranks, kind="stable")
        # Prefix doubling: sort by the ranks of both halves (Manber and Myers).
        while size > 1:
            second = np.full(size, -1)
            if step < size:
                second[: size - step] = ranks[step:]
            order = np.lexsort((second, ranks))
            new = np.r_[True, (np.diff(ranks[order]) != 0) | (np.diff(second[order]) != 0)]
            ranks = np.empty(size, np.int64)
            ranks[order] = np.cumsum(new)
            if new.all() or step >= size:
                break
            step *= 2
        return cls(data, order)

    def __contains__(self, text: object) -> bool:
        wanted = str(text).encode()
        low, high = 0, len(self.order)
        while low < high:
            middle = (low + high) // 2
            place = int(self.order[middle])
            if self.data[place : place + len(wanted)] < wanted:
                low = middle + 1
            else:
                high = middle
        if low == len(self.order):
            return not wanted
        place = int(self.order[low])
        return self.data[place : place + len(wanted)] == wanted

    def write(self, path: str | PathLike[str]) -> None:
        """Writes the index to a file, including the text.

        Raises
        ------
        SuiteError
            If it cannot be written.
        """
        head = CORPUS + len(self.data).to_bytes(8, "little")
        _write(Path(path), head + self.order.astype("<u4").tobytes() + self.data)

    @classmethod
    def read(cls, path: str | PathLike[str]) -> CorpusIndex:
        """Reads a file of :meth:`write`.

        Raises
        ------
        SuiteError
            If it cannot be read, or is not an index.
        """
        rest = _read(Path(path), CORPUS)
        size = int.from_bytes(rest[:8], "little")
        if len(rest) != 8 + 5 * size:
            raise SuiteError(f"{str(path)!r} is damaged")
        order = np.frombuffer(rest, "<u4", size, offset=8).astype(np.int64)
        if size and int(order.max()) >= size:
            raise SuiteError(f"{str(path)!r} is damaged")
        return cls(rest[8 + 4 * size :], order)


def _write(path: Path, data: bytes) -> None:
    def put(file: Any) -> None:
        file.write(data)

    try:
        write_atomically(path, put)
    except OSError as error:
        raise SuiteError(f"cannot write {str(path)!r}: {error.strerror}") from None


def _read(path: Path, label: bytes) -> bytes:
    try:
        data = path.read_bytes()
    except OSError as error:
        raise SuiteError(f"cannot read {str(path)!r}: {error.strerror}") from None
    if not data.startswith(label) or len(data) < len(label) + 8:
        raise SuiteError(f"{str(path)!r} must be a file of the format {label.decode().strip()!r}")
    return data[len(label) :]
