"""Language models: the protocol, a table, any function, and those of other libraries.

Nothing here imports another library before it is handed an object of it.
"""

from formalm.models.base import (
    IncrementalModel,
    LanguageModel,
    ModelState,
    RunModel,
    log_softmax,
)
from formalm.models.function import FunctionModel
from formalm.models.session import Position, Session
from formalm.models.table import TableModel
from formalm.models.transformers import TransformersModel, from_transformers

__all__ = [
    "FunctionModel",
    "IncrementalModel",
    "LanguageModel",
    "ModelState",
    "Position",
    "RunModel",
    "Session",
    "TableModel",
    "TransformersModel",
    "from_transformers",
    "log_softmax",
]
