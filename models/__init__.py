"""lmms-eval model adapters that also return the mean token log-probability of every sampled answer."""
