"""Models behind a server. No socket is opened before a model is asked."""

from formalm.models.http.model import HttpModel

__all__ = ["HttpModel"]
