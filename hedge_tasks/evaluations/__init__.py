"""What single benchmarks need beyond the shared engine: reading replies by their rules, their metrics, their data."""
