"""Records of hits, samples and scores: stored, read back, and scored by another model."""

from formalm.drivers.record import Record
from formalm.drivers.records import Records, rescore

__all__ = ["Record", "Records", "rescore"]
