"""Where a study's table comes from: a generator, a download, a file, a data frame."""

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
    """The table that a study is fitted to, checked against its schema.

    Args:
        entry: The study.
        data: A data frame, a file of any format (`book.xlsx#Sheet2` for one of its tables), a .zip
            where the study takes images, the name of one of the study's sources, several files
            where the study takes boxes (tasks, or values and a map) or photographs (and labels of
            them), or None for its first source, the demonstration.
        settings: Its settings; a generator takes sizes and seed from them, images their `size`.
        **reading: What the page asks of a file (see `scant.tables.read.Reading`).

    Returns:
        The table; `attrs["notes"]` says what was inferred, dropped or looks suspicious.

    Raises:
        BadInput: No such file or source, not yet fetched, or a table that cannot be used.
    """
    target = getattr(settings, entry.table.target_setting) if entry.table.target_setting else None
    if isinstance(data, pd.DataFrame):
        return reopen_table(entry, data, settings, **reading).frame
    if isinstance(data, Sequence) and not isinstance(data, str):
        paths = [path_and_part(str(word))[0] for word in data]
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
    """A data frame as `open_table` reads it, with what is left out of it. Raises as that does."""
    setting = entry.table.target_setting
    target = getattr(settings, setting) if setting else None
    read = _read_again(data, read_frame(data, entry.table, target=target, **reading))
    read = with_covariates(read, settings)
    return replace(read, frame=_with_groups(read, settings))


def open_to_predict(entry: Entry, path: Path, settings: Any) -> pd.DataFrame:
    """The table of a file, or of a .zip of images, whose rows are to be predicted.

    Args:
        entry: The study.
        path: The file, perhaps with `#part`.
        settings: With which the model was trained.

    Raises:
        BadInput: No such file, or a table that cannot be used.
    """
    path, part = path_and_part(str(path))
    regular(path)
    if _holds_images(path, entry):
        return read_image_table(path, entry.table, size=_side(settings), purpose="predict").frame
    return read_table(path, entry.table, part=part, purpose="predict").frame


def sample(entry: Entry, name: str | None, n: int, seed: int = 0) -> pd.DataFrame:
    """n generated rows of one of the study's data sets, as its demonstration draws them.

    Raises:
        BadInput: The study has no generated data set of that name.
    """
    source = _source(entry, name)
    if source is None or not source.generator:
        known = [s.name for s in entry.sources if s.generator]
        raise BadInput(
            f"The study {entry.name!r} generates no data set {name!r}; it generates "
            f"{', '.join(known) or 'none'}."
        )
    frame: pd.DataFrame = _generator(source)(entry.settings(data_seed=seed), n)
    return frame


def prefetch_demo(entry: Entry) -> None:
    """Have the demonstration made now where its generator keeps it, so that nobody waits for it."""
    source = entry.sources[0]
    if source.kept:
        _generator(source)(entry.settings())


def _source(entry: Entry, data: str | Path | None) -> Source | None:
    """The source of that name; None where `data` names a file."""
    if data is None:
        return entry.sources[0]
    word = str(data)
    result: Source | None = next((s for s in entry.sources if s.name == word), None)
    path_and_part(word)
    if result is None and not Path(word).suffix and not os.path.isfile(word):
        names = ", ".join(s.name for s in entry.sources)
        images = ", or a ZIP of images" if entry.table.images else ""
        raise BadInput(
            f"There is no data set {word!r} for the study {entry.name!r}; give one of "
            f"{names}, or a file: {files.READABLE}{images}."
        )
    return result


def path_and_part(word: str) -> tuple[Path, str]:
    """A file, and which of its tables: `book.xlsx#Sheet2`.

    Raises:
        BadInput: It is an address.
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
    """The table of a data frame; one that came from a file brings the notes on that file along."""
    earlier = list(data.attrs.get("notes", ()))
    same = data.attrs.get("sha256") == table.sha256
    notes = (*earlier, *(() if same else table.notes))
    # What came from a file has its own names by now, by which it is read again.
    reading = data.attrs.get(READING, table.reading)
    return noted(replace(table, notes=notes, reading=reading))


def _generator(source: Source) -> Any:
    """The function behind a generated source: `(settings, rows=None) -> DataFrame`."""
    module, _, function = source.generator.partition(":")
    return getattr(import_module(module), function)


def _holds_images(path: Path, entry: Entry) -> bool:
    return entry.table.images and is_archive(path.name, path)


def _beginning(path: Path) -> bytes:
    with path.open("rb") as file:
        return file.read(2000)


def _side(settings: Any) -> int:
    """The side of an image, where the study brings all to one."""
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
    """The table, with the attributes of a map that the setting `covariates` names as numbers."""
    named = {word.strip() for word in getattr(settings, "covariates", "").split(",")}
    texts = [str(name) for name in table.ignored if name in named and name not in table.frame]
    if not texts:
        return table
    own = {n: pd.to_numeric(table.ignored[n], errors="coerce").astype(np.float64) for n in texts}
    frame = table.frame.assign(**{n: v.to_numpy() for n, v in own.items()})
    frame.attrs = table.frame.attrs
    return replace(table, frame=frame)


def _with_groups(table: Table, settings: Any) -> pd.DataFrame:
    """The frame, with the texts by which `split_by` divides it and which are no features."""
    named = {word.strip() for word in getattr(settings, "split_by", "").split(",")}
    texts = {str(name): table.ignored[name] for name in table.ignored if name in named}
    if not texts:
        return table.frame
    known = table.reading.get(LEVELS, {})
    made = [new for name in texts for new in names(name, known.get(name, ()))]
    frame = table.frame.drop(columns=made).assign(**texts)
    left = {name: levels for name, levels in known.items() if name not in texts}
    frame.attrs[READING] = {**table.reading, LEVELS: left}
    return frame
