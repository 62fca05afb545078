"""Benchmarks, one folder each: YAML for lmms-eval, `utils.py` beside it, README with citation and settings."""
