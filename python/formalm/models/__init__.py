"""Language models: the protocol, and those that need nothing but NumPy."""

from formalm.models.base import IncrementalModel, LanguageModel, ModelState, log_softmax
from formalm.models.function import FunctionModel
from formalm.models.session import Position, Session
from formalm.models.table import TableModel

__all__ = [
    "FunctionModel",
    "IncrementalModel",
    "LanguageModel",
    "ModelState",
    "Position",
    "Session",
    "TableModel",
    "log_softmax",
]
