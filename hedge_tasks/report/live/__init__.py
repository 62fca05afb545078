"""The pages of a folder in a browser, also while an evaluation is writing into it."""
