"""Drivers: what is done with a language and a model."""

from formalm.drivers.generate import generate
from formalm.drivers.result import Generation, Interrupted
from formalm.drivers.sampling import Decoding
from formalm.drivers.search import Hit, Limits, Search, search
from formalm.drivers.stream import Stream, stream

__all__ = [
    "Decoding",
    "Generation",
    "Hit",
    "Interrupted",
    "Limits",
    "Search",
    "Stream",
    "generate",
    "search",
    "stream",
]
