"""The detectors of this package: one a file, or one family a file. `registry` finds them here."""
