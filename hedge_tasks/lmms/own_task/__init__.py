"""A task of lmms-eval out of a user's own data: its files, and whether lmms-eval can run them."""
