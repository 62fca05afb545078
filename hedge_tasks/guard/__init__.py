"""An answer with a risk that holds: a threshold calibrated on a labelled run, and the check of what it promised.

policy     what is promised, under which circumstances, as a file
calibrate  a policy out of a run, and its check on another one
"""
