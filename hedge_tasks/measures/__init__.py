"""Numbers of finished runs.

measure       `Measure`: a number that is declared once; its kinds (mean, rate, function of sums, ROC-AUC, count)
known         measures of every task: ROC-AUC of each detector, rates of labels
of_run        measures of run files, and paired differences between runs
paper_tables  the one layout of the suites' paper tables; published: what papers print

The other modules are tables of detectors and claims, sweeps, curves, fidelity and costs.
"""
