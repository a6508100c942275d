"""The embedded model `canary`: its corpus with known truth, its training and its measurements."""
