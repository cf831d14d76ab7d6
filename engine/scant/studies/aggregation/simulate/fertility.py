"""Fertility by age and year: a simulated country, and the publication's experiments.

A table of *cells* has a row for each year of age and calendar year: `age_lo`, `age_hi`, `year_lo`,
`year_hi` (years) and `order1`, `order2` …, births of that order per woman of that age in that year
(1/year), averaged over the cell. `experiment` converts it to the long-form table of the publication
(Yousefi 2021, section 5.3): all means over 5×5 or 2×2 boxes, and few cells of a single year.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import pandas as pd
from jaxtyping import Float

from scant.errors import BadInput
from scant.studies.aggregation.thinning import Seeded, coarsen, scarce, thinned
from scant.studies.split import TEST, TRAIN

AGES = (15, 55)  # years, half-open as in the publication: 15 to 54
YEARS = (1944, 2010)  # half-open: 1944 to 2009
TASKS = {1: "first births", 2: "second births", 3: "third births", 4: "fourth births"}
TRAINING_CELLS, TEST_CELLS = 1640, 1000
N_FINE = (50, 100, 200, 500, 1000, 1640)  # fine observations along the curves of figs. 5.2-5.5
SEEDS = (0, 1, 2, 3, 4)  # of five splits
WOMEN = 20_000.0  # of one age, as many as in a country a tenth of Canada's size


class Schedule(NamedTuple):
    """When and how often women have a child of one order, by cohort (year of birth).

    The age schedule mixes an early log-normal part, larger for the cohorts of the baby boom, and a
    late normal part, which moves to higher ages as later cohorts postpone. It roughly fits Canada
    (correlation 0.99).
    """

    early_age: float  # median, years
    early_spread: float  # of log(age - 12)
    late_age: float  # mean before postponement, years
    late_spread: float  # years
    late_share: float
    boom_cohort: float  # with the smallest late share
    boom_depth: float  # share of the late part that becomes early then
    boom_width: float  # years
    postponed: float  # years that the late part moves
    postponing_cohort: float  # at half of the move
    postponing_width: float  # years
    children: float  # per woman, first cohorts
    fewer: float  # decrease of later cohorts
    peak_year: float  # of the baby boom
    peak: float  # log of the factor then
    peak_width: float  # years


SCHEDULES = {
    1: Schedule(
        22.0, 0.33, 25.0, 5.4, 0.9, 1937, 0.75, 11, 8.0, 1967, 11, 0.82, 0.07, 1958, 0.18, 9
    ),
    2: Schedule(
        24.9, 0.33, 28.2, 4.9, 0.8, 1936, 0.95, 10, 5.2, 1969, 7, 0.69, 0.06, 1958, 0.24, 6
    ),
}


def rate(
    order: int, age: Float[np.ndarray, "..."], year: Float[np.ndarray, "..."], seed: int = 0
) -> Float[np.ndarray, "..."]:
    """Births of an order per woman and year (1/year) at exact ages and times.

    Args:
        order: Birth order, 1 or 2.
        age: Years, above 12.
        year: Calendar time, years, of the same shape.
        seed: Seed of the country: timing, number and fluctuations of the periods differ a
            little; second births share most fluctuations with first births.
    """
    s = SCHEDULES[order]
    normals = np.random.default_rng([seed, 1]).standard_normal((3, 12))
    shift, later, more = 0.4 * normals[0, 0], 3.0 * normals[0, 1], 0.03 * normals[0, 2]
    cohort = year - age - later
    boom = s.boom_depth * np.exp(-0.5 * ((cohort - s.boom_cohort) / s.boom_width) ** 2)
    postponement = 1 / (1 + np.exp(-(cohort - s.postponing_cohort) / s.postponing_width))
    log_age = np.log((age - 12) / (s.early_age + shift - 12)) / s.early_spread
    early_density = np.exp(-0.5 * log_age**2) / ((age - 12) * s.early_spread * np.sqrt(2 * np.pi))
    away = (age - s.late_age - shift - s.postponed * postponement) / s.late_spread
    late_density = np.exp(-0.5 * away**2) / (s.late_spread * np.sqrt(2 * np.pi))
    share = s.late_share * (1 - boom)
    peak = s.peak * np.exp(-0.5 * ((year - s.peak_year) / s.peak_width) ** 2)
    own_normals = normals[0] if order == 1 else 0.8 * normals[0] + 0.6 * normals[order]
    period = np.exp(peak + more + _wave(year, own_normals))
    return (
        (s.children - s.fewer * postponement)
        * period
        * ((1 - share) * early_density + share * late_density)
    )


def _wave(
    year: Float[np.ndarray, "..."], normals: Float[np.ndarray, " 12"]
) -> Float[np.ndarray, "..."]:
    """A smooth random function of the year, of deviation 0.04: five harmonics of 60 years."""
    phase = 2 * np.pi * (year[..., None] - YEARS[0]) / 60.0 * np.arange(1, 6)
    size = 0.04 / np.sqrt(5)
    return size * (np.sin(phase) @ normals[2:7] + np.cos(phase) @ normals[7:12])


def simulate(
    seed: int = 0, *, noise: str = "none", women: float = WOMEN, orders: Sequence[int] = (1, 2)
) -> pd.DataFrame:
    """The cells of a simulated country.

    Args:
        seed: Seed of the country and, in a separate stream, of the noise.
        noise: "none"; "births": the births of that many women are counted (Poisson), so that the
            deviation is sqrt(rate / women) and depends on the input; "constant": Gaussian with the
            same mean variance everywhere, under which rates near zero may fall below it.
        women: Number of women of each age.
        orders: Birth orders among 1 and 2.

    Returns:
        2,640 rows by year, then age: bounds, `order<k>`, and, where there is noise,
        `order<k>_truth`.
    """
    age, year = (g.ravel() for g in np.meshgrid(np.arange(*AGES), np.arange(*YEARS)))
    cells = pd.DataFrame({"age_lo": age, "age_hi": age + 1, "year_lo": year, "year_hi": year + 1})
    cells = cells.astype(np.float64)
    nodes, weights = np.polynomial.legendre.leggauss(3)
    rng = np.random.default_rng([seed, 2])
    for order in orders:
        truth = np.zeros(len(cells))
        for x, wx in zip(nodes / 2, weights / 2):
            for y, wy in zip(nodes / 2, weights / 2):
                truth += wx * wy * rate(order, age + 0.5 + x, year + 0.5 + y, seed)
        if noise == "none":
            cells[f"order{order}"] = truth
            continue
        if noise == "births":
            observed = rng.poisson(truth * women) / women
        elif noise == "constant":
            observed = truth + np.sqrt(truth.mean() / women) * rng.standard_normal(len(truth))
        else:
            raise BadInput(f"noise must be none, births or constant; got {noise!r}.")
        cells[f"order{order}"], cells[f"order{order}_truth"] = observed, truth
    return cells


def long_form(cells: pd.DataFrame, order: int) -> pd.DataFrame:
    """Cells of one birth order as a task, with `truth` where it is known."""
    if f"order{order}" not in cells:
        raise BadInput(f"The fertility table has no births of order {order}; choose another.")
    columns = {f"order{order}": "y", f"order{order}_truth": "truth"}
    bounds = ["age_lo", "age_hi", "year_lo", "year_hi"]
    table = cells[bounds + [c for c in columns if c in cells]].rename(columns=columns)
    table.insert(0, "task", TASKS[order])
    return table[table["y"].notna()].reset_index(drop=True)


def experiment(
    cells: pd.DataFrame,
    step: int = 5,
    n_fine: int = TRAINING_CELLS,
    seed: int = 0,
    *,
    orders: Sequence[int] = (1,),
    of_all: bool = True,
) -> pd.DataFrame:
    """One split of the publication's experiment, in long form.

    The cells are divided at random into 1,640 training and 1,000 test cells, as published. The
    coarse task has the means over *all* cells of each whole box (104 of 5×5, 660 of 2×2), including
    test cells; the fine task has n of the 1,640. For one seed, a smaller n removes training cells
    only. The publication standardizes all values with mean and deviation of the whole grid; here
    the study standardizes.

    Args:
        cells: Result of `simulate` or `scant.data_sources.human_fertility.read_rates`.
        step: Width of the boxes, years of age and calendar years.
        n_fine: Number of fine training observations of each order.
        seed: Seed of the split; `SEEDS` are the five of a table. Orders have their own splits.
        orders: (1,) for the first experiment, (1, 2) for the one with four outputs.
        of_all: Whether the boxes' means are over all cells; False: over the 1,640 alone, without
            boxes that have none of them.

    Returns:
        For each order its task's fine training cells and test cells, by year and age, then the
        task "<order> births 5x5"; the column `split` marks training and test.

    Raises:
        BadInput: An order is absent, or there are too few cells.
    """
    parts = []
    for order in orders:
        fine = long_form(cells, order)
        if len(fine) <= TEST_CELLS:
            raise BadInput(
                f"The fertility table has {len(fine):,} cells of order {order} and "
                f"{TEST_CELLS:,} are kept for the test; give more years."
            )
        shuffled = np.random.default_rng([seed, order]).permutation(len(fine))
        split = np.full(len(fine), TRAIN, dtype=object)
        split[shuffled[len(fine) - TEST_CELLS :]] = TEST
        width = {"age": float(step), "year": float(step)}
        coarse = coarsen(fine, width)
        if not of_all:
            bounds = [f"{d}_{end}" for d in width for end in ("lo", "hi")]
            start = {d: float(fine[f"{d}_lo"].min()) for d in width}
            parts_of = coarsen(fine[split == TRAIN], width, origin=start, covered=0.0)
            coarse = coarse[bounds].merge(parts_of, on=bounds)
        coarse["task"] = f"{TASKS[order]} {step}x{step}"
        fine_rows = scarce(fine.assign(split=split), TASKS[order], n_fine, seed)
        parts += [fine_rows, coarse.assign(split=TRAIN)]
    return pd.concat(parts, ignore_index=True)


def demo(settings: Seeded, rows: int | None = None) -> pd.DataFrame:
    """First births of the seed's country in 5×5 boxes, and all fine cells."""
    cells = simulate(settings.data_seed, noise="births", orders=(1,))
    return thinned(experiment(cells, seed=settings.data_seed), rows)
