"""The `scant` command. Exit status: 0 done, 2 bad input (one sentence on stderr), 1 else."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from scant import __version__
from scant.studies import STUDIES, entry
from scant_dashboard.cli import data, runs, users
from scant_dashboard.cli.bench import bench
from scant_dashboard.cli.export import export
from scant_dashboard.cli.fit import fit
from scant_dashboard.cli.predict import predict
from scant_dashboard.cli.printing import print_table
from scant_dashboard.cli.sentences import sentences
from scant_dashboard.cli.serve import serve

if TYPE_CHECKING:
    import pandas as pd

app = typer.Typer(
    help="Gaussian processes for scarce data, trained live in the browser.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)


def _version(requested: bool) -> None:
    if requested:
        typer.echo(f"scant {__version__}")
        raise typer.Exit


@app.callback()
def options(
    version: Annotated[
        bool,
        typer.Option(
            "--version", callback=_version, is_eager=True, help="Show the version and exit."
        ),
    ] = False,
) -> None:
    """Gaussian processes for scarce data, trained live in the browser."""


def studies() -> None:
    """List the studies, with the settings of each."""
    for name in STUDIES:
        result = entry(name)
        typer.echo(f"{name}: {result.title}. {result.question}")
        typer.echo("  data: " + ", ".join(source.name for source in result.sources))
        for setting in result.settings.names():
            parameter = result.settings.param[setting]
            typer.echo(f"  {setting} = {parameter.default}  {_allowed(parameter)}{parameter.doc}")
        for preset, values in result.presets.items():
            chosen = ", ".join(f"{k}={v}" for k, v in values.items()) or "the defaults"
            typer.echo(f"  preset {preset}: {chosen}")


def _allowed(parameter: Any) -> str:
    if hasattr(parameter, "objects"):
        return f"[{', '.join(map(str, parameter.objects))}] "
    low, high = getattr(parameter, "bounds", None) or (None, None)
    return f"[{low} to {high}] " if low is not None or high is not None else ""


def _show_scores(rows: pd.DataFrame, fault: str) -> None:
    """Print the results of a study, and why it was not finished."""
    if len(rows):
        columns = ["data", "method", "metric", "ours", "spread", "published", "theirs", "repeats"]
        for experiment, part in rows.groupby("experiment", sort=False):
            typer.echo(str(experiment))
            print_table(columns, part[columns].itertuples(index=False))
    typer.echo(f"Not finished: {fault}\n" if fault else "")


def reproduce(
    study: Annotated[str, typer.Argument(metavar="STUDY|all", help="A study, or all of them.")],
    quick: Annotated[bool, typer.Option("--quick", help="Less of everything: minutes.")] = False,
    data: Annotated[
        Path | None,
        typer.Option(envvar="SCANT_REAL_DATA", help="Folder of the publications' data sets."),
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(
            help="Folder for results.csv and results.html; its finished runs are not done again."
        ),
    ] = None,
    only: Annotated[str, typer.Option(help="Do runs whose name contains this.")] = "",
) -> None:
    """Print the publications' tables: our figures beside theirs."""
    from scant.reproduce import runner

    with sentences():
        _, faults = runner.reproduce(
            runner.studies_named(study),
            quick=quick,
            folder=runner.checked(data),
            out=out,
            only=only,
            show=_show_scores,
            log=partial(typer.echo, err=True),
        )
    for name, fault in faults.items():
        typer.echo(f"scant: {name}: {fault}", err=True)
    if faults:
        raise typer.Exit(1)


app.add_typer(data.app, name="data")
app.add_typer(users.app, name="user")
app.add_typer(runs.runs_app, name="runs")
for command in (serve, studies, fit, predict, export, reproduce, bench):
    app.command()(command)
