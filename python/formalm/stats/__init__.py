"""Statistics for comparing models: intervals, tests, effect sizes, power.

SciPy's special functions and root finders do the mathematics; they are imported on first use
(``pip install "formalm[stats]"``). Every interval states its coverage, and every p-value the method
that computed it.

``scipy.stats`` and statsmodels are not used. The former takes three times as long to import, has no
clusters, margins, inputs with bounds or exact tables of any size, and its random tables need memory
for every count. The latter requires pandas; here it would replace Holm's and McNemar's formulas,
ten lines each.
"""

from formalm.stats.bootstrap import bootstrap
from formalm.stats.categorical_effects import (
    counted_jensen_shannon,
    counted_log_odds_ratio,
    counted_total_variation,
    cramers_v,
)
from formalm.stats.clustered_means import clustered_mean
from formalm.stats.distances import jensen_shannon, log_odds_ratio, log_ratio, total_variation
from formalm.stats.homogeneity import expected_counts, homogeneity
from formalm.stats.multiplicity import benjamini_hochberg, holm
from formalm.stats.paired_tests import mcnemar, paired_odds_ratio
from formalm.stats.permutation import permutation, sign_flips
from formalm.stats.power import (
    detectable_association,
    detectable_difference,
    detectable_mean,
    power_of_association,
    power_of_difference,
    power_of_mean,
)
from formalm.stats.proportions import clopper_pearson, wilson
from formalm.stats.statistic_results import Quantity, Significance

__all__ = [
    "Quantity",
    "Significance",
    "benjamini_hochberg",
    "bootstrap",
    "clopper_pearson",
    "clustered_mean",
    "counted_jensen_shannon",
    "counted_log_odds_ratio",
    "counted_total_variation",
    "cramers_v",
    "detectable_association",
    "detectable_difference",
    "detectable_mean",
    "expected_counts",
    "holm",
    "homogeneity",
    "jensen_shannon",
    "log_odds_ratio",
    "log_ratio",
    "mcnemar",
    "paired_odds_ratio",
    "permutation",
    "power_of_association",
    "power_of_difference",
    "power_of_mean",
    "sign_flips",
    "total_variation",
    "wilson",
]
