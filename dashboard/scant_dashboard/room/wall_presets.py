"""Settings of the short runs on a wall, by study, and what is drawn of each run."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from scant.errors import BadInput
from scant.events import Report
from scant.studies import entry
from scant_dashboard.translate import later, tr

BINS = 24  # of the true redshift
LONGER = 3  # maximum of a setting, relative to its default range
HIGHEST = 1.2  # redshift of the simulated survey
YEAR = 1977  # of the aggregation study's curve, in the middle of the simulated years
SEED, SAMPLE = "seed", "sample"  # what varies from run to run, besides a setting by its name


@dataclass(frozen=True)
class Posterior:
    """Posterior mean of one run along an axis, NaN where it has none.

    Attributes:
        x: Values of the axis.
        mean: Posterior means.
        truth: True values, if known; else empty.
    """

    x: np.ndarray
    mean: np.ndarray
    truth: np.ndarray = field(default_factory=lambda: np.empty(0))


@dataclass(frozen=True)
class WallPreset:
    """What every run on a study's wall has in common.

    Attributes:
        settings: Changes to the study's preset `quick`.
        about: Sentence on how the runs differ from the study's demonstration.
        seed: What differs between runs of different seeds.
        sample: What differs between runs of different samples.
        setting: Setting that may vary instead, and its default range.
        metric: Name of the score among the metrics of a report.
        usual: What varies by default, `SEED` or `SAMPLE`.
        curve: Column of the curve: "elbo", or "score" where the objective is an estimate.
        axes: Labels of the axes of the posterior mean; empty without one.
        posterior: Posterior mean of a report with the metadata of its run.
        sampled: Settings of runs of different samples, and the seed that differs between them.
    """

    settings: Mapping[str, Any]
    about: str
    seed: str
    sample: str
    setting: tuple[str, float, float]
    metric: str
    usual: str = SEED
    curve: str = "elbo"
    axes: tuple[str, str] | tuple[()] = ()
    posterior: Callable[[Report, Mapping[str, Any]], Posterior] | None = None
    sampled: tuple[Mapping[str, Any], str] = field(default=({}, "data_seed"))


def _by_redshift(report: Report, metadata: Mapping[str, Any]) -> Posterior:
    """Mean prediction of the test galaxies in bins of the true redshift."""
    truth, mean = (np.asarray(report.arrays[name], float) for name in ("z_true", "z_mean"))
    edges = np.linspace(0, HIGHEST, BINS + 1)
    count, _ = np.histogram(truth, edges)
    total, _ = np.histogram(truth, edges, weights=mean)
    centers = (edges[:-1] + edges[1:]) / 2
    enough = count >= 3
    means = np.divide(total, count, out=np.full(BINS, np.nan), where=enough)
    return Posterior(centers, means, centers)


def _by_age(report: Report, metadata: Mapping[str, Any]) -> Posterior:
    """Births by age in the middle one of the years."""
    age, year = (np.asarray(edges, float) for edges in metadata["edges"])
    shape = (len(year) - 1, len(age) - 1)  # the first dimension is the fastest
    row = int(np.clip(np.searchsorted(year, YEAR, "right") - 1, 0, shape[0] - 1))
    mean = np.asarray(report.arrays["mean"], float).reshape(shape)[row]
    truth = metadata.get("truth") or []
    true = np.asarray(truth, float).reshape(shape)[row] if len(truth) else np.empty(0)
    return Posterior((age[:-1] + age[1:]) / 2, mean, true)


def _of_missing_replica(report: Report, metadata: Mapping[str, Any]) -> Posterior:
    """The curve of gene A in embryo 2, which is not measured."""
    gene = metadata["shown"].index("gene A")
    embryo = metadata["replicas"][gene].index("embryo 2")
    return Posterior(
        np.asarray(report.arrays["grid"], float),
        np.asarray(report.arrays["mean"], float)[gene, embryo],
    )


SAME_DATA = later("the same data, other random choices")
OWN_DATA = later("simulated data of its own")

PRESETS: dict[str, WallPreset] = {
    "redshift": WallPreset(
        {},
        later("500 galaxies to learn from, 10 basis functions and one start of 60 steps"),
        SAME_DATA, later("other galaxies of the same survey"), ("training_size", 30, 1000), "RMSE",
        usual=SAMPLE, axes=(later("true redshift"), later("mean prediction")),
        posterior=_by_redshift,
    ),
    "aggregation": WallPreset(
        {},
        later("40 inducing points and 80 steps"),
        later("the same country, other single cells"), later("a simulated country of its own"),
        ("fine_rows", 10, 300), "RMSE",
        axes=(later("age (years)"), later("first births in {year} (1/year)")), posterior=_by_age,
    ),
    "genes": WallPreset(
        {"n_inducing_outputs": 6, "n_inducing_inputs": 36, "max_steps": 100},
        later("100 steps instead of 400, and no other models for comparison"),
        SAME_DATA, later("another 60% of the measurements"), ("keep", 0.3, 1.0), "NMSE",
        usual=SAMPLE, axes=(later("hours"), later("gene A in embryo 2 (not measured)")),
        posterior=_of_missing_replica, sampled=({"keep": 0.6}, "seed"),
    ),
    "mitosis": WallPreset(
        {}, later("20 inducing points and 100 steps instead of 800"),
        later("the same cells, divided otherwise"), OWN_DATA, ("imbalance", 2, 30), "F1",
    ),
    "multiview": WallPreset(
        {}, later("40 steps instead of 150"),
        SAME_DATA, OWN_DATA, ("training_share", 0.05, 0.8), "F1", usual=SAMPLE,
    ),
    "omniglot": WallPreset(
        {}, later("8 latent dimensions, 30 inducing points and 60 steps"),
        later("the same letters, divided otherwise"), later("letters of its own"),
        ("shots", 1, 10), "F1",
        curve="score",
    ),
    "clamp": WallPreset(
        {}, later("130 labels instead of 230, in 2 sessions"),
        later("the same patches, other first labels"), later("pictures of its own"),
        ("budget", 40, 200), "F1",
        curve="score",
    ),
}  # fmt: skip


@dataclass(frozen=True)
class Variation:
    """What varies from run to run of a wall; with a setting, the seed varies too.

    Attributes:
        study: Name of the study.
        name: `SEED`, `SAMPLE`, or the name of a setting.
        low: Lowest value of the setting.
        high: Highest value of the setting.
    """

    study: str
    name: str = SEED
    low: float = 0.0
    high: float = 0.0

    @classmethod
    def parse(cls, study: str, raw: Mapping[str, Any]) -> Variation:
        """Parse a request of the presenter's browser: `name`, `low` and `high`.

        Raises:
            BadInput: The name is unknown, or the bounds are no range of the setting.
        """
        name, preset = raw.get("name"), PRESETS[study]
        if name in (SEED, SAMPLE):
            return cls(study, str(name))
        setting, _, usual_high = preset.setting
        if name != setting:
            raise BadInput(
                tr(
                    "Runs differ by {seed}, {sample} or {setting}; choose one.",
                    seed=SEED,
                    sample=SAMPLE,
                    setting=setting,
                )
            )
        label = setting.replace("_", " ")
        try:
            low, high = float(raw["low"]), float(raw["high"])
            if not (math.isfinite(low) and math.isfinite(high)):
                raise ValueError
        except (KeyError, TypeError, ValueError):
            raise BadInput(
                tr("Give the lowest and the highest {setting}, as numbers.", setting=label)
            ) from None
        if not low < high:
            raise BadInput(tr("The lowest {setting} must be below the highest.", setting=label))
        if high > LONGER * usual_high:
            raise BadInput(
                tr(
                    "On a wall {setting} is at most {limit:g}, so that runs stay short.",
                    setting=label,
                    limit=LONGER * usual_high,
                )
            )
        made = cls(study, setting, low, high)
        for k in (1, 2):  # both bounds
            entry(study).parse("demo", made.settings(k))
        return made

    def value(self, number: int) -> float:
        """Return what a run has of it, by the number of the run from 1.

        Values of a setting begin with its bounds and then halve the gaps, so that any number of
        runs covers the range evenly.
        """
        if self.name in (SEED, SAMPLE):
            return number - 1
        share = (0.0, 1.0)[number - 1] if number <= 2 else _halving(number - 2)
        value = self.low + share * (self.high - self.low)
        whole = isinstance(getattr(entry(self.study).settings(), self.name), int)
        return round(value) if whole else float(f"{value:.3g}")

    def settings(self, number: int) -> dict[str, Any]:
        """Return the settings of a run, by its number from 1."""
        preset, spec = PRESETS[self.study], entry(self.study)
        values = {**spec.presets["quick"], **preset.settings}
        if self.name == SAMPLE:
            sampled, seed = preset.sampled
            first = int(values.get(seed, 0))
            return {**values, **sampled, seed: first + number - 1}
        if self.name == SEED:
            return {**values, SEED: self.value(number)}
        return {**values, self.name: self.value(number), SEED: number - 1}

    def title(self, number: int) -> str:
        """Return the name of a run: "seed 3", "training_size 120"."""
        value = self.value(number)
        shown = number if self.name == SAMPLE else f"{value:g}"
        return f"{self.name} {shown}".replace("_", " ")


def _halving(k: int) -> float:
    """Return the k-th number of the van der Corput sequence: 1/2, 1/4, 3/4, 1/8, ..."""
    value, part = 0.0, 0.5
    while k:
        value += part * (k & 1)
        k, part = k >> 1, part / 2
    return value
