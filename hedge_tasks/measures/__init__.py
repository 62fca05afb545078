"""Numbers of finished runs.

Declared numbers:
measure            `Measure`: a number that is declared once; its kinds (mean, rate, function of sums, ROC-AUC, count)
standard_measures  measures of every task: ROC-AUC of each detector, rates of labels
run_measures       measures of run files, and paired differences between runs
forced_options     measures of the distribution over the offered answers

Detectors of answers:
detector_table     detectors side by side on a run; detector_columns: their columns as a printed table
priced_scores      scores with what they cost, under a budget; sweep: AUROC against the number of answers
blind, fusion      baselines that see neither image nor draws; detectors fused into one; folds: their cross-fitting
probe_table        fitted detectors; claim_probes: those of sentences
curves, threshold_report, cost    curves behind figures; effects of tuning; seconds and memory

Detectors of claims:
kept_claims        claims kept with a run, scored and measured
unit_table         detectors of claims side by side; unit_numbers: their numbers besides the ROC-AUC

Runs:
comparisons        two scores, or two runs on the same questions; run_variants: runs that differ in one setting
seed_spread        spread over seeds, and the draws' share of a variance
audited            numbers against experts
headline           rate, lead and tests of a run, for every place; claim_finding: of claims; trust_state: of both
fidelity           settings beside those of the HEDGE paper

Papers:
published          numbers that an evaluation's paper prints; paper_tables: the layout of the suites' paper tables
hedge_paper        the tables of the HEDGE paper
"""
