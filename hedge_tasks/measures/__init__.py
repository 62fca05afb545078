"""Numbers of finished runs.

Declared numbers:
measure            `Measure`: a number that is declared once; its kinds (mean, rate, function of sums, ROC-AUC, count)
standard_measures  measures of every task: ROC-AUC of each detector, rates of labels
run_measures       measures of run files, and paired differences between runs
forced_options     measures of the distribution over the offered answers

Detectors:
detector_table     detectors of answers side by side, and the one printed table of detectors of any unit
unit_table         detectors of claims side by side, also of those kept with a run; unit_numbers: their further numbers
priced_scores      scores with what they cost, under a budget; sweep: AUROC against the number of answers
blind              baselines that see neither image nor draws; folds: their cross-fitting
fitted             fitted detectors of answers and of sentences
threshold_report   ways of choosing the threshold of embedding clustering
curves             curves behind figures

Runs:
comparisons        two scores, or two runs on the same questions
seed_spread        runs that differ in the seed alone, their spread, and the draws' share of a variance
audited            numbers against experts
headline           rate, lead and tests of a run, for every place; claim_finding: of claims; trust_state: of both

Papers:
"""
