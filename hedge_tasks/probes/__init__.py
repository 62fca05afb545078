"""Fitted detectors: what the model knows inside, read by a function that labelled documents have fitted.

- `base.py`: a fitted detector is a name, the place it looks at, what it is fitted to, and two functions;
- `linear.py`, `mahalanobis.py`: the methods, one a file;
- `registry.py`: all of them, by name;
- `crossfit.py`: every document is scored by a state that has not seen its image.
"""
