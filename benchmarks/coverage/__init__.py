"""How often 95 % intervals contain the true effect: ``python -m benchmarks.coverage``."""
