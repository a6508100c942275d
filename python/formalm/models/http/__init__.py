"""Models behind an HTTP server. No socket is opened before the model is asked."""

from formalm.models.http.model import HttpModel

__all__ = ["HttpModel"]
