"""Rate-limited HTTP requests that check whether a URL exists, for the oracle ``"http"``."""

from __future__ import annotations

import time
from collections.abc import Callable
from urllib.parse import urlsplit
from urllib.request import getproxies, proxy_bypass

from formalm.models.http.http1_exchange import (
    Address,
    Deadline,
    ExchangeFailed,
    MalformedReply,
    TooLarge,
    exchange,
)

__all__ = ["Server"]

TIMEOUT_SECONDS = 5.0
NOT_HEAD = (405, 501)
"""Statuses of a server that knows the address but does not answer HEAD (RFC 9110, 15.5.6)."""


class Server:
    """Checks whether a server answers a HEAD request for a URL with success.

    If the server refuses the method HEAD, it is asked again with GET, and only the head of the
    reply is read. All other outcomes count as *absent*: a URL that cannot be requested as written,
    an unknown host, a reply that is not HTTP or not complete in time, and a redirection, because a
    page elsewhere was not at this URL.

    A page that exists today was not necessarily in the training data, and a page that is gone may
    have been.

    Parameters
    ----------
    rate
        Maximum number of requests per second.
    pause
        A function that waits for a number of seconds.
    timeout_seconds
        Timeout for one URL, from the lookup of the host to the end of the reply's head.
    """

    def __init__(
        self,
        rate: float,
        pause: Callable[[float], None] = time.sleep,
        *,
        timeout_seconds: float = TIMEOUT_SECONDS,
    ) -> None:
        self.interval, self.pause = 1.0 / rate, pause
        self.timeout_seconds = timeout_seconds
        self.last = -self.interval

    def __call__(self, address: str) -> bool:
        """Returns whether the URL exists today."""
        place = _place(address)
        if place is None:
            return False
        status = self._status(place, "HEAD")
        if status in NOT_HEAD:
            status = self._status(place, "GET")
        return status is not None and 200 <= status < 300

    def _status(self, place: Address, method: str) -> int | None:
        """Returns the status of a reply; None if there is none."""
        wait = self.last + self.interval - time.monotonic()
        if wait > 0:
            self.pause(wait)
        self.last = time.monotonic()
        try:
            return exchange(place, method, deadline=Deadline(self.timeout_seconds)).status
        except (TimeoutError, ExchangeFailed, MalformedReply, TooLarge):
            return None


def _place(address: str) -> Address | None:
    """Returns the target of a request for a URL; None if it cannot be requested as written."""
    if not address.isascii() or not address.isprintable() or " " in address:
        return None
    try:
        parts = urlsplit(address)
        host, port = parts.hostname, parts.port
    except ValueError:
        return None
    secure = parts.scheme == "https"
    named = bool(host) and parts.username is None and port != 0
    if parts.scheme not in ("http", "https") or host is None or not named:
        return None
    target = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
    return Address(
        host, port or (443 if secure else 80), target, secure, _proxy(parts.scheme, host)
    )


def _proxy(scheme: str, host: str) -> tuple[str, int] | None:
    """Returns the proxy in the environment, if it speaks plain HTTP."""
    named = getproxies().get(scheme)
    if not named or proxy_bypass(host):
        return None
    try:
        parts = urlsplit(named if "//" in named else f"http://{named}")
        if parts.scheme == "http" and parts.hostname:
            return parts.hostname, parts.port or 80
    except ValueError:
        pass
    return None
