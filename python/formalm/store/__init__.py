"""What was answered, kept so that a run survives being killed."""

from formalm.store.claims import Claims
from formalm.store.journal import Entry, Journal

__all__ = ["Claims", "Entry", "Journal"]
