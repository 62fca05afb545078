"""Making data sets: many requests to models in stages, resumable, each record with where it came from.

A pipeline is an ordinary function of one source record that asks questions (`hedge_tasks.making.asking.Asking`).
Every reply goes into a ledger under a key made of all that shaped the question, and whoever asks again is told what the
ledger holds. So a pipeline that was killed is simply run again: it goes the same way without a request to where it
was, and several workers may go over one source into one ledger.
"""
