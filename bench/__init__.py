"""Benchmarks: `python -m bench NAME [--json]`, each a ratio to something else of the same run."""
