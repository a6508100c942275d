"""Causal language models of the ``transformers`` package under formalm's model protocol."""

from formalm.models.transformers.loading import from_transformers
from formalm.models.transformers.model import TransformersModel
from formalm.models.transformers.state import TransformersState

__all__ = ["TransformersModel", "TransformersState", "from_transformers"]
