"""Hooks for other libraries' generation loops: pipeline and logits processors of transformers.

No other library is imported before it is needed.
"""

from formalm.integrations.logits_processor import ConstraintLogitsProcessor, logits_processors
from formalm.integrations.pipelines import pipeline

__all__ = ["ConstraintLogitsProcessor", "logits_processors", "pipeline"]
