"""`scant bench`: the speed of the engine on this machine."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from scant.errors import BadInput, NotFound
from scant.studies import entry
from scant.training.output_folder import check_writable, output
from scant_dashboard.cli.printing import print_table
from scant_dashboard.cli.sentences import sentences

if TYPE_CHECKING:
    import pandas as pd


def bench(
    what: Annotated[
        str | None,
        typer.Argument(metavar="[STUDY|MODEL]", help="One study or model; else all models."),
    ] = None,
    out: Annotated[Path | None, typer.Option(help="Folder for bench.csv and bench.html.")] = None,
    device: Annotated[str, typer.Option(help="auto (CPU, and CUDA if any), cpu or cuda.")] = "auto",
    dtype: Annotated[
        str, typer.Option(help="auto (float64, and float32 on CUDA), both, float64 or float32.")
    ] = "auto",
    quick: Annotated[bool, typer.Option(help="Fewer sizes, in under a minute.")] = False,
) -> None:
    """Measure the speed of the engine on this machine, beside GPyTorch and scikit-learn.

    Of a model: its cost against its sizes. Of a study: what one of its training steps takes.
    """
    with sentences():
        if device not in ("auto", "cpu", "cuda"):
            raise BadInput(f"--device must be auto, cpu or cuda; got {device!r}.")
        from scant import bench as speed

        if what is not None and what not in speed.MODELS:
            _study_speed(what, out is not None or quick or (device, dtype) != ("auto",) * 2)
            return
        if out is not None:
            check_writable(out)
        _measure(what, out, device, dtype, quick)


def _study_speed(name: str, options: bool) -> None:
    from scant import bench as speed

    try:
        entry(name)
    except NotFound as error:
        models = ", ".join(map(repr, speed.MODELS))
        raise NotFound(f"{error} Nor is it one of the models: {models}.") from None
    if options:
        raise BadInput(f"--out, --device, --dtype and --quick are for models; {name!r} is a study.")
    _print(speed.bench(name))


def _print(table: pd.DataFrame) -> None:
    print_table([str(name) for name in table], table.itertuples(index=False))


def _measure(model: str | None, out: Path | None, device: str, dtype: str, quick: bool) -> None:
    """Time the models, print the results, and write them if requested."""
    from tqdm import tqdm

    from scant.bench import table as tables

    on = tables.devices(device)
    tables.precisions(dtype, on[0])
    with tqdm(total=100, unit="%", file=sys.stderr, disable=None) as bar:

        def report_progress(text: str, share: float) -> None:
            bar.set_postfix_str(text, refresh=False)
            bar.update(round(100 * share) - bar.n)

        table = tables.measure(model, on, quick, report_progress, dtype)
    lines = tables.circumstances(table, on, quick)
    typer.echo("\n".join(lines) + "\n")
    _print(tables.brief(table))
    grown = tables.growth(table)
    if len(grown):
        typer.echo("\nHow it grows: ms ~ size^power")
        _print(grown)
    if out is not None:
        from scant_dashboard.bench_page import page

        html = page(table, grown, lines)
        with output(out):
            out.mkdir(parents=True, exist_ok=True)
            tables.write_csv(table, lines, out / "bench.csv")
            (out / "bench.html").write_text(html, encoding="utf-8")
    failed = int(table["note"].astype("string").str.startswith("failed", na=False).sum())
    if failed:
        typer.echo(f"scant: {failed} cases failed; the column note says why.", err=True)
        raise typer.Exit(1)
