"""One sentence on each metric of a table, for readers unfamiliar with it."""

from __future__ import annotations

from collections.abc import Sequence

from scant_dashboard.translate import later

NORMALIZED = later(
    "mean squared error over the variance of the values; 0 is best, and predicting their mean "
    "gives 1."
)
FRACTION = later("percent of rows whose error is below this fraction of 1 + z; higher is better.")
# A metric is explained by the first of these that its name contains.
MEANINGS = {
    later("advantage in"): later(
        "by how many percent of the other method's score GPVC is better, averaged over the shares "
        "of rows that are kept."
    ),
    "p of": later(
        "a p-value: small values mean that chance alone does not explain the difference."
    ),
    later("average precision"): later(
        "the area under precision against recall, over all thresholds; 1 is best."
    ),
    later("balanced accuracy"): later(
        "the mean recall of the classes, so that a rare class counts as much as a "
        "common one; guessing between two classes gives 0.5."
    ),
    later("mean gain of F1 over random"): later(
        "difference in F1 between active and random sampling, averaged over the number of labels."
    ),
    later("F1 of whole pictures"): later(
        "F1 of pictures, where a picture is positive if any of its patches is."
    ),
    "F1": later("2 precision × recall / (precision + recall); 1 is best."),
    later("precision"): later(
        "share of the rows assigned to a class that belong to it; 1 is best."
    ),
    later("recall"): later("share of the rows of a class that are assigned to it; 1 is best."),
    later("accuracy"): later("share of the rows assigned to their class; 1 is best."),
    "mean log probability": later(
        "the mean logarithm of the predicted probability of the true class; "
        "higher is better, and 0 is best."
    ),
    later("mean log-likelihood"): later(
        "the mean logarithm of the predictive density at the true value; higher "
        "is better. It rewards accurate means and accurate variances."
    ),
    "CRPS": later(
        "continuous ranked probability score, how far the predicted distribution lies from the "
        "true value, in the unit of the target; lower is better, and 0 is best."
    ),
    later("CDE loss"): later(
        "conditional density estimation loss, the integral of the squared predictive "
        "density minus twice the mean density at the true value, in the inverse unit of the "
        "target; lower is better."
    ),
    "PIT-KS": later(
        "the largest distance between the distribution of the probability integral transform "
        "and the uniform one (Kolmogorov–Smirnov); 0 is best."
    ),
    "ECE": later(
        "expected calibration error, the mean gap between a predicted probability "
        "and the observed "
        "frequency; 0 is best."
    ),
    "restricted NMSE": later(
        "NMSE up to a horizon, beyond which too few times are observed; observed "
        "times are weighted for those censored before, so that predicting their mean again gives 1."
    ),
    "censored NLPD": later(
        "mean negative log density of the true values, and log probability of a longer"
        " time where a time is censored (nats); lower is better."
    ),
    "SMSE": NORMALIZED,
    "NMSE": NORMALIZED,
    "RMSE": later("root mean squared error, in the unit of the target; 0 is best."),
    "SNLP of a Gaussian": later(
        "SNLP of a Gaussian with the mean and variance of each prediction, as published for "
        "counts; lower is better."
    ),
    "SNLP": later(
        "mean negative log density of the true values, minus that of one Gaussian for all; "
        "lower is better, and 0 is no better than that Gaussian."
    ),
    "NLPD": later("mean negative log density of the true values (nats); lower is better."),
    later("deviation of the"): later(
        "median standard deviation of predictions in a bin of redshifts, due to the model or to "
        "the noise."
    ),
    "F,": FRACTION,
    "F_": FRACTION,
    later("median bias"): later("median error as a fraction of 1 + z; 0 is best."),
    later("bias"): later("mean error as a fraction of 1 + z; 0 is best."),
    "sigma_MAD": later(
        "spread of the errors as a fraction of 1 + z, by the median absolute deviation, "
        "which is robust to outliers."
    ),
    "sigma_IQR": later("the same spread by the interquartile range over 1.349."),
    later("outlier rate"): later("share of rows whose error is far beyond that spread."),
    "outliers beyond": later(
        "share of rows whose error, as a fraction of 1 + z, is larger than this; "
        "sigma is their spread by the quartiles."
    ),
    "coverage of": later(
        "percent of true values inside these intervals; it should equal the nominal percentage."
    ),
    "observed averages inside": later(
        "percent of the observed averages inside their 95% intervals; it should be near 95."
    ),
    "concordance": later(
        "share of pairs of patients with correctly predicted order of death; guessing gives 0.5."
    ),
    "relevant basis functions": later(
        "the smallest number of basis functions that have 99% of the sum of absolute weights."
    ),
    "log marginal likelihood": later(
        "the logarithm of the density of all training targets under the model (nats); higher is "
        "better."
    ),
    "z-score of": later(
        "mean distance of a mean over random draws from the formula, in deviations of the draws; 0 "
        "is best."
    ),
    later("B of classes"): later(
        "an entry of the coregionalization matrix: the prior covariance of the functions of two "
        "classes."
    ),
    later("mean absolute coregionalization"): later(
        "the mean absolute entry of the coregionalization matrices of the classes of two groups; "
        "high values mean that the groups learn from each other."
    ),
    "bound": later("how well the model explains its training rows (see Objective)."),
}
# Other names of metrics that are shown; the rest, such as RMSE, are the same in every language.
NAMES = (
    later("coverage"),
    later("coverage of the 50% interval"),
    later("coverage of the 80% interval"),
    later("coverage of the 95% interval"),
    later("labels"),
    later("F1, 5 splits"),
    later("mean log probability (nats)"),
    later("observed averages inside their 95% interval"),
    later("outliers beyond 0.15"),
    later("outliers beyond 3 sigma"),
    later("relevant basis functions"),
    later("SNLP of a Gaussian"),
    later("p of a paired t-test against DFGP"),
)
# Names of methods in reports that are not the same in every language.
METHODS = (
    later("this run"),
    later("random forest"),
    later("gradient boosting"),
    later("linear regression"),
    later("logistic regression"),
    later("logistic regression, active"),
    later("weighted logistic regression"),
    later("linear classifier, all labels"),
    later("nearest neighbor"),
    later("weighted SVM"),
    later("SCLVM, pixels alone"),
    later("BGPLVM + SVM, pixels alone"),
    later("DGPLVM + SVM, pixels alone"),
    later("weighted SVM, pixels alone"),
    later("weighted logistic regression, pixels alone"),
    later("SVM, averaged kernels"),
    later("best single view"),
    later("GP, active"),
    later("GP, random"),
    later("independent GPs"),
    later("pooled GP"),
    later("ICM on centroids"),
    later("exact GP on centroids, this task alone"),
    later("area-to-point kriging, this task alone"),
)
PERCENT = (
    "F_",
    "F, error",
    "advantage in",
    "coverage of",
    "observed averages inside",
)  # metrics in percent


def group_by_meaning(names: Sequence[str]) -> list[tuple[list[str], str]]:
    """Group known metrics by meaning: (names, meaning); unknown metrics are omitted."""
    result: dict[str, list[str]] = {}
    for name in dict.fromkeys(names):
        key = next((key for key in MEANINGS if key in name), None)
        if key is not None:
            result.setdefault(MEANINGS[key], []).append(name)
    if (covered := MEANINGS["coverage of"]) in result:
        result[covered] = ["coverage"]  # of any number of intervals
    return [(together, meaning) for meaning, together in result.items()]
