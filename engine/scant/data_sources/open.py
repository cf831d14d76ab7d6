"""Opening of tables of a study from generators, downloads, files and data frames."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import replace
from importlib import import_module
from pathlib import Path
from typing import Any, Unpack

import numpy as np
import pandas as pd

from scant.data_dir import fetched_path
from scant.data_sources.human_fertility import is_rates, read_births
from scant.errors import BadInput
from scant.studies import Entry, Source
from scant.tables.assembly import noted
from scant.tables.encoding import regular
from scant.tables.formats import files
from scant.tables.images.image_table import SIDE, is_archive, read_image_table
from scant.tables.images.joined import is_of_images, joined
from scant.tables.levels import LEVELS, names
from scant.tables.opening import Answers
from scant.tables.read import read_frame, read_table, read_tables
from scant.tables.schema import READING, Table


def open_table(
    entry: Entry,
    data: pd.DataFrame | str | Path | Sequence[str | Path] | None,
    settings: Any,
    **reading: Unpack[Answers],
) -> pd.DataFrame:
    """Open the table for a fit of a study and check it against the schema.

    Args:
        entry: Study.
        data: Data frame; file of any format (`book.xlsx#Sheet2` for one of its tables); ZIP archive
            if the study takes images; name of a source of the study; several files if the study
            takes boxes (tasks, or values and a map) or photographs with labels; or None for the
            first source, the example data.
        settings: Settings of the study, with size and seed for generators and `size` for images.
        **reading: Options for files (see `scant.tables.read.Reading`).

    Returns:
        Table with sentences on inferred, dropped or suspicious data in `attrs["notes"]`.

    Raises:
        BadInput: The file or source does not exist, is not downloaded, or has an invalid table.
    """
    target = getattr(settings, entry.table.target_setting) if entry.table.target_setting else None
    if isinstance(data, pd.DataFrame):
        return reopen_table(entry, data, settings, **reading).frame
    if isinstance(data, Sequence) and not isinstance(data, str):
        paths = [path_and_part(str(path))[0] for path in data]
        if entry.table.cut and is_of_images(paths):
            name = " and ".join(path.name for path in paths[:2])
            return read_image_table(joined(paths), entry.table, name=name).frame
        table = read_tables(paths, entry.table, target=target, **reading)
        return _with_groups(table, settings)
    source = _source(entry, data)
    if source is None:
        return _read_file(*path_and_part(str(data)), entry, settings, target, reading)
    if source.kind == "fetched":
        path = fetched_path(source.name)
        if not path.is_file():
            raise BadInput(
                f"The data set {source.name!r} is not on this machine; "
                f"fetch it with: scant data fetch {source.name}"
            )
        return _read_file(path, "", entry, settings, target, {**reading, "levels": {}})
    frame, name = _generator(source)(settings), f"the data set {source.name!r}"
    return read_frame(frame, entry.table, name=name, target=target, levels={}).frame


def reopen_table(
    entry: Entry, data: pd.DataFrame, settings: Any, **reading: Unpack[Answers]
) -> Table:
    """Open a data frame as in `open_table`, and return it with the ignored columns."""
    setting = entry.table.target_setting
    target = getattr(settings, setting) if setting else None
    read = _read_again(data, read_frame(data, entry.table, target=target, **reading))
    read = with_covariates(read, settings)
    return replace(read, frame=_with_groups(read, settings))


def open_to_predict(entry: Entry, path: Path, settings: Any) -> pd.DataFrame:
    """Open a file or a ZIP archive of images to predict.

    Args:
        entry: Study.
        path: Path of the file, optionally with `#part`.
        settings: Settings of the trained model.

    Raises:
        BadInput: The file does not exist or has an invalid table.
    """
    path, part = path_and_part(str(path))
    regular(path)
    if _holds_images(path, entry):
        return read_image_table(path, entry.table, size=_side(settings), purpose="predict").frame
    return read_table(path, entry.table, part=part, purpose="predict").frame


def sample(entry: Entry, name: str | None, n: int, seed: int = 0) -> pd.DataFrame:
    """Generate n rows of a simulated data set of a study.

    Raises:
        BadInput: The study has no simulated data set with this name.
    """
    source = _source(entry, name)
    if source is None or not source.generator:
        generated = [s.name for s in entry.sources if s.generator]
        raise BadInput(
            f"The study {entry.name!r} generates no data set {name!r}; it generates "
            f"{', '.join(generated) or 'none'}."
        )
    frame: pd.DataFrame = _generator(source)(entry.settings(data_seed=seed), n)
    return frame


def prefetch_demo(entry: Entry) -> None:
    """Generate the example data in advance if the generator caches them."""
    source = entry.sources[0]
    if source.kept:
        _generator(source)(entry.settings())


def _source(entry: Entry, data: str | Path | None) -> Source | None:
    """Return the source with this name; None if `data` is a file."""
    if data is None:
        return entry.sources[0]
    text = str(data)
    result: Source | None = next((s for s in entry.sources if s.name == text), None)
    path_and_part(text)
    if result is None and not Path(text).suffix and not os.path.isfile(text):
        names = ", ".join(s.name for s in entry.sources)
        images = ", or a ZIP of images" if entry.table.images else ""
        raise BadInput(
            f"There is no data set {text!r} for the study {entry.name!r}; give one of "
            f"{names}, or a file: {files.READABLE}{images}."
        )
    return result


def path_and_part(word: str) -> tuple[Path, str]:
    """Split a path with an optional table, such as `book.xlsx#Sheet2`.

    Raises:
        BadInput: The path is a URL.
    """
    if files.is_url(word):
        raise BadInput(
            f"{word[:80]!r} is an address, and nothing is fetched from one; download the file and "
            "give its path."
        )
    before, mark, part = word.rpartition("#")
    if mark and not os.path.exists(word) and os.path.isfile(before):
        return Path(before), part
    return Path(word), ""


def _read_again(data: pd.DataFrame, table: Table) -> Table:
    """Keep the notes and reading options of a data frame that was read from a file."""
    earlier = list(data.attrs.get("notes", ()))
    same = data.attrs.get("sha256") == table.sha256
    notes = (*earlier, *(() if same else table.notes))
    # The frame has the names of the schema; the file is read again by its own names.
    reading = data.attrs.get(READING, table.reading)
    return noted(replace(table, notes=notes, reading=reading))


def _generator(source: Source) -> Any:
    """Import the generator of a source: `(settings, rows=None) -> DataFrame`."""
    module, _, function = source.generator.partition(":")
    return getattr(import_module(module), function)


def _holds_images(path: Path, entry: Entry) -> bool:
    return entry.table.images and is_archive(path.name, path)


def _beginning(path: Path) -> bytes:
    with path.open("rb") as file:
        return file.read(2000)


def _side(settings: Any) -> int:
    """Return the side of resized images in pixels."""
    return int(getattr(settings, "size", SIDE))


def _read_file(
    path: Path, part: str, entry: Entry, settings: Any, target: str | None, reading: Answers
) -> pd.DataFrame:
    regular(path)
    if _holds_images(path, entry):
        return read_image_table(path, entry.table, size=_side(settings)).frame
    if entry.table.rates and is_rates(_beginning(path)):
        return read_births(path, entry.table).frame
    read = read_table(path, entry.table, target=target, part=part, **reading)
    return _with_groups(with_covariates(read, settings), settings)


def with_covariates(table: Table, settings: Any) -> Table:
    """Add the map attributes in the setting `covariates` as numeric columns."""
    selected = {name.strip() for name in getattr(settings, "covariates", "").split(",")}
    texts = [str(name) for name in table.ignored if name in selected and name not in table.frame]
    if not texts:
        return table
    numbers = {
        n: pd.to_numeric(table.ignored[n], errors="coerce").astype(np.float64) for n in texts
    }
    frame = table.frame.assign(**{n: v.to_numpy() for n, v in numbers.items()})
    frame.attrs = table.frame.attrs
    return replace(table, frame=frame)


def _with_groups(table: Table, settings: Any) -> pd.DataFrame:
    """Add the text columns in the setting `split_by`, which are not features."""
    selected = {name.strip() for name in getattr(settings, "split_by", "").split(",")}
    texts = {str(name): table.ignored[name] for name in table.ignored if name in selected}
    if not texts:
        return table.frame
    levels_by_name = table.reading.get(LEVELS, {})
    encoded = [new for name in texts for new in names(name, levels_by_name.get(name, ()))]
    frame = table.frame.drop(columns=encoded).assign(**texts)
    remaining = {name: levels for name, levels in levels_by_name.items() if name not in texts}
    frame.attrs[READING] = {**table.reading, LEVELS: remaining}
    return frame
