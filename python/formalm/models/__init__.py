"""Language models: the protocol, tables, functions, transformers, servers, the embedded model.

No other library is imported before an object of it is passed in.
"""

from formalm.models.function_model import FunctionModel
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
from formalm.models.transformers import TransformersModel, from_transformers

__all__ = [
    "FunctionModel",
    "IncrementalModel",
    "LanguageModel",
    "LogitRow",
    "LogitRows",
    "ModelState",
    "Position",
    "RunModel",
    "Session",
    "TableModel",
    "TransformersModel",
    "from_transformers",
    "log_softmax",
]
