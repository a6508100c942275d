"""Sampling of members: draws from the model's distribution, with weights and estimates."""

from formalm.sampling.mean_estimate import Estimate
from formalm.sampling.samples import Sample, Samples, sample

__all__ = ["Estimate", "Sample", "Samples", "sample"]
