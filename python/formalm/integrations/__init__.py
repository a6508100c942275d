"""Our constraints in other people's loops. Nothing of theirs is imported before it is needed."""

from formalm.integrations.logits_processor import ConstraintLogitsProcessor, logits_processors
from formalm.integrations.pipelines import pipeline

__all__ = ["ConstraintLogitsProcessor", "logits_processors", "pipeline"]
