"""Drivers: the functions that generate, search, measure, sample and score with a model."""

from formalm.drivers.cost import Cost
from formalm.drivers.distortion import Distortion, distortion
from formalm.drivers.divergence import Divergence
from formalm.drivers.estimate import Estimate
from formalm.drivers.generate import generate
from formalm.drivers.mass import Mass, mass, mass_bounds
from formalm.drivers.progress import Progress
from formalm.drivers.record import Record
from formalm.drivers.records import Records, rescore
from formalm.drivers.result import Generation
from formalm.drivers.sample import sample
from formalm.drivers.samples import Sample, Samples
from formalm.drivers.sampling import Decoding
from formalm.drivers.score import score
from formalm.drivers.scores import Score
from formalm.drivers.search import Hit, Search, search
from formalm.drivers.stream import Stream, stream
from formalm.drivers.table import Interval, MassTable, conditional_mass, mass_table
from formalm.query.limits import Limits

__all__ = [
    "Cost",
    "Decoding",
    "Distortion",
    "Divergence",
    "Estimate",
    "Generation",
    "Hit",
    "Interval",
    "Limits",
    "Mass",
    "MassTable",
    "Progress",
    "Record",
    "Records",
    "Sample",
    "Samples",
    "Score",
    "Search",
    "Stream",
    "conditional_mass",
    "distortion",
    "generate",
    "mass",
    "mass_bounds",
    "mass_table",
    "rescore",
    "sample",
    "score",
    "search",
    "stream",
]
