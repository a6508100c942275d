"""Probabilities of languages and strings: masses, tables of masses, scores and distortion."""

from formalm.drivers.distortion import Distortion, distortion
from formalm.drivers.divergence import Divergence
from formalm.drivers.mass import Mass, mass, mass_bounds
from formalm.drivers.mass_tables import Interval, MassTable, conditional_mass, mass_table
from formalm.drivers.score import score
from formalm.drivers.score_result import Score

__all__ = [
    "Distortion",
    "Divergence",
    "Interval",
    "Mass",
    "MassTable",
    "Score",
    "conditional_mass",
    "distortion",
    "mass",
    "mass_bounds",
    "mass_table",
    "score",
]
