"""Asking servers whether an address is there: only where it was allowed, and slowly."""

from __future__ import annotations

import time
from collections.abc import Callable
from urllib.error import HTTPError, URLError
from urllib.request import HTTPRedirectHandler, Request, build_opener

__all__ = ["Server"]

TIMEOUT_SECONDS = 5.0


class NoRedirects(HTTPRedirectHandler):
    """A page that is elsewhere was not at the address."""

    def redirect_request(self, *_: object, **__: object) -> None:
        """Follow nothing."""


class Server:
    """Whether a server answers a HEAD request for an address with success.

    That a page is there today does not say that a model was trained on it, nor that it was not if
    the page is gone.

    Parameters
    ----------
    rate
        Most requests a second.
    """

    def __init__(self, rate: float, pause: Callable[[float], None] = time.sleep) -> None:
        self.interval, self.pause = 1.0 / rate, pause
        self.last = -self.interval
        self.opener = build_opener(NoRedirects)

    def __call__(self, address: str) -> bool:
        """Whether the address is there today."""
        if not address.startswith(("http://", "https://")):
            return False
        wait = self.last + self.interval - time.monotonic()
        if wait > 0:
            self.pause(wait)
        self.last = time.monotonic()
        try:
            request = Request(address, method="HEAD")  # noqa: S310 - http and https only
            with self.opener.open(request, timeout=TIMEOUT_SECONDS) as reply:
                return bool(200 <= reply.status < 300)
        except (HTTPError, URLError, OSError, ValueError):
            return False
