"""Scoring a finished run again: its scorers, its claims, other labels. No model draws an answer here."""
