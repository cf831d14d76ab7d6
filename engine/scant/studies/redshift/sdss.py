"""Galaxies of SDSS from SkyServer: the publication's query, and its answer as a table."""

from __future__ import annotations

from urllib.parse import urlencode

import pandas as pd

from scant.errors import BadInput
from scant.studies.redshift.simulate import BANDS

_SKYSERVER = "https://skyserver.sdss.org/dr17/SkyServerWS/SearchTools/SqlSearch"
_FLAGS = (
    "PEAKCENTER",
    "NOTCHECKED",
    "DEBLEND_NOPEAK",
    "PSF_FLUX_INTERP",
    "BAD_COUNTS_ERROR",
    "INTERP_CENTER",
)
_CLEAN_GALAXIES = 1_800_000  # about the rows of the query without TOP


def query(rows: int = 20_000) -> str:
    """The publication's query (Almosallam 2017, 6.3.1), for a share of the sky's galaxies.

    The printed quality flags are constants that are always true; here, as in Brescia et al. (2014),
    galaxies with any of them are left out. Fibers are taken at even steps over all plates, because
    the first rows of an unordered query are from one region of the sky.
    """
    magnitudes = ", ".join(f"p.modelMag_{b} AS mag_{b}" for b in BANDS)
    errors = ", ".join(f"p.modelMagErr_{b} AS mag_{b}_err" for b in BANDS)
    flags = " | ".join(f"dbo.fPhotoFlags('{f}')" for f in _FLAGS)
    step = max(1, _CLEAN_GALAXIES // rows)
    return (
        f"SELECT TOP {rows} {magnitudes}, {errors}, s.z AS z "
        "FROM PhotoObjAll AS p JOIN SpecObj AS s ON p.specObjID = s.specObjID "
        "WHERE s.class = 'GALAXY' AND s.zWarning = 0 AND p.mode = 1 "
        f"AND (p.flags & ({flags})) = 0 AND (s.plate * 31 + s.fiberID) % {step} = 0"
    )


def read(data: bytes, name: str) -> pd.DataFrame:
    """Read an answer of SkyServer's CSV interface, with missing magnitudes (-9999) as NaN.

    Raises:
        BadInput: The data are an error page, are cut short, or have unexpected columns.
    """
    text = data.decode("utf-8", errors="replace").lstrip("\ufeff")
    first, _, table = text.partition("\n")
    if not first.startswith("#Table"):
        message = " ".join(text.split())[:160]
        kind = "a web page" if text.lstrip().startswith("<") else f"{message!r}"
        raise BadInput(f"The server of {name!r} answered {kind} instead of a table; try later.")
    columns = [f"mag_{b}" for b in BANDS] + [f"mag_{b}_err" for b in BANDS] + ["z"]
    lines = table.splitlines()
    if not lines or lines[0].split(",") != columns:
        header = lines[0][:120] if lines else ""
        raise BadInput(f"The server of {name!r} sent other columns than asked for: {header!r}.")
    # A row cut inside a number may still have eleven cells, but it lacks the line's end.
    if not table.endswith("\n") or any(line.count(",") != 10 for line in lines[1:] if line):
        raise BadInput(f"The table of {name!r} arrived cut short; fetch it again.")
    try:
        rows = [[float(v) for v in line.split(",")] for line in lines[1:] if line]
    except ValueError as error:
        raise BadInput(
            f"The table of {name!r} holds cells that are no numbers ({error})."
        ) from None
    if not rows:
        raise BadInput(f"The server of {name!r} sent a table without rows; try later.")
    frame = pd.DataFrame(rows, columns=columns, dtype="float64")
    return frame.mask(frame <= -999.0)


def url() -> str:
    """Address of the query's answer."""
    return f"{_SKYSERVER}?{urlencode({'cmd': query(), 'format': 'csv'})}"
