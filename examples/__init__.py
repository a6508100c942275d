"""Scripts that run offline; some of their classes serve tests and benchmarks too."""
