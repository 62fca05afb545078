"""Answers that other tools have sampled: their files, read into answer sets, and what was lost on the way."""
