"""Numbers of finished runs: measures, comparisons, tables of detectors, sweeps, published values."""
