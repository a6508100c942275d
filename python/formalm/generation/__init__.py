"""Constrained generation: strings of a language, drawn from a model whole or in pieces."""

from formalm.generation.generate import generate
from formalm.generation.result import Generation
from formalm.generation.stream import Stream, stream

__all__ = ["Generation", "Stream", "generate", "stream"]
