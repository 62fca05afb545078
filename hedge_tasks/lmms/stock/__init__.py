"""`hedge:TASK`: any generative task of lmms-eval, asked many times and scored for hallucination.

The stock task asks, shows and scores as ever; sampling, noise, clustering, detectors, store, run file and report are
this package's. `names` and `options` say what is asked for, `loading` finds and builds it, `presentation` is what a
document shows, `columns` what its data set tells of it, `scoring`, `numbers` and `judge` how its metric becomes a
verdict, and `task` puts it together.
"""
