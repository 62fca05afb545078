"""Leaderboard: an entry is a model's answers; the board labels, clusters and scores them, and a static site shows it.

entry       an entry and its file
board       what is refused, what is measured, and what is kept of it
replay      answers before the model that is said to have given them
site        pages
repository  a board's git repository
"""
