"""Fitted detectors: what the model knows inside, read by a function that labelled documents have fitted.

- `base.py`: a fitted detector is a name, the place it looks at, what it is fitted to, and two functions;
- `builtin/`: the methods, one a file;
- `registry.py`: all of them, by name, with those of other packages;
- `crossfit.py`: every document is scored by a state that has not seen its image.
"""
