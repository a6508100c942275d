"""Records of hits, samples and scores: stored, read back, and scored by another model."""

from formalm.records.record import Record
from formalm.records.record_sequence import Records, rescore

__all__ = ["Record", "Records", "rescore"]
