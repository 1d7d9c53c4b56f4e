"""Benchmarks: `python -m bench NAME [--json]`, each a ratio to something measured in the same run."""
