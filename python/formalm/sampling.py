"""Sampling of members: draws from the model's distribution, with weights and estimates."""

from formalm.drivers.estimate import Estimate
from formalm.drivers.sample import sample
from formalm.drivers.samples import Sample, Samples

__all__ = ["Estimate", "Sample", "Samples", "sample"]
