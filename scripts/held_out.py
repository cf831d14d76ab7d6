"""Defaults measured on rows that this script holds back, on the pages' own kinds of data.

    python scripts/held_out.py                              # every case: data/results/held_out.csv
    python scripts/held_out.py births5 genes --seeds 5 --out out/held_out.csv
    python scripts/held_out.py births5 --before ../other    # and the engine of another checkout

A seed divides a case's data (`scripts/held_out_cases.py`, `held_out_redshifts.py`) into a table to
learn from and rows to predict. A fit is `scant fit STUDY --data train.csv --predict test.csv` with
no setting but the target's name, in a process of its own by this checkout's code: it has the
settings of `Settings.for_predictions` (a second fit, on everything) and rivals in its report. Its
file of predictions is scored, and the predictions of baselines. Further cases of the same table to
learn from (`rail-1` after `rail`) are predicted by the same fit, with `scant predict`. With
--before, the code of another checkout fits the same rows right after ours.

A line is printed for each case, and the scores of a seed go to the file of --out, a row each, in
place of earlier ones. `seconds` are those of a whole process with a fit, imports included, `seconds
to predict` those of one without. A fit ends by the clock, so a busy machine makes scores worse.
Data lie in `../shared/data`, or where SCANT_REAL_DATA says.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

import pandas as pd

import held_out_cases as data
import held_out_redshifts as redshifts
from held_out_cases import BASELINE, Held, Scores
from scant.studies.genes import simulate

ROOT = Path(__file__).parents[1]
OUT = ROOT / "data" / "results" / "held_out.csv"
OURS, BEFORE = "scant", "before"
COLUMNS = ["case", "seed", "by", "score", "value"]
LARGER = {"log-likelihood", "recall", "F1", "average precision"}
PACKAGES = ("engine", "dashboard")
PROGRAM = "from scant_dashboard.cli.main import app; app()"


class Case(NamedTuple):
    """Divisions by seed, and what our scores beside the baseline's are to fulfill."""

    held: Callable[[int], Held]
    target: str = ""
    met: Callable[[Scores, Mapping[str, Scores]], bool] = lambda ours, theirs: True


def not_behind(ours: Scores, theirs: Mapping[str, Scores]) -> bool:
    return ours["NMSE"] <= theirs[BASELINE]["NMSE"]


def first(ours: Scores, theirs: Mapping[str, Scores]) -> bool:
    """Return True if each baseline has a worse density and mean."""
    return all(
        loss(score, of[score]) > loss(score, ours[score])
        for score in ("log-likelihood", "CRPS", "RMSE")
        for of in theirs.values()
    )


CASES = {
    "births5": Case(
        partial(data.births, 5), "SMSE at most 0.8 of the GP's, coverage of 92 to 97 %",
        lambda ours, by: (
            ours["SMSE"] <= 0.8 * by[BASELINE]["SMSE"] and 92 <= ours["coverage"] <= 97
        ),
    ),
    "births2": Case(
        partial(data.births, 2), "SMSE at most .0044", lambda ours, _: ours["SMSE"] <= 0.0044
    ),
    "genes": Case(data.genes, "NMSE at most .075", lambda ours, _: ours["NMSE"] <= 0.075),
    "curves": Case(
        partial(data.curves, simulate.genes), "NMSE not above DHGP's", not_behind
    ),
    "curves50": Case(
        partial(data.curves, partial(simulate.synthetic, replicas=4)), "NMSE not above DHGP's",
        not_behind,
    ),
    "alphabets": Case(
        data.alphabets, "recall at least .85 and .07 above 1-NN's",
        lambda ours, by: ours["recall"] >= max(0.85, by[BASELINE]["recall"] + 0.07),
    ),
    **{
        f"{name}-{missing}" if missing else name: Case(
            partial(redshifts.held, table, missing), "ahead on log-likelihood, CRPS and RMSE", first
        )
        for name, table in redshifts.TABLES.items()
        for missing in range(redshifts.MOST_MISSING + 1)
    },
    "mitosis": Case(
        partial(data.mitosis, 440, 5000), "F1 at least .80", lambda ours, _: ours["F1"] >= 0.80
    ),
    "mitosis33": Case(
        partial(data.mitosis, 33, 1000), "F1 at least .72", lambda ours, _: ours["F1"] >= 0.72
    ),
    "mitosis10": Case(
        partial(data.mitosis, 10, 1000), "F1 at least .65", lambda ours, _: ours["F1"] >= 0.65
    ),
}  # fmt: skip


@dataclass
class Fits:
    """Fits of one seed; cases with the same table to learn from share one."""

    folder: Path
    fitted: dict[tuple[Path, str, tuple[str, ...], str], Path] = field(default_factory=dict)

    def predictions(self, checkout: Path, held: Held, *settings: str) -> pd.DataFrame:
        """Predictions of `scant fit`, or of `scant predict` by an earlier fit of the same table.

        Raises:
            RuntimeError: A command failed; the sentence is its last line.
        """
        self.folder.joinpath("test.csv").write_text(held.test.to_csv(index=False))
        table, settings = held.train.to_csv(index=False), (*held.settings, *settings)
        densities = ("--densities", "columns") if held.densities else ()
        key = checkout, held.study, settings, table
        if key in self.fitted:
            file = self.folder / "predictions.csv"
            data = ("--data", "test.csv", "--out", file.name, *densities)
            self._run(checkout, "predict", str(self.fitted[key]), *data)
            return pd.read_csv(file)
        self.folder.joinpath("train.csv").write_text(table)
        out = self.folder / f"out{len(self.fitted)}"
        self._run(
            checkout, "fit", held.study, "--data", "train.csv", "--predict", "test.csv",
            "--out", out.name, *(a for value in settings for a in ("--set", value)), *densities,
        )  # fmt: skip
        self.fitted[key] = out
        return pd.read_csv(out / "predictions.csv")

    def _run(self, checkout: Path, *arguments: str) -> None:
        """Run a command of a checkout's code in a process of its own."""
        paths = os.pathsep.join(str(checkout.resolve() / name) for name in PACKAGES)
        command = [sys.executable, "-c", PROGRAM, *arguments]
        environment = {**os.environ, "PYTHONPATH": paths}
        done = subprocess.run(
            command, cwd=self.folder, env=environment, capture_output=True, text=True
        )
        if done.returncode:
            last = done.stderr.strip().splitlines()[-1:] or [f"exit status {done.returncode}"]
            raise RuntimeError(last[0])


def measured(name: str, seed: int, before: Path | None, fits: Fits) -> dict[str, Scores]:
    """Print and return the scores of one division, by who fitted it; empty where a fit failed."""
    held, result = CASES[name].held(seed), dict[str, Scores]()
    ours = partial(fits.predictions, ROOT, held)
    makers: dict[str, Callable[[], pd.DataFrame]] = {OURS: ours}
    if before is not None:
        makers[BEFORE] = partial(fits.predictions, before, held)
    for by, made_by in held.baselines.items():
        makers[by] = made_by if callable(made_by) else partial(ours, *made_by)
    for by, predictions in makers.items():
        begun = time.monotonic()
        n_fits = len(fits.fitted)
        try:
            made = predictions()
        except RuntimeError as error:
            print(f"{name} seed {seed} {by}: {error}", flush=True)
            result[by] = {}
            continue
        shared = by in (OURS, BEFORE) and len(fits.fitted) == n_fits
        unit = "seconds to predict" if shared else "seconds"
        result[by] = {**held.scores(made), unit: time.monotonic() - begun}
        print(f"{name} seed {seed} {by}: {listed(result[by])}", flush=True)
    return result


def listed(scores: Scores) -> str:
    return ", ".join(f"{name} {value:.4g}" for name, value in scores.items())


def loss(score: str, value: float) -> float:
    """A score as less is better: of a coverage the distance from 95 %."""
    if score.startswith("coverage"):
        return abs(value - 95)
    return -value if score in LARGER else value


def summary(name: str, seeds: Sequence[dict[str, Scores]]) -> str:
    """Mean and worst of each score of a case, shares of seeds ahead of others, and its target.

    A seed without the scores of one of the baselines does not meet the target.
    """
    lines = []
    for score in dict.fromkeys(s for fits in seeds for scores in fits.values() for s in scores):
        parts = []
        for by in dict.fromkeys(by for fits in seeds for by in fits):
            values = [fits[by][score] for fits in seeds if score in fits.get(by, {})]
            if values:
                worst = max(values, key=partial(loss, score))
                parts.append(f"{by} {sum(values) / len(values):.4g} (worst {worst:.4g})")
            pairs = [(fits[OURS], fits[by]) for fits in seeds if {OURS, by} <= set(fits)]
            pairs = [(ours, theirs) for ours, theirs in pairs if score in ours and score in theirs]
            if pairs and by != OURS:
                ahead = sum(loss(score, a[score]) < loss(score, b[score]) for a, b in pairs)
                parts.append(
                    f"ahead of it on {ahead} of {len(pairs)} seeds ({ahead / len(pairs):.0%})"
                )
        lines.append(f"{name} {score}: {', '.join(parts)}")
    case = CASES[name]
    if case.target:
        met = 0
        for fits in seeds:
            theirs = {by: scores for by, scores in fits.items() if by not in (OURS, BEFORE)}
            met += bool(fits[OURS] and all(theirs.values()) and case.met(fits[OURS], theirs))
        lines.append(f"{name}: {case.target}: on {met} of {len(seeds)} seeds")
    return "\n".join(lines)


def keep(scores: pd.DataFrame, file: Path) -> None:
    """Put the scores of one division into a file, in place of earlier ones of the same."""
    if file.exists():
        stored = pd.read_csv(file)
        again = stored[["case", "seed"]].eq(scores[["case", "seed"]].iloc[0]).all(axis=1)
        scores = pd.concat([stored[~again], scores])
    scores = scores.sort_values(["case", "seed"], kind="stable")
    scores.to_csv(file, index=False, float_format="%.5g")


def main() -> None:
    """Measure the requested cases, and write to the file after each division."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("cases", nargs="*", metavar="CASE", help=", ".join(CASES))
    parser.add_argument("--seeds", type=int, default=10, help="divisions of each case")
    parser.add_argument("--start", type=int, default=0, help="the first seed")
    parser.add_argument("--before", type=Path, help="another checkout to compare with")
    parser.add_argument("--out", type=Path, default=OUT)
    arguments = parser.parse_args()
    if unknown := set(arguments.cases) - set(CASES):
        parser.error(f"there is no case {min(unknown)!r}; there are {', '.join(CASES)}")
    if arguments.before and not (arguments.before / "engine" / "scant").is_dir():
        parser.error(f"{arguments.before} is no checkout: it has no engine/scant")
    arguments.out.parent.mkdir(parents=True, exist_ok=True)
    names = arguments.cases or [*CASES]
    seeds = range(arguments.start, arguments.start + arguments.seeds)
    scores_by_case = {name: list[dict[str, Scores]]() for name in names}
    for seed in seeds:
        with TemporaryDirectory() as folder:
            fits = Fits(Path(folder))
            for name in names:
                scores = measured(name, seed, arguments.before, fits)
                scores_by_case[name].append(scores)
                rows = [(name, seed, by, *pair) for by, of in scores.items() for pair in of.items()]
                if rows:
                    keep(pd.DataFrame(rows, columns=COLUMNS), arguments.out)
    lines = [summary(name, scores) for name, scores in scores_by_case.items()]
    print("\n".join(lines))


if __name__ == "__main__":
    main()
