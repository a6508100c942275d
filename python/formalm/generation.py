"""Constrained generation: strings of a language, drawn from a model whole or in pieces."""

from formalm.drivers.generate import generate
from formalm.drivers.generation_result import Generation
from formalm.drivers.stream import Stream, stream

__all__ = ["Generation", "Stream", "generate", "stream"]
