"""Probabilities of languages and strings: masses, tables of masses, scores and distortion."""

from formalm.probability.bounds import Interval
from formalm.probability.divergence import Divergence
from formalm.probability.event_mass import Mass, mass, mass_bounds
from formalm.probability.mask_distortion import Distortion, distortion
from formalm.probability.mass_tables import MassTable, conditional_mass, mass_table
from formalm.probability.string_scores import Score, score

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
