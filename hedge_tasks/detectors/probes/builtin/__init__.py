"""The methods of fitted detectors, one a file: functions `fit` and `score`, and `DETECTORS` that use them."""
