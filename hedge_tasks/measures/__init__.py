"""Numbers of finished runs.

Declared numbers:
measure            `Measure`: a number that is declared once; its kinds (mean, rate, function of sums, ROC-AUC, count)
standard_measures  measures of every task: ROC-AUC of each detector, rates of labels
run_measures       measures of run files, and paired differences between runs
forced_options     measures of the distribution over the offered answers

Detectors of answers:
detector_table     detectors side by side on a run; detector_columns: their columns as a printed table
priced_scores      scores with what they cost, under a budget; sweep: AUROC against the number of answers
blind              baselines that see neither image nor draws; folds: cross-fitting
probe_table        fitted detectors; claim_probes: those of sentences
curves, threshold_report, cost    curves behind figures; effects of tuning; seconds and memory

Detectors of claims:
kept_claims        claims kept with a run, scored and measured
unit_table         detectors of claims side by side; unit_numbers: their numbers besides the ROC-AUC

Runs:
comparisons        two scores, or two runs on the same questions; run_variants: runs that differ in one setting
seed_spread        spread over seeds, and the draws' share of a variance
audited            numbers against experts
run_finding        the finding of a run in sentences; claim_finding: of its claims; trust_state: how far to trust them

Papers:
"""
