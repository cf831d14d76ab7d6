"""Scant beside its rivals on tables that nobody tuned for, as a stranger would fit them.

    python scripts/own_tables.py                          # every table: data/results/own_tables.csv
    python scripts/own_tables.py --study redshift --out /tmp/redshift.csv
    python scripts/own_tables.py --only iris diabetes --seeds 3 --out /tmp/three.csv
    SCANT_REAL_DATA=folder python scripts/own_tables.py   # and real tables that lie in the folder
    SCANT_UNSEEN=folder python scripts/own_tables.py --out unseen.csv   # its CSV files alone

The tables are those of `tests/engine/tables/public_tables.py`. Each goes the stranger's way, with
defaults only: the study that `suits` names, the columns as the wizard guesses them, then
`scant.fit(..., own=True)`. Each fit has a process of its own, one at a time; one that fails is a
line that says why. Lines of cases that the file has already are replaced, the others stay, so that
a part can be measured anew. The last lines printed are the shares of tables on which Scant scores
within 2 % of the best rival or better, and on which it is first in density or calibration. A table
that comes in several forms counts once, as the mean of them. Tables without such a comparison are
counted beside them.

Columns: `folds` is above 1 where a small table was cross-validated. `point_*` is RMSE, F1 or what
the report has like them, `density_*` a log-likelihood or log probability, `calibration_*` the
expected calibration error (classes only, of the first split); each has the score's name, this run's
value, that of the best rival, and its name. `fit_s` and `rivals_s` are seconds of training and of
all rivals, `wall_s` those of the whole process without its imports.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pandas as pd

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))
from tests.engine.tables.public_tables import cases  # noqa: E402

OUT = ROOT / "data" / "results" / "own_tables.csv"
CLOSE = 0.02  # of the best rival's score
CONTESTS = ("point", "density", "calibration")
COLUMNS = [
    "case", "study", "seed", "rows", "columns", "trained", "tested", "folds",
    *(f"{c}_{part}" for c in CONTESTS for part in ("score", "ours", "theirs", "rival")),
    "headline", "fit_s", "rivals_s", "wall_s", "state", "note",
]  # fmt: skip
REAL = (  # uncut, below SCANT_REAL_DATA
    "balance_scale/balance_scale.csv",
    "fertility/asfr_5x5.csv",
    "gene_kalinka2010/four_genes_long.csv",
    "photoz_lsst_sim/dc2_galaxies.parquet",
    "photoz_sdss/galaxies.parquet",
    "pm25_kampala/makerere_bam_hourly_2020.csv",
    "so2_beijing_standin/so2_24h_ahead.parquet",
)


def files() -> dict[str, bytes]:
    """Every table's file by the name of its case."""
    if folder := os.environ.get("SCANT_UNSEEN"):
        return {path.stem: path.read_bytes() for path in sorted(Path(folder).glob("*.csv"))}
    real = os.environ.get("SCANT_REAL_DATA")
    found = [Path(real) / name for name in REAL] if real else []
    here = {f"real {p.parent.name}/{p.name}": p.read_bytes() for p in found if p.is_file()}
    return {case.name: case.data for case in cases()} | here


def fitted(name: str, seed: int) -> dict[str, Any]:
    """One case, fitted here; a line of the table.

    Raises:
        BadInput: The table or a setting cannot be used.
    """
    import scant
    from scant import verdict
    from scant.errors import BadInput
    from scant.events import Finished
    from scant.studies import entry
    from scant.studies.suits import suits
    from scant.tables.read import inspect_table, read_table

    data = files()[name]
    file = f"{name}.parquet" if data[:4] == b"PAR1" else name
    begun = time.monotonic()
    first = inspect_table(data, entry("redshift").table, name=file)
    found = suits(first.columns, first.n_rows)
    if not found:
        return {"state": "refused", "note": "; ".join(first.problems) or "no study suits it"}
    spec = entry(found[0].study)
    line: dict[str, Any] = {"study": spec.name, "rows": first.n_rows, "columns": len(first.names)}
    setting = spec.table.target_setting
    target = str(spec.settings().values()[setting]) if setting else None
    mapping = dict(inspect_table(data, spec.table, name=file, target=target).mapping)
    own = next((theirs for theirs, ours in mapping.items() if ours == target), target)
    if target is not None and own is not None:  # it keeps its name, which the setting then holds
        mapping[own], target = own, own
    values = {setting: target} if setting else {}
    try:
        table = read_table(data, spec.table, name=file, mapping=mapping, target=target)
        *_, end = scant.fit(spec.name, table.frame, own=True, seed=seed, **values)
    except BadInput as error:
        return {**line, "state": "refused", "note": str(error)}
    assert isinstance(end, Finished), "the last event of a fit says how it ended"
    made, metrics = end.report.verdict, end.report.metrics
    line |= {"state": end.state.value, "note": end.reason, "wall_s": time.monotonic() - begun}
    if made is None:
        return line
    contests = (made.point, made.density, verdict.contest(metrics, ["ECE"]))
    for word, contest in zip(CONTESTS, contests):
        if contest is not None:
            values = (contest.score, contest.ours, contest.theirs, contest.rival)
            parts = ("score", "ours", "theirs", "rival")
            line |= {f"{word}_{part}": value for part, value in zip(parts, values)}
    ours = made.seconds.get(verdict.OURS, 0.0)
    return line | {
        "trained": made.trained, "tested": made.tested, "folds": made.folds,
        "headline": made.headline,
        "fit_s": ours, "rivals_s": sum(made.seconds.values()) - ours,
    }  # fmt: skip


def elsewhere(name: str, seed: int, minutes: float) -> dict[str, Any]:
    """One case in a fresh process; what goes wrong there is its line."""
    line: dict[str, Any] = {"case": name, "seed": seed}
    command = [sys.executable, __file__, "--child", name, "--seed", str(seed)]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=60 * minutes)
    except subprocess.TimeoutExpired:
        return {**line, "state": "timed out", "note": f"after {minutes:g} minutes"}
    try:
        return line | json.loads(done.stdout.splitlines()[-1])
    except (IndexError, ValueError):
        last = done.stderr.strip().splitlines()[-1:] or [f"exit status {done.returncode}"]
        return {**line, "state": "crashed", "note": last[0]}


def good(table: pd.DataFrame, contest: str, close: float = 0.0) -> pd.Series:
    """Whether a line's own score is as good as the best rival's, or within a share of it.

    NaN where the line has no such comparison.
    """
    from scant.verdict import LARGER

    sign = table[f"{contest}_score"].map(LARGER).map({True: 1.0, False: -1.0})
    ours, theirs = table[f"{contest}_ours"], table[f"{contest}_theirs"]
    right = sign * (ours - theirs) >= -close * theirs.abs()
    return right.astype(float).where(sign.notna() & ours.notna() & theirs.notna())


def summary(table: pd.DataFrame) -> str:
    """The shares that the table comes to, and the cases that miss them."""
    near = good(table, "point", CLOSE)
    density, calibration = good(table, "density"), good(table, "calibration")
    first = pd.concat([density, calibration], axis=1).max(axis=1)
    lines = []
    forms = {case.name: case.of or case.name for case in cases()}
    table_of = table["case"].map(lambda name: forms.get(name, name))
    for shares, text in (
        (near, f"within {CLOSE:.0%} of the best rival's point score or better"),
        (density, "first in density"),
        (first, "first in density or calibration"),
    ):
        each = shares.groupby(table_of).mean().dropna()
        lines.append(f"{text}: {each.mean():.0%} ({each.sum():.1f} of {len(each)})")
    behind = ", ".join(table["case"][near == 0].unique())
    absent = ", ".join(table["case"][near.isna()].unique())
    return "\n".join([*lines, f"behind: {behind or 'none'}", f"no comparison: {absent or 'none'}"])


def main() -> None:
    """Fit what is asked for, and write a line after each fit."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", nargs="+", metavar="NAME", help="cases, by name")
    parser.add_argument("--study", help="only cases that this study is meant for")
    parser.add_argument("--out", type=Path, default=OUT)
    parser.add_argument("--seeds", type=int, default=1, help="fits of each case, from seed 0 on")
    parser.add_argument("--minutes", type=float, default=10.0, help="that a fit may take")
    parser.add_argument("--child", help=argparse.SUPPRESS)
    parser.add_argument("--seed", type=int, default=0, help=argparse.SUPPRESS)
    asked = parser.parse_args()
    if asked.child:
        print(json.dumps(fitted(asked.child, asked.seed)))
        return
    names = chosen(asked.only, asked.study)
    table = pd.DataFrame(columns=COLUMNS)
    if asked.out.is_file():
        table = pd.read_csv(asked.out).reindex(columns=COLUMNS)
    asked.out.parent.mkdir(parents=True, exist_ok=True)
    for name in names:
        for seed in range(asked.seeds):
            line = elsewhere(name, seed, asked.minutes)
            old = (table["case"] == name) & (table["seed"] == seed)
            rest = table[~old].astype(object)
            table = pd.DataFrame([*rest.to_dict("records"), line], columns=COLUMNS)
            table.to_csv(asked.out, index=False, float_format="%.5g")
            print(shown(line), flush=True)
    print(summary(table[table["case"].isin(names)].infer_objects()))


def chosen(only: list[str] | None, study: str | None) -> list[str]:
    """The names of the cases asked for.

    Raises:
        SystemExit: There is no case of a name.
    """
    meant = {case.name: case.study for case in cases()}
    names = [n for n in (only or files()) if study is None or meant.get(n) == study]
    unknown = [n for n in names if n not in files()]
    if unknown:
        raise SystemExit(f"There is no case {unknown[0]!r}; there are {', '.join(files())}.")
    return names


def shown(line: dict[str, Any]) -> str:
    """A line for the terminal."""
    parts = [f"{line['case']} ({line.get('study', '?')}, seed {line['seed']}): {line['state']}"]
    for word in CONTESTS:
        if f"{word}_score" in line:
            score, ours, theirs, rival = (
                line[f"{word}_{part}"] for part in ("score", "ours", "theirs", "rival")
            )
            parts.append(f"{score} {ours:.4g} / {theirs:.4g} {rival}")
    if "fit_s" in line:
        parts.append(f"{line['fit_s']:.1f} s + {line['rivals_s']:.1f} s")
    elif line.get("note"):
        parts.append(line["note"][:120])
    return "; ".join(parts)


if __name__ == "__main__":
    main()
