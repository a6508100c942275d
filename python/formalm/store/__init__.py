"""Persistent answers of suite runs: an append-only journal, and locks between processes."""

from formalm.store.item_locks import ItemLocks
from formalm.store.journal import Entry, Journal

__all__ = ["Entry", "ItemLocks", "Journal"]
