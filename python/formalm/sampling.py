"""Sampling of members: draws from the model's distribution, with weights and estimates."""

from formalm.drivers.mean_estimate import Estimate
from formalm.drivers.sample import sample
from formalm.drivers.sample_result import Sample, Samples

__all__ = ["Estimate", "Sample", "Samples", "sample"]
