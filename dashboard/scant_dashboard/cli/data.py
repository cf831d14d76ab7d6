"""`scant data`: the data sets of the studies, listed, fetched and written."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from scant.studies import STUDIES, entry
from scant.training.output_folder import output
from scant_dashboard.cli.printing import print_table
from scant_dashboard.cli.sentences import sentences

app = typer.Typer(help="The data sets of the studies.", no_args_is_help=True)

Out = Annotated[Path, typer.Option(help="The CSV file to write.")]


@app.command("list")
def list_data() -> None:
    """List the data sets."""
    print_table(
        ("study", "name", "kind", "data"),
        [
            (name, source.name, source.kind, f"{source.title}: {source.doc}")
            for name in STUDIES
            for source in entry(name).sources
        ],
    )


@app.command()
def fetch(name: Annotated[str, typer.Argument(help="A fetched data set.")]) -> None:
    """Download a data set into the data directory, once."""
    from tqdm import tqdm

    from scant.data_dir import data_dir
    from scant.data_sources.fetch import fetch as fetch_data

    with sentences(), tqdm(unit="B", unit_scale=True, file=sys.stderr, disable=None) as bar:

        def progress(done: int, total: int | None) -> None:
            bar.total = total
            bar.update(done - bar.n)

        file = fetch_data(name, data_dir(), progress)
    typer.echo(str(file))


@app.command()
def sample(
    name: Annotated[str, typer.Argument(help="STUDY, or STUDY/NAME for a certain data set.")],
    out: Out,
    rows: Annotated[int, typer.Option(min=1, help="How many rows.")] = 200,
    seed: Annotated[int, typer.Option(min=0, help="Seed of the draw.")] = 0,
) -> None:
    """Write some rows of a data set, as a file that `scant fit --data` takes."""
    from scant.data_sources.open import sample as draw
    from scant.tables.csv_safety import safe_for_spreadsheet

    study, _, source = name.partition("/")
    with sentences():
        frame = draw(entry(study), source or "demo", rows, seed)
        with output(out):
            safe_for_spreadsheet(frame).to_csv(out, index=False)
    typer.echo(f"{len(frame)} rows in {out}", err=True)


@app.command()
def births(
    file: Annotated[Path, typer.Argument(help="asfrRRbo.txt of the Human Fertility Database.")],
    out: Out,
    country: Annotated[str | None, typer.Option(help="Its code, such as CAN.")] = None,
    step: Annotated[int, typer.Option(min=2, help="Width of the boxes, in years.")] = 5,
    seed: Annotated[int, typer.Option(min=0, help="Seed of the rows held out.")] = 0,
) -> None:
    """Turn birth rates by age and year into a table for the aggregation page."""
    from scant.data_sources.human_fertility import read_rates
    from scant.studies.aggregation.simulate.fertility import experiment

    with sentences():
        frame = experiment(read_rates(file, country=country), step, seed=seed)
        with output(out):
            frame.to_csv(out, index=False)
    typer.echo(f"{len(frame)} rows in {out}", err=True)
