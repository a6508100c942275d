"""Language models of the ``transformers`` package under formalm's model protocol."""

from formalm.models.transformers.encoder_decoder import EncoderDecoderModel, from_encoder_decoder
from formalm.models.transformers.loading import from_transformers
from formalm.models.transformers.model import TransformersModel
from formalm.models.transformers.prefix_state import TransformersState

__all__ = [
    "EncoderDecoderModel",
    "TransformersModel",
    "TransformersState",
    "from_encoder_decoder",
    "from_transformers",
]
