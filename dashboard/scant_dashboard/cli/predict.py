"""`scant predict`: predictions of a fitted model for a table of any length."""

from __future__ import annotations

import sys
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from scant.errors import Unavailable
from scant_dashboard.cli.sentences import sentences


class DensityForm(StrEnum):
    """Output formats of predictive densities."""

    qp = "qp"
    columns = "columns"


DensityOption = Annotated[
    DensityForm | None,
    typer.Option(
        help="Write predictive densities, such as p(z), as at most five Gaussians a row: qp, "
        "an ensemble of qp beside the predictions (NAME.densities.hdf5); columns, weights, "
        "means and deviations as columns of the predictions."
    ),
]


def predict(
    run: Annotated[
        str, typer.Argument(metavar="RUN|DIR", help="A run's id, or a folder of scant fit --out.")
    ],
    data: Annotated[
        str,
        typer.Option(help="A table, of several book.xlsx#Sheet2, or a ZIP of images."),
    ],
    out: Annotated[
        Path | None,
        typer.Option(help="File to write; otherwise it is named after the table."),
    ] = None,
    densities: DensityOption = None,
    device: Annotated[str, typer.Option(help="auto, cpu or cuda.")] = "auto",
) -> None:
    """Predict a table with a fitted model, piece by piece, in little memory.

    The table's columns stay as they are; predictions come behind them, and columns.md says what
    they are.
    """
    from tqdm import tqdm

    from scant.data_sources.open import path_and_part
    from scant.tables.encoding import regular
    from scant.training.api import load
    from scant.training.prediction import predict_file, result_name

    with sentences(Unavailable):
        path, _ = path_and_part(data)
        size = regular(path)
        out = out or path.with_name(result_name(path, alone=False))
        study = load(run, device)
        with tqdm(total=size, unit="B", unit_scale=True, file=sys.stderr, disable=None) as bar:

            def progress(share: float, rows: int) -> None:
                bar.set_postfix_str(f"{rows:,} rows", refresh=False)
                bar.update(int(share * size) - bar.n)

            made = predict_file(study, data, out, progress, densities.value if densities else "")
    for note in made.notes:
        typer.echo(note, err=True)
    if made.outside:
        typer.echo(
            f"{made.outside:,} of {made.rows:,} rows lie outside the training data (column "
            "'outside'); their predictions are extrapolations.",
            err=True,
        )
    typer.echo(f"{made.path}: {made.rows:,} rows; its columns are explained in {made.dictionary}.")
