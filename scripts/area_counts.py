"""Counts of areas known in groups only: Scant beside areal models, and what a stranger would do.

    python scripts/area_counts.py                        # all: data/results/area_counts.csv
    python scripts/area_counts.py --data nc --seeds 0 1 --out two.csv
    python scripts/area_counts.py --data nc --methods "scant, both" --set n_inducing=150

Polygons of a map are merged into 20 contiguous groups, at random by the seed
(`scant.studies.aggregation.grouping`). The groups' counts of the last period are known, the counts
of its single areas are predicted. Two designs: `same groups`, where the other period is known by
the same groups, and `areas`, where it is known by area. Maps: `nc`, infant deaths in North
Carolina, ships with the package; `stl`, homicides around St. Louis, `tokyo`, deaths by
municipality, and `georgia`, education by county, are in libpysal.

R-INLA, which its authors give out through a repository of their own, is not among the methods; the
models that are built in it are, by our own implementation (`areal_models`). tobler is
compared with where it is installed.

Columns: `log_score`, mean log probability of the areas' counts (nats); `rmse` of their rates, per
1,000, and `rmse_weighted`, by exposure; `coverage`, per cent of the counts in the central 95 %
interval, a count on its edge by the share that lies inside, so that a right model has 95; `total`,
per cent by which the sum of the predictions is off the known total; `seconds` of the fit. Lines of
cases that the file has already are replaced. The file in the repository has
20 groupings of `nc` with `scant, both`, and fewer of the other methods and maps, on two busy cores.
"""

from __future__ import annotations

import argparse
import math
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import shapely
import torch

import areal_models as areal
from areal_models import LogRates, Problem
from scant.models.mtgpa.likelihoods import Moments
from scant.studies.aggregation import polygons
from scant.studies.aggregation.grouping import merged, neighbors, regions
from scant.studies.aggregation.simulate import counties
from scant.studies.split import TEST
from scant.tables import geometry

OUT = Path(__file__).parents[1] / "data" / "results" / "area_counts.csv"
GROUPS = 20
KEY = ["data", "design", "method", "seed"]
MOST_COUNTS = 2000  # whose probabilities are added up
SCORES = ["log_score", "rmse", "rmse_weighted", "coverage", "total", "seconds"]
Probability = Callable[[np.ndarray, np.ndarray], np.ndarray]  # log; of areas and their counts
Predicted = tuple[np.ndarray, Probability]  # with the counts' means


class Map(NamedTuple):
    """Two periods' counts by area: a table of areas, and the names of both tasks."""

    table: pd.DataFrame
    other: str
    wanted: str

    @property
    def shapes(self) -> np.ndarray:
        """Polygons of one task, in degrees."""
        cells = self.table.loc[self.table["task"] == self.wanted, geometry.COLUMN].tolist()
        return geometry.geometries(cells, "the map", range(len(cells)))

    def of(self, task: str) -> tuple[np.ndarray, np.ndarray]:
        """Counts and exposures of a task."""
        own = self.table[self.table["task"] == task]
        return own["y"].to_numpy(float), own["exposure"].to_numpy(float)


def nc() -> Map:
    return Map(counties.counties(), counties.EARLY, counties.LATE)


def example(
    file: str,
    system: str,
    counts: dict[str, tuple[str, str]],
    further: Callable[[pd.DataFrame], pd.DataFrame] = lambda read: read,
) -> Map:
    """A set that libpysal ships in its wheel.

    Args:
        file: Of its polygons.
        system: Of their coordinates.
        counts: Task to the columns of its counts and exposures, the wanted task last.
        further: Makes columns.
    """
    import geopandas
    from libpysal.examples import get_path

    read = further(geopandas.read_file(get_path(file)))
    cells = geometry.in_degrees(read.geometry.to_numpy(), system, file)
    parts = [
        pd.DataFrame(
            {
                "task": task,
                "y": read[y].astype(float),
                "exposure": read[people].astype(float),
                geometry.COLUMN: cells,
                "split": "train",
            }
        )
        for task, (y, people) in counts.items()
    ]
    # The people of the period that is asked about, whose totals are looked at.
    people = counties.with_people(parts[-1], counties.BIRTHS)
    people = people[people["task"] == counties.BIRTHS]
    table = pd.concat([*parts, people], ignore_index=True)
    *others, wanted = counts
    return Map(table, others[0] if others else "", wanted)


def stl() -> Map:
    own = {f"homicides {years}": (f"HC{years}", f"PO{years}") for years in ("7984", "8893")}
    return example("stl_hom.shp", geometry.DEGREES, own)


def tokyo() -> Map:
    """Deaths of 1990 at 25 to 64 years, beside those expected by age and sex."""
    from libpysal.examples import get_path

    def deaths(read: pd.DataFrame) -> pd.DataFrame:
        own = pd.read_csv(get_path("Tokyomortality.csv"), lineterminator="\r")
        return read.merge(own, left_on="AreaID", right_on="IDnum0", validate="1:1")

    return example("tokyomet262.shp", "EPSG:30166", {"deaths 1990": ("db2564", "eb2564")}, deaths)


def georgia() -> Map:
    """The rural in 1990 and, wanted, those with a bachelor's degree: where many are, the other
    are few."""

    def people(read: pd.DataFrame) -> pd.DataFrame:
        made = {
            name: (read["TotPop90"] * read[f"Pct{name}"] / 100).round()
            for name in ("Rural", "Bach")
        }
        return read.assign(**made)

    own = {"rural": ("Rural", "TotPop90"), "bachelors": ("Bach", "TotPop90")}
    return example("G_utm.shp", "EPSG:26916", own, people)


MAPS = {"nc": nc, "stl": stl, "tokyo": tokyo, "georgia": georgia}


class Case(NamedTuple):
    """One grouping of a map under a design."""

    own: Map
    design: str
    seed: int

    @property
    def group(self) -> np.ndarray:
        return regions(neighbors(self.own.shapes), GROUPS, self.seed)

    @property
    def table(self) -> pd.DataFrame:
        """As it is fitted: what is tested is marked."""
        made = merged(self.own.table, self.own.wanted, GROUPS, self.seed)
        if (
            self.design != "areas" and self.own.other
        ):  # the other period in the same groups, its areas left out
            made = merged(made, self.own.other, GROUPS, self.seed)
            other = made["task"] == self.own.other
            made = made[~(other & (made["split"] == TEST))].reset_index(drop=True)
        return made

    def problem(self, task: str, grouped: bool) -> Problem:
        y, people = self.own.of(task)
        inside = self.group == np.arange(GROUPS)[:, None] if grouped else np.eye(len(y), dtype=bool)
        return Problem(inside @ y, inside * people, np.ones((len(y), 1)))

    @property
    def alone(self) -> Problem:
        return self.problem(self.own.wanted, True)

    @property
    def both(self) -> Problem:
        other = self.problem(self.own.other, self.design == "same groups")
        return areal.joined([other, self.alone])


def scant(case: Case, table: pd.DataFrame, values: dict[str, Any]) -> Predicted:
    """Means of the areas' counts and their log probabilities, of a fit with the defaults."""
    from scant.studies.aggregation import preprocessing as space
    from scant.training.api import fit

    people = {"population_task": counties.BIRTHS}
    run = fit("aggregation", table, own=False, **people, **values)
    for _ in run:
        pass
    study: Any = run.study
    fitted = study.posterior
    rows = table[table["split"] == TEST]
    supports = space.read(
        study.settings, rows.drop(columns="y"), study.metadata, study.posterior.people
    )
    number = fitted.task(case.own.wanted)
    data = fitted.data_of(supports, np.arange(len(rows)))
    told = fitted.model.log_rates(data.supports, number)  # once for all counts
    likelihood = fitted.model.likelihoods[number]

    @torch.no_grad()
    def probability(areas: np.ndarray, y: np.ndarray) -> np.ndarray:
        i, count = torch.as_tensor(areas), data.y.new_tensor(y)
        each = [
            likelihood.log_predictive(
                count, Moments(q.mean[:, i], q.covariance[..., i]), data.exposures()[i]
            )
            + math.log(weight)
            for weight, q in told
        ]
        return np.asarray(torch.stack(each).logsumexp(0))

    return fitted.predictions(supports)["mean"], probability


def of_rates(case: Case, rates: LogRates) -> Predicted:
    people = case.own.of(case.own.wanted)[1]
    return people * rates.rate(), lambda areas, y: rates.at(areas).log_probability(y, people[areas])


def poisson(mean: np.ndarray) -> Predicted:
    from scipy.stats import poisson as distribution

    return mean, lambda areas, y: distribution.logpmf(y, np.maximum(mean[areas], 1e-9))


def methods(case: Case, values: dict[str, Any]) -> Iterator[tuple[str, Callable[[], Any]]]:
    """Name and fit of each method that the design has."""
    table, n = case.table, len(case.own.shapes)
    second = np.arange(n, 2 * n)
    alone = table[table["task"] != case.own.other].reset_index(drop=True)
    people = case.own.of(case.own.wanted)[1]
    touching = np.zeros((n, n), dtype=bool)
    for i, near in enumerate(neighbors(case.own.shapes)):
        touching[i, near] = True
    middles = shapely.centroid(case.own.shapes)
    places = np.column_stack([shapely.get_x(middles), shapely.get_y(middles)])
    places[:, 0] *= np.cos(np.radians(places[:, 1].mean()))
    tasks = np.ones((2, 2))
    several = bool(case.own.other)
    if several:
        yield "scant, both", lambda: scant(case, table, values)
    if case.design == "same groups":
        yield "scant, alone", lambda: scant(case, alone, values)
        yield "group's rate", lambda: poisson(people * areal.group_rate(case.alone))
        yield "area-weighted (tobler)", lambda: poisson(by_area(case))
        yield "BYM2 of groups, alone", lambda: of_rates(case, of_groups(case, touching))
        yield "BYM2 of areas, alone", lambda: of_rates(case, areal.bym2(case.alone, touching))
        yield "Matern field, alone", lambda: of_rates(case, areal.matern(case.alone, places))
    if not several:
        return
    yield (
        "BYM2 of areas, both",
        lambda: of_rates(case, areal.bym2(case.both, touching, tasks).at(second)),
    )
    yield (
        "Matern field, both",
        lambda: of_rates(case, areal.matern(case.both, places, tasks).at(second)),
    )


def of_groups(case: Case, touching: np.ndarray) -> LogRates:
    """BYM2 whose units are the groups; an area has its group's rate."""
    inside = (case.group == np.arange(GROUPS)[:, None]).astype(int)
    met = (inside @ touching @ inside.T > 0) & ~np.eye(GROUPS, dtype=bool)
    y, people, _ = case.alone
    whole = Problem(y, np.diag(people.sum(1)), np.ones((GROUPS, 1)))
    return areal.bym2(whole, met).at(case.group)


def by_area(case: Case) -> np.ndarray:
    shapes, group = case.own.shapes, case.group
    whole = np.array([shapely.union_all(shapes[group == g]) for g in range(GROUPS)])
    system = polygons.equal_area(*shapely.total_bounds(shapes).tolist())
    return areal.by_area(whole, shapes, case.alone.y, system)


def scored(case: Case, fitted: Callable[[], Any]) -> dict[str, float]:
    begun = time.monotonic()
    mean, probability = fitted()
    seconds = time.monotonic() - begun
    y, people = case.own.of(case.own.wanted)
    wrong = 1000 * (mean - y) / people
    every, upto = np.arange(len(y)), np.zeros(len(y))
    for i, most in enumerate(y):  # counts up to that of each area, or some of very many
        least = np.unique(np.rint(np.linspace(0, most, min(int(most), MOST_COUNTS) + 1)))
        p = np.exp(probability(np.full(len(least), i), least))
        stands = np.diff(least, prepend=-1.0)
        upto[i] = (p * stands).sum()
    below = upto - np.exp(probability(every, y))
    inside = np.minimum(upto, 0.975) - np.maximum(below, 0.025)
    share = np.maximum(inside, 0) / np.maximum(upto - below, 1e-300)
    return {
        "log_score": float(probability(every, y).mean()),
        "rmse": float(np.sqrt((wrong**2).mean())),
        "rmse_weighted": float(np.sqrt(np.average(wrong**2, weights=people))),
        "coverage": float(100 * share.mean()),
        "total": float(100 * (mean.sum() / y.sum() - 1)),
        "seconds": seconds,
    }


def main() -> None:
    """Measure and write the table; print its means."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", nargs="*", default=list(MAPS), choices=list(MAPS))
    parser.add_argument("--seeds", nargs="*", type=int, default=list(range(20)))
    parser.add_argument("--designs", nargs="*", default=["same groups", "areas"])
    parser.add_argument("--methods", nargs="*", default=[], help="beginnings of names; all")
    parser.add_argument("--set", nargs="*", default=[], help="settings of Scant, name=value")
    parser.add_argument("--out", type=Path, default=OUT)
    asked = parser.parse_args()
    values = dict(word.split("=", 1) for word in asked.set)
    known = pd.read_csv(asked.out) if asked.out.is_file() else pd.DataFrame(columns=KEY)
    for data in asked.data:
        own = MAPS[data]()
        for seed in asked.seeds:
            for design in asked.designs:
                case = Case(own, design, seed)
                for name, fitted in methods(case, values):
                    if asked.methods and not name.startswith(tuple(asked.methods)):
                        continue
                    try:
                        scores = scored(case, fitted)
                    except ImportError as error:
                        print(f"{name}: {error}", file=sys.stderr)
                        continue
                    line = dict(zip(KEY, (data, design, name, seed))) | scores
                    print(line, flush=True)
                    same = (known[KEY] == pd.Series(line)[KEY]).all(axis=1)
                    known = pd.concat([known[~same], pd.DataFrame([line])], ignore_index=True)
                    known.sort_values(KEY).round(4).to_csv(asked.out, index=False)
    print(known.groupby(KEY[:3])[SCORES].mean().round(3).to_string())


if __name__ == "__main__":
    main()
