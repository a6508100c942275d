"""Numbers computed from answers: metrics with bounds, comparisons, and verdicts on assertions."""
