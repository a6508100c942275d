"""Runs of a suite in a directory: manifest, workers with locks, resumption after a kill."""
