"""Persistent answers of suite runs: an append-only journal, and locks between processes."""

from formalm.store.claims import Claims
from formalm.store.journal import Entry, Journal

__all__ = ["Claims", "Entry", "Journal"]
