"""How well a score tells hallucinated answers from supported ones, how sure that is, and how well judges agree.

    roc          AUROC with standard error and interval (DeLong, Newcombe; by image the delete-one-group jackknife)
    strata       AUROC within kinds of questions
    paired       two scores on the same answers; two runs on the same documents, by AUROC or by any measure of sums
    multiple     several scores against one: p-values that hold for all of them together
    curves       risk-coverage curve and AURC
    agreement    Cohen's and Krippendorff's agreement of judges
    jackknife    any statistic of documents in groups, with error and interval
    betting      tests of a mean that are valid at any time
    rates        proportions with Wilson intervals
    means        means of documents in groups, with clustered standard errors
    draws        draws against their own log-probabilities: were they sampled as they should be?
    sums         any function of sums over documents (F1, ratios), in groups, with intervals and paired differences

Conventions: a *label* of 1 means hallucinated, 0 means not; a higher *score* means more likely hallucinated; *groups*
say which documents belong together, such as the questions on one image. A number that is not defined is never replaced
by a guess such as 0.5: it is reported as undefined, together with the reason. No result depends on the order of the
documents or on the names of the groups, and the same seed gives the same numbers.
"""

from hedge_tasks.statistics.agreement import (
    Agreement,
    cohen_kappa,
    krippendorff_alpha,
    percent_agreement,
    weighted_kappa,
)
from hedge_tasks.statistics.base import UndefinedStatistic
from hedge_tasks.statistics.curves import (
    Curve,
    area_under_risk_coverage,
    risk_coverage_curve,
)
from hedge_tasks.statistics.jackknife import jackknife
from hedge_tasks.statistics.means import estimate_mean
from hedge_tasks.statistics.multiple import max_t
from hedge_tasks.statistics.paired import (
    Comparison,
    compare_runs,
    compare_scores,
    compare_within,
)
from hedge_tasks.statistics.rates import compare_rates, estimate_rate, wilson_interval
from hedge_tasks.statistics.roc import auroc, estimate_auroc, newcombe_interval
from hedge_tasks.statistics.strata import StratifiedAuroc, stratified_auroc
from hedge_tasks.statistics.sums import compare_sums, estimate_of_sums, ratio

__all__ = [
    "UndefinedStatistic",
    "auroc",
    "estimate_auroc",
    "newcombe_interval",
    "StratifiedAuroc",
    "stratified_auroc",
    "Comparison",
    "compare_scores",
    "compare_within",
    "compare_runs",
    "max_t",
    "Curve",
    "risk_coverage_curve",
    "area_under_risk_coverage",
    "Agreement",
    "percent_agreement",
    "cohen_kappa",
    "weighted_kappa",
    "krippendorff_alpha",
    "estimate_mean",
    "jackknife",
    "estimate_rate",
    "compare_rates",
    "wilson_interval",
    "estimate_of_sums",
    "compare_sums",
    "ratio",
]
