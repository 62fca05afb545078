"""`hedge:TASK`: any generative task of lmms-eval, asked many times and scored for hallucination.

The stock task asks, shows and scores as ever; sampling, noise, clustering, detectors, store, run file and report are
this package's. `names` says what is asked for, `loading` finds and builds it, `data` is where its rows are and what
their columns tell, `presentation` what a document shows, `scoring` what its metrics say of an answer, `judge` how that
becomes a verdict, and `task` puts it together.
"""
