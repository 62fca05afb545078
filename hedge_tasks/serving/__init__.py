"""Asking models: one chat client for every server, loading of models in this process, and what identifies weights."""
