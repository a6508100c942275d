"""Constrained generation: strings of a language, drawn from a model whole or in pieces."""

from formalm.generation.batch_generation import generate
from formalm.generation.result import Generation
from formalm.generation.streaming import Stream, stream

__all__ = ["Generation", "Stream", "generate", "stream"]
