"""Claims of each page on its demonstration, and their spread over draws of the data.

    python scripts/demo_spread.py genes

Fits the demonstration to ten draws of its data (data seeds 0 to 9) and writes their scores to
data/results/demonstrations.csv, from which pages tell the spread (`scant.studies.demo_draws`).
Prints each claim of the page's story (its value on the recorded draw, its median and range, and how
many draws fulfill it) and which draws are nearest to the medians: one of them is to be recorded.
"""

from __future__ import annotations

import csv
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import cross_val_predict
from sklearn.neighbors import KNeighborsClassifier

import scant
from scant.events import Finished, Report
from scant.package_data import package_file
from scant.store import Store
from scant.store.recordings import SUFFIX
from scant.studies import STUDIES
from scant.studies.demo_draws import COLUMNS, FILE
from scant.verdict import LARGER

DRAWS = 10
RUN = "this run"
OUT = Path(__file__).parents[1] / "data" / "results" / FILE
KEPT = {*LARGER, "ECE", "average precision", "mean gain of F1 over random"}  # scores in the file


class Claim(NamedTuple):
    """A sentence of a page's story as a number, which is at least `minimum` where it is true."""

    text: str
    value: Callable[[Report], float]
    minimum: float = 0.0

    def holds(self, report: Report) -> bool:
        return self.value(report) >= self.minimum


def score(report: Report, name: str, method: str = RUN) -> float:
    """One figure of a report."""
    return next(m.value for m in report.metrics if (m.method, m.name) == (method, name))


def ahead(name: str, *others: str, method: str = RUN, sign: int = 1) -> Callable[[Report], float]:
    """Return the margin of one method's score over the best of some others.

    Args:
        name: The score.
        others: The other methods; none: all that were trained beside the run.
        method: The one.
        sign: -1 where less is better.
    """

    def value(report: Report) -> float:
        rivals = others or {m.method for m in report.metrics if m.source == "baseline"}
        best = max(sign * score(report, name, other) for other in rivals)
        return sign * score(report, name, method) - best

    return value


def mean_gain(report: Report) -> float:
    """F1 that the run's session is ahead of random ones, averaged over the number of labels."""
    labels, (active, random) = report.arrays["labels"], report.arrays["f1"]
    return float(np.trapezoid(active - random, labels) / (labels[-1] - labels[0]))


def share_of_rare_labels(report: Report) -> float:
    """Share of the rare class among the labels, divided by its share of the pool."""
    a = report.arrays
    return float(a["asked_label"].mean() / a["truth"][a["role"] == 0].mean())


def deviation_reduction(report: Report) -> float:
    """Share by which the field's deviation at observed single cells is below held-out ones'."""
    a = report.arrays
    noise = np.median(np.square(a["std_y"]) - np.square(a["std_f"]))
    at = [a["check"][3, a["check"][0] == 0], a["test_std"]]
    observed, held_out = (np.sqrt(np.maximum(np.square(d) - noise, 0)) for d in at)
    return float(1 - np.median(observed) / np.median(held_out))


def latent_group_contrast(report: Report) -> float:
    """Mean correlation of genes simulated alike (A, B, C and D, E) less that of the others."""
    group = np.array([0, 0, 0, 1, 1, 2])
    same, K = group[:, None] == group, report.arrays["K"]
    return float(K[same & ~np.eye(6, dtype=bool)].mean() - K[~same].mean())


def mixed_classes(report: Report) -> float:
    """Overlap of the classes in the shared dimensions: 1 where no neighbor tells them apart."""
    a = report.arrays
    x, rare = a["latent_mean"][:, :2], a["latent_class"] == 0
    p = cross_val_predict(KNeighborsClassifier(15), x, rare, cv=5, method="predict_proba")
    return 2 * (1 - max(0.5, float(roc_auc_score(rare, p[:, 1]))))


def private_spread(report: Report) -> float:
    """Deviation of the rare class in its strongest private dimension; 0: unused, 1: the prior's."""
    a = report.arrays
    strongest = 2 + int(np.argmax(a["relevance"][2:]))  # two dimensions are shared
    return float(a["latent_mean"][a["latent_class"] == 0, strongest].std())


def shared_functions(report: Report) -> float:
    """Mean absolute entry of the matrices between alphabets, divided by that within one."""
    size, classes = np.abs(report.arrays["shown_B"]), np.repeat([0, 1, 2], [12, 12, 10])
    same, apart = classes[:, None] == classes, ~np.eye(len(classes), dtype=bool)
    return float(size[:, ~same].mean() / size[:, same & apart].mean())


def separating_neuron(report: Report) -> float:
    """Largest area under the ROC curve of one neuron on the held-out rows."""
    a = report.arrays
    areas = [roc_auc_score(a["truth"], neuron) for neuron in a["hidden"].T]
    return float(np.abs(np.array(areas) - 0.5).max() + 0.5)


def flat_neurons(report: Report) -> float:
    """How many neurons vary over the rows by less than a fifth of the one that varies most."""
    deviation = report.arrays["hidden"].std(0)
    return float((deviation < 0.2 * deviation.max()).sum())


CLAIMS: dict[str, tuple[Claim, ...]] = {
    "clamp": (
        Claim("active sampling is ahead of random by .10 of F1, in the session shown", mean_gain,
              0.10),
        Claim("active sampling is ahead of random by .10 of F1, mean of the sessions",
              lambda r: score(r, "mean gain of F1 over random", "GP, active"), 0.10),
        Claim("the rare class receives more than its share of labels", share_of_rare_labels, 1.5),
    ),
    "aggregation": (
        Claim("coarse averages reduce the error of fine values (RMSE, share)",
              lambda r: 1 - score(r, "RMSE")
              / score(r, "RMSE", "exact GP on centroids, this task alone"), 0.1),
        Claim("boxes as boxes are better than as their centroids (RMSE)",
              ahead("RMSE", "ICM on centroids", sign=-1)),
        Claim("the deviation shrinks near fine values (share)", deviation_reduction),
    ),
    "redshift": (
        Claim("the error of the surest half is below that of all galaxies (RMSE, share)",
              lambda r: 1 - r.arrays["kept"][1, 9] / r.arrays["kept"][1, -1], 0.2),
        Claim("without a band the density is wider (nats)",
              lambda r: r.arrays["missing"][5, 0] - r.arrays["missing"][5, 1], 0.1),
        Claim("the density is better than those of forests and boosting (nats)",
              lambda r: r.arrays["missing"][5, 0] - np.nanmax(r.arrays["missing"][6:9, 0])),
        Claim("without a band it is, too (nats)",
              lambda r: r.arrays["missing"][5, 1] - np.nanmax(r.arrays["missing"][6:9, 1])),
    ),
    "genes": (
        Claim("missing replicas are predicted better than by the mean (1 - NMSE)",
              lambda r: 1 - score(r, "NMSE"), 0.3),
        Claim("models that know less are worse (NMSE)", ahead("NMSE", sign=-1)),
        Claim("missing replicas lie in their bands (95% interval, %)",
              lambda r: score(r, "coverage of the 95% interval"), 80.0),
        Claim("similar outputs lie together (correlation)", latent_group_contrast, 0.1),
    ),
    "mitosis": (
        Claim("the classes mix in the shared dimensions (overlap)", mixed_classes, 0.5),
        Claim("the rare class spreads out in its private dimensions (deviation, prior: 1)",
              private_spread, 0.5),
        Claim("shared and private dimensions are better than one space and an SVM (F1)",
              ahead("F1", "BGPLVM + SVM", "DGPLVM + SVM")),
    ),
    "multiview": (
        Claim("a useful view's neuron separates the classes (area under ROC)", separating_neuron,
              0.8),
        Claim("other neurons stay flat (number)", flat_neurons, 1.0),
        Claim("views together are better than the best by itself (F1)",
              ahead("F1", "best single view")),
        Claim("averaged kernels are a strong baseline: better than a single view (F1)",
              ahead("F1", "best single view", method="SVM, averaged kernels")),
    ),
    "omniglot": (
        Claim("the matrices fill between alphabets as much as within one (share)",
              shared_functions, 0.8),
        Claim("alphabets help one another: better than each by itself (recall)",
              ahead("recall", "G-M", "G-A")),
    ),
}  # fmt: skip


def recorded(study: str) -> Report:
    """The report of the recorded demonstration."""
    with tempfile.TemporaryDirectory() as folder:
        store = Store.open(f"sqlite:///{folder}/runs.db")
        run = store.import_recording(package_file("recordings", study + SUFFIX).read_bytes())
        report = store.report(run)
        store.close()
    assert report is not None, "a recording has the report of a finished run"
    return report


def draws(study: str) -> Iterator[Report]:
    """Reports of the demonstration on its draws."""
    for seed in range(DRAWS):
        *_, end = scant.fit(study, data_seed=seed)
        assert isinstance(end, Finished), "the last event of a fit says how it ended"
        yield end.report


def rows_of(study: str, seed: int, report: Report) -> list[tuple[object, ...]]:
    """Rows of the file: the scores of one draw."""
    return [
        (study, seed, m.method, m.source, m.name, f"{m.value:.4g}")
        for m in report.metrics
        if m.source in ("run", "baseline") and m.name in KEPT
    ]


def write(study: str, reports: Sequence[Report]) -> None:
    """Replace the study's rows of the file."""
    rows: list[Sequence[object]] = []
    if OUT.is_file():
        with OUT.open(encoding="utf-8", newline="") as file:
            rows = [row for row in list(csv.reader(file))[1:] if row[0] != study]
    for seed, report in enumerate(reports):
        rows += rows_of(study, seed, report)
    with OUT.open("w", encoding="utf-8", newline="") as file:
        csv.writer(file, lineterminator="\n").writerows([COLUMNS, *sorted(rows, key=_place)])


def _place(row: Sequence[object]) -> tuple[int, int]:
    return STUDIES.index(str(row[0])), int(str(row[1]))


def nearest(study: str, reports: Sequence[Report]) -> list[tuple[float, int]]:
    """Draws by their mean distance from the median rank, over the run's scores and the claims."""
    kept = {m.name for m in reports[0].metrics if m.source == "run" and m.name in KEPT}
    values = [[score(report, name) for report in reports] for name in sorted(kept)]
    values += [[claim.value(report) for report in reports] for claim in CLAIMS[study]]
    ranks = np.argsort(np.argsort(values, axis=1, kind="stable"), axis=1)
    distance = np.abs(ranks - (len(reports) - 1) / 2).mean(0)
    return sorted((float(d), seed) for seed, d in enumerate(distance))


def spread(values: list[float]) -> str:
    """Median, range and each value."""
    low, median, high = np.quantile(values, [0, 0.5, 1])
    return f"{median:.3g} ({low:.3g} to {high:.3g}); " + " ".join(f"{v:.3g}" for v in values)


def main(studies: list[str]) -> None:
    """Print scores and claims of these studies' demonstrations, or of all."""
    for study in studies or STUDIES:
        record, reports = recorded(study), list(draws(study))
        write(study, reports)
        order = ", ".join(f"{seed} ({d:.1f})" for d, seed in nearest(study, reports))
        print(f"{study}: data seeds by their distance from the median rank: {order}", flush=True)
        for claim in CLAIMS[study]:
            values = [claim.value(report) for report in reports]
            held = sum(claim.holds(report) for report in reports)
            print(
                f"{study}: {claim.text}: at least {claim.minimum:g}; recorded "
                f"{claim.value(record):.3g}; {held} of {DRAWS}; {spread(values)}",
                flush=True,
            )


if __name__ == "__main__":
    main(sys.argv[1:])
