"""What the metrics of a table mean, in a sentence each for who has not met them before."""

from __future__ import annotations

from collections.abc import Sequence

NORMALIZED = (
    "mean squared error over the variance of the values; 0 is best, and 1 is what their mean would "
    "score."
)
# A metric is explained by the first of these that its name contains.
MEANINGS = {
    "p of": "a p-value: the smaller, the less chance alone explains what is seen.",
    "average precision": "the area under precision against recall, over all thresholds; 1 is best.",
    "balanced accuracy": "the mean of the shares found of each class, so that a rare class counts "
    "as much as a common one; 0.5 is guessing between two.",
    "mean gain of F1 over random": "how much higher F1 is, on average over the number of labels, "
    "where patches are asked for and not drawn at random.",
    "F1 of whole pictures": "F1 where a picture counts as found if any of its patches is.",
    "F1": "2 precision × recall / (precision + recall); 1 is best.",
    "precision": "of the rows that the model puts into a class, the share that belongs there; 1 is "
    "best.",
    "recall": "of the rows of a class, the share that the model finds; 1 is best.",
    "accuracy": "the share of rows put into their class; 1 is best.",
    "mean log probability": "the mean logarithm of the probability given to the true class; higher "
    "is better, and 0 is certain and right.",
    "mean log-likelihood": "the mean logarithm of the density given to the true value; higher is "
    "better. It rewards being close and being honest about how close.",
    "ECE": "expected calibration error, the mean gap between a stated probability and how often it "
    "comes true; 0 is best.",
    "SMSE": NORMALIZED,
    "NMSE": NORMALIZED,
    "RMSE": "root of the mean squared error, in the unit of what is predicted; 0 is best.",
    "SNLP": "mean negative log density of the true values, less that of one Gaussian for all; "
    "lower is better, and 0 is no better than that Gaussian.",
    "NLPD": "mean negative log density of the true values (nats); lower is better.",
    "F_": "per cent of galaxies whose error is below this fraction of 1 + z; higher is better.",
    "bias": "mean error as a fraction of 1 + z; 0 is best.",
    "sigma_MAD": "spread of the errors as a fraction of 1 + z, by their median, which outliers do "
    "not move.",
    "outlier rate": "share of galaxies whose error is far beyond that spread.",
    "coverage of": "per cent of true values inside these intervals; it should be what the interval "
    "states.",
    "observed averages inside": "per cent of the recorded averages inside the interval that the "
    "model states for them; it should be near 95.",
    "concordance": "share of pairs of patients whose order of death is predicted; 0.5 is guessing.",
    "bound": "how well the model explains what it learnt from (see Objective).",
}
PERCENT = ("F_", "coverage of", "observed averages inside")  # metrics that are told in per cent


def explained(names: Sequence[str]) -> list[tuple[list[str], str]]:
    """Metrics with what they mean, those of one meaning together; unknown ones are left out."""
    found: dict[str, list[str]] = {}
    for name in dict.fromkeys(names):
        key = next((key for key in MEANINGS if key in name), None)
        if key is not None:
            found.setdefault(MEANINGS[key], []).append(name)
    if (covered := MEANINGS["coverage of"]) in found:
        found[covered] = ["coverage"]  # of however many intervals
    return [(together, meaning) for meaning, together in found.items()]
