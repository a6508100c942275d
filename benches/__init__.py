"""Benchmarks: masks side by side with other libraries, and start-up times."""
