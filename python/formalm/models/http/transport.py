"""One JSON request, asked again where that may help."""

from __future__ import annotations

import http.client
import json
import random
import re
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import SplitResult, urlsplit

from formalm.errors import ArgumentError, ModelError

__all__ = ["Transport"]

REPLY_BYTES = 256 << 20
CHUNK_BYTES = 1 << 16
LONGEST_PAUSE_SECONDS = 30.0
HEADER_NAME = re.compile("[!#$%&'*+.^_`|~0-9A-Za-z-]+")
HEADER_VALUE = re.compile("[\t -~]*")
AGAIN = (408, 429, 500, 502, 503, 504)


class _Again(Exception):  # noqa: N818
    """What went wrong may not go wrong again."""

    def __init__(self, what: str, pause_seconds: float | None = None) -> None:
        super().__init__(what)
        self.pause_seconds = pause_seconds


@dataclass
class Transport:
    """Requests to one server.

    Parameters
    ----------
    url
        Where requests go, ``http`` or ``https``. Redirections are not followed, so that prompts
        and keys go where the user sent them, and proxies of the environment are not used.
    headers
        Added to each request.
    timeout_seconds
        For one attempt, from connecting to the last byte of the reply.
    retries
        How often a request is sent again: after a dropped connection, a timeout, or a status that
        says to come back (429 and most of 5xx).
    pause_seconds
        Before the first of them; twice as long before each one after it, unless the server says
        how long to wait.

    Attributes
    ----------
    requests, retried
        Attempts so far, and those that were another's repetition.
    """

    url: str
    headers: Mapping[str, str] = field(default_factory=dict)
    timeout_seconds: float = 60.0
    retries: int = 4
    pause_seconds: float = 0.5
    requests: int = 0
    retried: int = 0

    def __post_init__(self) -> None:
        parts = _parts(self.url)
        self._secure = parts.scheme == "https"
        self._host, self._port = str(parts.hostname), parts.port
        self._path = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
        _check_headers(self.headers)

    def post(self, body: Mapping[str, Any]) -> Any:
        """Send a JSON object and read one.

        Raises
        ------
        ModelError
            If the server refuses, answers no JSON, or cannot be reached in all attempts.
        """
        data = json.dumps(body).encode()
        pause = self.pause_seconds
        for attempt in range(self.retries + 1):
            self.requests += 1
            self.retried += attempt > 0
            try:
                return self._once(data)
            except _Again as trouble:
                last = trouble
            if attempt < self.retries:
                # A little noise, so that many clients do not come back at once.
                wait = pause * random.uniform(0.75, 1.25)
                asked = last.pause_seconds
                time.sleep(min(LONGEST_PAUSE_SECONDS, wait if asked is None else asked))
                pause *= 2
        raise ModelError(
            f"{self.url} failed {self.retries + 1} times, the last time so: {last}",
            hint="look at the server, or raise retries or timeout_seconds",
        )

    def _once(self, data: bytes) -> Any:
        kind = http.client.HTTPSConnection if self._secure else http.client.HTTPConnection
        deadline = time.monotonic() + self.timeout_seconds
        connection = kind(self._host, self._port, timeout=self.timeout_seconds)
        try:
            headers = {"Content-Type": "application/json", "Connection": "close", **self.headers}
            connection.request("POST", self._path, data, headers)
            socket = connection.sock  # the connection lets go of it when it is to be closed
            with connection.getresponse() as response:
                text = _read(socket, response, deadline)
        except TimeoutError:
            raise _Again(f"no whole reply in {self.timeout_seconds:g} seconds") from None
        except (OSError, http.client.HTTPException) as error:
            raise _Again(f"the connection broke: {type(error).__name__}: {error}") from None
        finally:
            connection.close()
        return self._parsed(response, text)

    def _parsed(self, response: http.client.HTTPResponse, text: bytes) -> Any:
        if response.status in AGAIN:
            what = f"status {response.status}: {_shown(text)}"
            raise _Again(what, _seconds(response.headers.get("Retry-After")))
        if response.status != 200:
            raise ModelError(
                f"{self.url} refused with status {response.status}: {_shown(text)}",
                hint="the address has to be that of completions, such as …/v1/completions"
                if response.status in (301, 302, 307, 308, 404, 405)
                else None,
            )
        try:
            return json.loads(text)
        except (ValueError, RecursionError):  # of decoding, and of what is nested too deeply
            raise ModelError(f"{self.url} answered no JSON: {_shown(text)}") from None


def _parts(url: str) -> SplitResult:
    """The parts of an address that can be sent as it is."""
    hint = "such as http://localhost:8000/v1/completions"
    if not url.isascii() or not url.isprintable() or " " in url:
        hint = "write other characters as %XX, and a host's as xn--"
        raise ArgumentError(f"a server's address has no such characters: {url!a}", hint=hint)
    try:
        parts = urlsplit(url)
        known = parts.scheme in ("http", "https") and parts.hostname and parts.port != 0
        str(parts.hostname).encode("idna")
    except ValueError as error:  # of ports and brackets, and of what no host is called
        raise ArgumentError(f"{url!r} is no server's address: {error}", hint=hint) from None
    if not known:
        raise ArgumentError(
            f"a server's address begins with http:// or https://: {url!r}", hint=hint
        )
    if parts.username is not None or parts.fragment:
        part = "a user and a password" if parts.username is not None else "what follows #"
        raise ArgumentError(
            f"{part} would not be sent: {parts.scheme}://{parts.hostname}/…",
            hint="say who asks by api_key or headers",
        )
    return parts


def _check_headers(headers: Mapping[Any, Any]) -> None:
    """Refuse headers that cannot be sent; what they have may be secret and is not shown."""
    for name, value in headers.items():
        if not isinstance(name, str) or not HEADER_NAME.fullmatch(name):
            raise ArgumentError(f"{name!r:.60} is no name of a header")
        if not isinstance(value, str) or not HEADER_VALUE.fullmatch(value):
            raise ArgumentError(
                f"the header {name} has a value that cannot be sent",
                hint="a text of printable ASCII characters; a key read from a file: .strip() it",
            )


def _read(socket: Any, response: http.client.HTTPResponse, deadline: float) -> bytes:
    """The body, under one deadline: a socket's own timeout starts anew with every byte."""
    parts: list[bytes] = []
    size = 0
    while not response.isclosed():
        left = deadline - time.monotonic()
        if left <= 0:
            raise TimeoutError
        socket.settimeout(left)
        part = response.read1(CHUNK_BYTES)
        if not part:
            break
        parts.append(part)
        size += len(part)
        if size > REPLY_BYTES:
            raise ModelError(f"a reply of more than {REPLY_BYTES:,} bytes is none")
    wanted = response.headers.get("Content-Length")
    if wanted is not None and wanted.isdigit() and size < int(wanted):
        raise http.client.IncompleteRead(b"", int(wanted) - size)
    return b"".join(parts)


def _seconds(value: str | None) -> float | None:
    """What ``Retry-After`` says, if it is a number; dates are not worth a clock."""
    try:
        seconds = float(value) if value is not None else None
    except ValueError:
        return None
    return None if seconds is None or not 0 <= seconds < float("inf") else seconds


def _shown(text: bytes) -> str:
    shown = text[:300].decode(errors="replace").strip()
    return repr(shown) if shown else "an empty reply"
