"""Models of engines in this process, under formalm's model protocol: llama.cpp, MLX, ONNX Runtime
GenAI and CTranslate2.

No engine is imported before one of its models is made.
"""

from formalm.models.local_engines.ctranslate2_model import CTranslate2Model
from formalm.models.local_engines.llama_cpp_model import LlamaCppModel
from formalm.models.local_engines.mlx_model import MlxModel
from formalm.models.local_engines.onnx_genai_model import OnnxGenaiModel
from formalm.models.local_engines.prefix_model import PrefixState

__all__ = ["CTranslate2Model", "LlamaCppModel", "MlxModel", "OnnxGenaiModel", "PrefixState"]
