"""Sampling of members: draws from the model's distribution, with weights and estimates."""

from formalm.sampling.mean_estimate import Estimate
from formalm.sampling.sample import sample
from formalm.sampling.sample_result import Sample, Samples

__all__ = ["Estimate", "Sample", "Samples", "sample"]
