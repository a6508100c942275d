"""Language models: the protocol, tables, functions, transformers, engines, servers, the embedded
model.

No other library is imported before an object of it is passed in.
"""

from formalm.models.function_model import FunctionModel
from formalm.models.local_engines import (
    CTranslate2Model,
    LlamaCppModel,
    MlxModel,
    OnnxGenaiModel,
)
from formalm.models.logit_rows import LogitRow, LogitRows
from formalm.models.model_protocols import (
    IncrementalModel,
    LanguageModel,
    ModelState,
    RunModel,
    log_softmax,
)
from formalm.models.session import Position, Session
from formalm.models.table_model import TableModel
from formalm.models.transformers import (
    EncoderDecoderModel,
    TransformersModel,
    from_encoder_decoder,
    from_transformers,
)

__all__ = [
    "CTranslate2Model",
    "EncoderDecoderModel",
    "FunctionModel",
    "IncrementalModel",
    "LanguageModel",
    "LlamaCppModel",
    "LogitRow",
    "LogitRows",
    "MlxModel",
    "ModelState",
    "OnnxGenaiModel",
    "Position",
    "RunModel",
    "Session",
    "TableModel",
    "TransformersModel",
    "from_encoder_decoder",
    "from_transformers",
    "log_softmax",
]
