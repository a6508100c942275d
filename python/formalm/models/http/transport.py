"""JSON over HTTP with retries, deadlines and secrets kept out of messages."""

from __future__ import annotations

import json
import random
import re
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import SplitResult, parse_qsl, unquote, urlsplit

from formalm.errors import ArgumentError, ModelError
from formalm.models.http.bounded_json import Bound, parsed
from formalm.models.http.http1_exchange import (
    Address,
    Deadline,
    ExchangeFailed,
    MalformedReply,
    Reply,
    TooLarge,
    exchange,
)

__all__ = ["Transport", "without_secrets"]

REFUSAL_BYTES = 64 << 10
"""Maximum number of bytes read from a reply that is only quoted."""
LONGEST_PAUSE_SECONDS = 30.0
HEADER_NAME = re.compile("[!#$%&'*+.^_`|~0-9A-Za-z-]+")
HEADER_VALUE = re.compile("[\t -~]*")
FRAMING = ("content-length", "transfer-encoding")
"""Headers that determine where a request ends."""
AGAIN = (408, 429, 500, 502, 503, 504)
HINTS = {
    401: "pass api_key or headers; the command line reads the key from FORMALM_API_KEY",
    403: "the key (api_key or headers) does not permit this request",
    404: "url must be that of completions, such as …/v1/completions, and model the name"
    " of a model that is served",
    413: "lower batch_size",
}
ELSEWHERE = "url must be that of completions, such as …/v1/completions"
LEAST_SECRET = 4
"""Minimum length of a value that is kept out of messages: shorter ones occur in every text."""


class _Again(Exception):  # noqa: N818
    """A failure that a retry may resolve."""

    def __init__(
        self, what: str, pause_seconds: float | None = None, status: int | None = None
    ) -> None:
        super().__init__(what)
        self.pause_seconds = pause_seconds
        self.status = status


@dataclass(repr=False)
class Transport:
    """Requests to one server.

    Values that may be secret (of headers and of the URL's query) appear neither in its ``repr`` nor
    in its errors, even if the server's reply repeats them.

    Parameters
    ----------
    url
        The URL of requests, ``http`` or ``https``. Redirects are not followed, so prompts and keys
        go only where the user sent them, and proxies of the environment are not used.
    headers
        Added to each request.
    timeout_seconds
        Time limit of one attempt, from the host lookup to the last byte of the reply.
    retries
        How often a request is sent again after a refused or dropped connection, or a status that
        asks for a retry (429 and most of 5xx). A request that timed out is not sent again: a server
        that is too slow for one request would have to work on two.
    pause_seconds
        Pause before the first retry; it doubles before each one after it, unless the server says
        how long to wait.

    Attributes
    ----------
    requests, retried
        Number of attempts so far, and of those that were retries.
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
        secure = parts.scheme == "https"
        target = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
        # The port of the scheme if none, or an empty one, is written.
        port = parts.port or (443 if secure else 80)
        self._address = Address(str(parts.hostname), port, target, secure)
        _check_headers(self.headers)
        self._shown_url = without_secrets(self.url)
        self._secrets = _secrets(parts, self.headers)

    def __repr__(self) -> str:
        names = sorted(self.headers)
        return (
            f"Transport({self._shown_url!r}, headers={names}, timeout_seconds="
            f"{self.timeout_seconds:g}, requests={self.requests}, retried={self.retried})"
        )

    def post(self, body: Mapping[str, Any], bound: Bound | None = None) -> Any:
        """Sends a JSON object and reads one.

        Parameters
        ----------
        body
            The object.
        bound
            Maximum size of the reply; a larger one is refused before it is parsed.

        Raises
        ------
        ModelError
            If the server refuses the request (``status`` then has the status), sends no JSON or
            more than ``bound``, does not answer in time, or cannot be reached in all attempts.
        """
        data = json.dumps(body).encode()
        pause = self.pause_seconds
        for attempt in range(self.retries + 1):
            self.requests += 1
            self.retried += attempt > 0
            try:
                return self._once(data, bound or Bound())
            except _Again as trouble:
                last = trouble
            if attempt < self.retries:
                # Some jitter, so that many clients do not retry at once.
                wait = pause * random.uniform(0.75, 1.25)
                asked = last.pause_seconds
                time.sleep(min(LONGEST_PAUSE_SECONDS, wait if asked is None else asked))
                pause *= 2
        times = "once" if not self.retries else f"{self.retries + 1} times; the last error was"
        raise self._error(
            f"failed {times}: {last}", "check the server, or raise retries", last.status
        )

    def _once(self, data: bytes, bound: Bound) -> Any:
        headers = {"Content-Type": "application/json", **self.headers}
        deadline = Deadline(self.timeout_seconds)
        try:
            reply = exchange(
                self._address,
                "POST",
                deadline=deadline,
                headers=headers,
                data=data,
                max_bytes=max(bound.bytes, REFUSAL_BYTES),
            )
        except TimeoutError:
            raise self._error(
                f"did not complete its reply within {self.timeout_seconds:g} seconds",
                "check the server, or raise timeout_seconds",
            ) from None
        except ExchangeFailed as trouble:
            raise _Again(f"the connection broke: {trouble}") from None
        except MalformedReply as trouble:
            raise self._error(f"sent a malformed reply: {trouble}") from None
        except TooLarge:
            raise self._error(
                f"sent a reply of more than {bound.bytes:,} bytes, which exceeds the request"
            ) from None
        return self._parsed(reply, bound)

    def _parsed(self, reply: Reply, bound: Bound) -> Any:
        status = reply.status
        coding = reply.headers.get("content-encoding", "identity").strip().lower()
        compressed = coding not in ("identity", "")
        shown = f"a reply in {coding[:40]}" if compressed else self._quoted(reply.body)
        if status in AGAIN:
            pause = _seconds(reply.headers.get("retry-after"))
            raise _Again(f"status {status}: {shown}", pause, status)
        if status != 200:
            hint = ELSEWHERE if status in (301, 302, 307, 308, 405) else HINTS.get(status)
            raise self._error(f"refused with status {status}: {shown}", hint, status)
        if compressed:
            raise self._error(
                f"compressed its reply ({coding[:40]}), although the request excludes compression",
                "disable compression in the server or in its proxy",
            )
        try:
            return parsed(reply.body, bound)
        except ValueError as trouble:
            raise self._error(f"sent invalid JSON: {trouble}; {shown}") from None

    def _error(self, what: str, hint: str | None = None, status: int | None = None) -> ModelError:
        """Returns an error that names the server and no secret."""
        return ModelError(f"{self._shown_url} {self.cleaned(what)}", hint=hint, status=status)

    def cleaned(self, text: str) -> str:
        """Returns a text without the values of headers and of the URL's query."""
        for secret in self._secrets:
            text = text.replace(secret, "…")
        return text

    def _quoted(self, text: bytes) -> str:
        """Returns the start of a reply. Secrets are removed first, so that none is cut or escaped
        and left.
        """
        shown = self.cleaned(text[:REFUSAL_BYTES].decode(errors="replace")).strip()[:300]
        return repr(shown) if shown else "an empty reply"


def without_secrets(url: str) -> str:
    """Returns a URL without user, password, query and fragment.

    Examples
    --------
    >>> without_secrets("https://me:password@host/v1?api-key=secret")
    'https://…@host/v1?…'
    >>> without_secrets("no URL at all")
    'no URL at all'
    """
    front, mark, _ = url.partition("?")
    front, sharp, _ = front.partition("#")
    scheme, slashes, rest = front.partition("//")
    if not slashes:
        scheme, rest = "", front
    # In an invalid URL, everything before an @ may be a password with a slash in it.
    at = rest.rfind("@")
    rest = rest if at < 0 else "…" + rest[at:]
    return f"{scheme}{slashes}{rest}{'#…' if sharp else '?…' if mark else ''}"


def _secrets(parts: SplitResult, headers: Mapping[str, str]) -> tuple[str, ...]:
    """Returns the strings that no message may contain, longest first: one may be part of
    another.
    """
    found = {parts.query, unquote(parts.query)}
    for name, value in parse_qsl(parts.query, keep_blank_values=True):
        found |= {value} if value else {name}
    for value in headers.values():
        found.add(value)
        # A server may repeat alone what follows a scheme, as in "Bearer …".
        found |= {value.strip().rpartition(" ")[2]}
    return tuple(sorted((s for s in found if len(s) >= LEAST_SECRET), key=len, reverse=True))


def _parts(url: str) -> SplitResult:
    """Returns the parts of a URL in the form in which they are sent."""
    hint = "such as http://localhost:8000/v1/completions"
    shown = without_secrets(url)
    if not url.isascii() or not url.isprintable() or " " in url:
        hint = "encode other characters as %XX, and those of a host name as xn--"
        raise ArgumentError(
            f"url must consist of printable ASCII characters without spaces, got {shown!a}",
            hint=hint,
        )
    try:
        parts = urlsplit(url)
        known = parts.scheme in ("http", "https") and parts.hostname and parts.port != 0
        str(parts.hostname).encode("idna")
    except ValueError as error:  # from ports and brackets, and from invalid host names
        why = str(error) if shown == url else "its host or port is invalid"
        raise ArgumentError(
            f"url must be the address of a server, got {shown!r}: {why}", hint=hint
        ) from None
    if not known:
        raise ArgumentError(f"url must begin with http:// or https://, got {shown!r}", hint=hint)
    if parts.username is not None or parts.fragment:
        part = "a user and a password" if parts.username is not None else "a fragment (#)"
        raise ArgumentError(
            f"url must not contain {part}, got {parts.scheme}://{parts.hostname}/…",
            hint="pass credentials as api_key or headers",
        )
    return parts


def _check_headers(headers: Mapping[Any, Any]) -> None:
    """Refuses headers that cannot be sent; their values may be secret and are not shown."""
    for name, value in headers.items():
        if not isinstance(name, str) or not HEADER_NAME.fullmatch(name):
            raise ArgumentError(f"headers must be named by HTTP tokens, got {name!r:.60}")
        if not isinstance(value, str) or not HEADER_VALUE.fullmatch(value):
            raise ArgumentError(
                f"the value of the header {name} must consist of printable ASCII characters",
                hint="call .strip() on a key that was read from a file",
            )
        if name.lower() in FRAMING:
            raise ArgumentError(
                f"headers must not contain {name}, which determines where the body ends",
                hint="drop it; the client sends the correct value",
            )


def _seconds(value: str | None) -> float | None:
    """Returns the seconds in ``Retry-After`` if it is a number; dates are not supported."""
    try:
        seconds = float(value) if value is not None else None
    except ValueError:
        return None
    return None if seconds is None or not 0 <= seconds < float("inf") else seconds
