"""SHALE: what its items are, how replies are read, its metrics, and a small set of the same shape drawn by code."""
