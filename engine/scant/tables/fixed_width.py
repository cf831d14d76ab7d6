"""Conversion of text with columns aligned by spaces to delimited text."""

from __future__ import annotations

import csv
import io
from itertools import islice

import pandas as pd

_SNIFFED = 100  # lines used to detect columns


def delimited(body: str) -> str | None:
    """Convert a space-aligned table to tab-separated lines; None if it has a single column.

    If all lines have the same number of words, cells are words. Otherwise columns are separated by
    positions that are blank in all of the first lines (pandas' `read_fwf`).
    """
    if max(map(len, body.split('"'))) > csv.field_size_limit():
        return None  # a quote that is never closed
    lines = body.splitlines()
    head = [line for line in islice(lines, _SNIFFED) if line.strip()]
    if any("\t" in line for line in head):
        return None
    out = io.StringIO()
    writer = csv.writer(out, delimiter="\t", lineterminator="\n")
    hashed = lines[0].startswith("#") and _words(lines[0][1:]) == _words(head[-1]) > 1
    if hashed:  # header as written by NumPy
        lines[0] = head[0] = lines[0][1:]
    if _words(head[0]) > 1 and len({_words(line) for line in head}) == 1:
        stripped = (line.strip() for line in lines)
        writer.writerows(csv.reader(stripped, delimiter=" ", skipinitialspace=True))
        return out.getvalue()
    if not all("  " in line.strip() for line in head[:2]):
        return None
    frame = pd.read_fwf(
        io.StringIO("\n".join(lines)), header=None, dtype=str, keep_default_na=False,
        na_filter=False, skip_blank_lines=False, infer_nrows=_SNIFFED,
    )  # fmt: skip
    if frame.shape[1] < 2 or (frame.iloc[0] == "").any():
        return None
    writer.writerows(frame.itertuples(index=False))
    return out.getvalue()


def _words(line: str) -> int:
    return len(next(csv.reader([line.strip()], delimiter=" ", skipinitialspace=True), []))
