"""Oracles that decide whether a string is real: list, Bloom filter, corpus, checksum, HTTP."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from hashlib import sha256
from pathlib import Path
from typing import Any

from formalm.errors import SuiteError

__all__ = ["KINDS", "Oracle", "judge_of", "luhn"]

KINDS = ("texts", "bloom", "corpus", "checksum", "http")
CHUNK_BYTES = 1 << 20


@dataclass(frozen=True)
class Oracle:
    """Decides whether a string that was found is real.

    Attributes
    ----------
    name, kind
        Its name and kind. ``"texts"``: one of a list. ``"bloom"``: in a Bloom filter, see
        :class:`~formalm.suites.Bloom`. ``"corpus"``: a substring of a text file, see
        :class:`~formalm.suites.CorpusIndex`. ``"checksum"``: the digits have a valid check digit
        (Luhn). ``"http"``: a server answers for it; this must be allowed explicitly.
    texts
        The list.
    file, digest
        The file, and the SHA-256 of its content once a run has begun with it.
    rate
        Maximum number of requests per second.
    folder
        The folder of the file.
    """

    name: str
    kind: str
    texts: tuple[str, ...] = ()
    file: str | None = None
    digest: str | None = None
    rate: float = 1.0
    folder: Path | None = None

    @property
    def path(self) -> Path:
        """The path of the file."""
        assert self.file is not None  # a suite is read only if the kinds that need one have it
        return Path(self.file) if self.folder is None else self.folder / self.file

    def fixed(self) -> Oracle:
        """Returns the oracle with location and digest of its file, so that a run can resume.

        Raises
        ------
        SuiteError
            If the file cannot be read, or is not the one that the run began with.
        """
        if self.kind not in ("bloom", "corpus"):
            return replace(self, file=None, folder=None)
        place, digest = str(self.path.resolve()), digest_of_file(self.path)
        self.check(digest)
        return replace(self, file=place, folder=None, digest=digest)

    def check(self, digest: str) -> None:
        """Refuses a file that changed since the run began."""
        if self.digest not in (None, digest):
            raise SuiteError(f"{str(self.path)!r} has changed since the run started")


def judge_of(oracle: Oracle, *, allow_http: bool = False) -> Callable[[str], bool]:
    """Returns the function with which an oracle judges a string.

    Parameters
    ----------
    oracle
        The oracle.
    allow_http
        Whether it may query servers. Nothing else opens a connection.

    Raises
    ------
    SuiteError
        If it queries servers and that is not allowed, or if its file is not the one that the run
        began with.
    """
    if oracle.kind == "checksum":
        return luhn
    if oracle.kind == "texts":
        known = frozenset(oracle.texts)
        return lambda text: text in known
    if oracle.kind == "http":
        if not allow_http:
            raise SuiteError(
                f"allow_http must be True for the oracle {oracle.name!r}, which sends requests"
                " to servers",
                hint="pass allow_http=True or --allow-http; every text found is requested",
            )
        from formalm.suites.oracles.url_requests import Server

        return Server(oracle.rate)
    oracle.check(digest_of_file(oracle.path))
    from formalm.suites.oracles.corpora import Bloom, CorpusIndex

    kind: Any = Bloom if oracle.kind == "bloom" else CorpusIndex
    judge: Callable[[str], bool] = kind.read(oracle.path).__contains__
    return judge


def luhn(text: str) -> bool:
    """Returns whether the digits of a string have a valid check digit, as on payment cards.

    Examples
    --------
    >>> from formalm.suites import luhn
    >>> luhn("4539 1488 0343 6467"), luhn("4539 1488 0343 6468"), luhn("no digits")
    (True, False, False)
    """
    digits = [int(letter) for letter in text if letter in "0123456789"]
    doubled = sum(sum(divmod(2 * digit, 10)) for digit in digits[-2::-2])
    return len(digits) > 1 and (sum(digits[-1::-2]) + doubled) % 10 == 0


def digest_of_file(path: Path) -> str:
    """Returns the SHA-256 of the content of a file."""
    digest = sha256()
    try:
        with path.open("rb") as file:
            while chunk := file.read(CHUNK_BYTES):
                digest.update(chunk)
    except OSError as error:
        raise SuiteError(f"cannot read {str(path)!r}: {error.strerror}") from None
    return digest.hexdigest()
