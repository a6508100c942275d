"""Models on an HTTP server. No socket is opened before the first request."""

from formalm.models.http.model import HttpModel

__all__ = ["HttpModel"]
