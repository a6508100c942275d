"""Probabilities of languages and strings: masses, tables of masses, scores and distortion."""

from formalm.probability.distortion import Distortion, distortion
from formalm.probability.divergence import Divergence
from formalm.probability.mass import Mass, mass, mass_bounds
from formalm.probability.mass_tables import Interval, MassTable, conditional_mass, mass_table
from formalm.probability.score import score
from formalm.probability.score_result import Score

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
