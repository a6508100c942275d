"""Drivers: what is done with a language and a model."""

from formalm.drivers.generate import generate
from formalm.drivers.result import Generation
from formalm.drivers.sampling import Decoding
from formalm.drivers.search import Hit, Search, search
from formalm.drivers.stream import Stream, stream
from formalm.query.limits import Limits

__all__ = [
    "Decoding",
    "Generation",
    "Hit",
    "Limits",
    "Search",
    "Stream",
    "generate",
    "search",
    "stream",
]
