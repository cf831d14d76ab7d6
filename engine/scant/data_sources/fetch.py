"""Real data, downloaded once into the user's data directory: resumed, checked, then renamed."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from urllib.parse import urlencode, urlsplit

import pandas as pd
from pooch import HTTPDownloader
from pooch.hashes import hash_matches

from scant.errors import BadInput
from scant.studies.genes import drosophila
from scant.studies.omniglot import public_alphabets
from scant.studies.redshift.simulate import BANDS

Progress = Callable[[int, int | None], None]  # bytes so far, bytes in all where known

_ATTEMPTS = 5
_CHUNK = 1 << 10  # what a broken connection loses at most
_SKYSERVER = "https://skyserver.sdss.org/dr17/SkyServerWS/SearchTools/SqlSearch"
_FLAGS = (
    "PEAKCENTER",
    "NOTCHECKED",
    "DEBLEND_NOPEAK",
    "PSF_FLUX_INTERP",
    "BAD_COUNTS_ERROR",
    "INTERP_CENTER",
)
_CLEAN_GALAXIES = 1_800_000  # about as many as the query has answers without TOP


@dataclass(frozen=True)
class File:
    """One file of a data set: where it is, its SHA-256 and its bytes where known."""

    url: str
    sha256: str = ""
    size: int | None = None


@dataclass(frozen=True)
class Download:
    """A data set to fetch, of one file or several.

    Attributes:
        url: Where the first file is.
        read: Makes a table of the bytes of the files, in their order, and the set's name.
        sha256: Of the first file, where known.
        size: Its bytes, where known.
        more: The files after the first.
    """

    url: str
    read: Callable[..., pd.DataFrame]
    sha256: str = ""
    size: int | None = None
    more: tuple[File, ...] = ()

    @property
    def files(self) -> tuple[File, ...]:
        """All files, in order."""
        return (File(self.url, self.sha256, self.size), *self.more)


def sdss_query(rows: int = 20_000) -> str:
    """The publication's query (Almosallam 2017, 6.3.1), for a share of the sky's galaxies.

    As printed, its quality flags are constants that are always true; here, as in Brescia et al.
    (2014), a galaxy with any of them is left out. Fibers are taken at even steps over all plates,
    because the first rows of an unordered query are of one region of the sky.
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


def read_skyserver(data: bytes, name: str) -> pd.DataFrame:
    """The table in an answer of SkyServer's CSV interface, with missing magnitudes (-9999) empty.

    Raises:
        BadInput: An error page, an answer cut short, or other columns than asked for.
    """
    text = data.decode("utf-8", errors="replace").lstrip("\ufeff")
    first, _, table = text.partition("\n")
    if not first.startswith("#Table"):
        message = " ".join(text.split())[:160]
        kind = "a web page" if text.lstrip().startswith("<") else f"{message!r}"
        raise BadInput(f"The server of {name!r} answered {kind} instead of a table; try later.")
    wanted = [f"mag_{b}" for b in BANDS] + [f"mag_{b}_err" for b in BANDS] + ["z"]
    lines = table.splitlines()
    if not lines or lines[0].split(",") != wanted:
        got = lines[0][:120] if lines else ""
        raise BadInput(f"The server of {name!r} sent other columns than asked for: {got!r}.")
    # A row cut inside a number may still have eleven cells: only the line's end tells.
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
    frame = pd.DataFrame(rows, columns=wanted, dtype="float64")
    return frame.mask(frame <= -999.0)


def _sdss_url() -> str:
    return f"{_SKYSERVER}?{urlencode({'cmd': sdss_query(), 'format': 'csv'})}"


DOWNLOADS: Mapping[str, Download] = {
    "sdss": Download(_sdss_url(), read_skyserver),
    "drosophila": Download(drosophila.URL, drosophila.read_four),
    "drosophila200": Download(drosophila.URL, drosophila.read_many),
    "omniglot": Download(
        public_alphabets.BACKGROUND[0],
        public_alphabets.read_all,
        *public_alphabets.BACKGROUND[1:],
        more=(File(*public_alphabets.EVALUATION),),
    ),
    "ojibwe_blackfoot": Download(
        public_alphabets.BACKGROUND[0], public_alphabets.read_two, *public_alphabets.BACKGROUND[1:]
    ),
}


def fetch(
    name: str,
    data_dir: Path,
    progress: Progress | None = None,
    *,
    downloads: Mapping[str, Download] = DOWNLOADS,
    pause: float = 1.0,
) -> Path:
    """Download a data set; a file that is already there is kept.

    Args:
        name: A key of `downloads`.
        data_dir: The user's data directory; the file is `datasets/<name>.parquet` in it.
        progress: Called with the bytes so far and in all (None where the server does not say).
        downloads: What can be fetched.
        pause: Seconds before the second attempt, doubled for each further one.

    Raises:
        BadInput: No such data set, no connection, or an answer that is not the data set.
    """
    if name not in downloads:
        raise BadInput(f"There is no data set {name!r} to fetch; there is {', '.join(downloads)}.")
    folder = data_dir / "datasets"
    target = folder / f"{name}.parquet"
    if target.is_file():
        return target
    folder.mkdir(parents=True, exist_ok=True)
    download = downloads[name]
    parts = [folder / f"{name}{n or ''}.part" for n in range(len(download.files))]
    heard = _over_all(download.files, progress or (lambda done, total: None))
    for n, (file, part) in enumerate(zip(download.files, parts)):
        _download(file, part, name, partial(heard, n), pause)
    try:
        frame = download.read(*(part.read_bytes() for part in parts), name)
    finally:
        for part in parts:
            part.unlink(missing_ok=True)
    made = folder / f"{name}.new"
    frame.to_parquet(made, index=False)
    made.replace(target)
    return target


def _over_all(files: Sequence[File], progress: Progress) -> Callable[[int, int, int | None], None]:
    """Told how far one of the files is, tells how far all of them are."""
    sizes, held = [file.size for file in files], [0] * len(files)

    def heard(n: int, done: int, total: int | None) -> None:
        held[n] = done
        sizes[n] = total if total is not None else sizes[n]
        known = [size for size in sizes if size is not None]
        progress(sum(held), sum(known) if len(known) == len(sizes) else None)

    return heard


def _download(file: File, part: Path, name: str, progress: Progress, pause: float) -> None:
    """The bytes of a file in `part`, checked; goes on from what a broken connection left.

    Raises:
        BadInput: No connection, or other bytes than there should be; they are thrown away.
    """
    known, reason = file.sha256 or None, ""
    if known and part.is_file() and hash_matches(part, known):
        progress(part.stat().st_size, part.stat().st_size)
        return
    for attempt in range(_ATTEMPTS):
        if attempt:
            time.sleep(pause * 2 ** (attempt - 1))
        try:
            # Only a checksum can tell whether two halves are of one file.
            _request(file.url, part, "ab" if known else "wb", progress)
        except OSError as error:  # those of requests are, too
            answer = getattr(error, "response", None)
            if answer is None:
                reason = _innermost(error)
                continue
            reason = f"it answered {answer.status_code} {answer.reason}"
            if answer.status_code == 416:  # what we hold is longer than the file: begin again
                part.unlink()
            elif answer.status_code < 500:
                break
            continue
        if hash_matches(part, known):
            return
        part.unlink()
        raise BadInput(f"The download of {name!r} is damaged (checksum); fetch it again.")
    raise BadInput(
        f"The data set {name!r} could not be downloaded from {urlsplit(file.url).hostname} "
        f"({reason}); check the connection and try again."
    )


def _innermost(error: BaseException) -> str:
    """What the system said, without the words of the libraries that it came through."""
    while error.__context__ is not None:
        error = error.__context__
    return str(error)[:120]


def _request(url: str, part: Path, mode: str, progress: Progress) -> None:
    """One request, from where `part` ends if `mode` appends and the server can."""
    whole: int | None = None
    with part.open(mode) as out:
        headers = {"User-Agent": "scant", "Accept-Encoding": "identity"}
        if out.tell():
            headers["Range"] = f"bytes={out.tell()}-"

        def begun(answer: Any, **_: object) -> None:
            nonlocal whole
            if answer.status_code == 200:  # the file from its beginning
                out.seek(0)
                out.truncate()
            length = answer.headers.get("Content-Length")
            whole = out.tell() + int(length) if length else None

        def write(chunk: bytes) -> None:
            out.write(chunk)
            progress(out.tell(), whole)

        download = HTTPDownloader(
            chunk_size=_CHUNK, headers=headers, hooks={"response": begun}, timeout=120
        )
        download(url, SimpleNamespace(write=write, flush=out.flush), None)
