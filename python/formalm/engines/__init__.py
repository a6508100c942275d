"""Plug-ins for engines: vLLM and SGLang; logits processors for llama.cpp and MLX.

::

    request of the engine ── kind, specification ──► request_languages ──► Language
                                                                             │
    tokenizer, width of the logits ──► EngineConstraints ── ConstraintCache ─┤
                                                                             ▼
    vllm/, sglang/: the engine's abstract classes ◄────────────────────── Matcher

No engine is imported before it asks for its plug-in.
"""

from formalm.engines.engine_constraints import EngineConstraints
from formalm.engines.logits_processors import LlamaCppLogitsProcessor, MlxLogitsProcessor
from formalm.engines.request_languages import RequestKind, grammar_syntax, request_language

__all__ = [
    "EngineConstraints",
    "LlamaCppLogitsProcessor",
    "MlxLogitsProcessor",
    "RequestKind",
    "grammar_syntax",
    "request_language",
]
