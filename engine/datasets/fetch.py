"""Real data, downloaded once into the user's data directory: resumed, checked, then renamed."""

from __future__ import annotations

import hashlib
import http.client
import time
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import pandas as pd

from engine.datasets import expression, omniglot
from engine.datasets.photometry import BANDS
from engine.errors import BadInput

Progress = Callable[[int, int | None], None]  # bytes so far, bytes in all where known

_ATTEMPTS = 5
_CHUNK = 1 << 16
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
    (2014), a galaxy with any of them is left out. Fibres are taken at even steps over all plates,
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
        said = " ".join(text.split())[:160]
        kind = "a web page" if text.lstrip().startswith("<") else f"{said!r}"
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
    return f"{_SKYSERVER}?{urllib.parse.urlencode({'cmd': sdss_query(), 'format': 'csv'})}"


DOWNLOADS: Mapping[str, Download] = {
    "sdss": Download(_sdss_url(), read_skyserver),
    "drosophila": Download(expression.URL, expression.read_four),
    "drosophila200": Download(expression.URL, expression.read_many),
    "omniglot": Download(
        omniglot.BACKGROUND[0],
        omniglot.read_all,
        *omniglot.BACKGROUND[1:],
        more=(File(*omniglot.EVALUATION),),
    ),
    "ojibwe_blackfoot": Download(
        omniglot.BACKGROUND[0], omniglot.read_two, *omniglot.BACKGROUND[1:]
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
            _drop(part)
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
    """The bytes of a file in `part`, checked; what an earlier call had finished is kept.

    Raises:
        BadInput: No connection, or other bytes than there should be; they are thrown away.
    """
    whole = part.stat().st_size if part.is_file() and file.sha256 else -1
    if whole >= 0 and whole == file.size and _digest(part) == file.sha256:
        progress(whole, whole)
        return
    _attempts(file.url, part, name, progress, pause)
    if file.sha256 and _digest(part) != file.sha256:
        _drop(part)
        raise BadInput(f"The download of {name!r} is damaged (checksum); fetch it again.")


def _digest(part: Path) -> str:
    return hashlib.sha256(part.read_bytes()).hexdigest()


def _drop(part: Path) -> None:
    part.unlink(missing_ok=True)
    _tag(part).unlink(missing_ok=True)


def _attempts(url: str, part: Path, name: str, progress: Progress, pause: float) -> None:
    """The bytes of `url` in `part`, going on after a broken connection where the server can."""
    host, reason = urllib.parse.urlsplit(url).hostname, ""
    for attempt in range(_ATTEMPTS):
        if attempt:
            time.sleep(pause * 2 ** (attempt - 1))
        try:
            _once(url, part, progress)
            return
        except urllib.error.HTTPError as error:
            if error.code == 416:  # what we hold is longer than the file: begin again
                part.unlink(missing_ok=True)
                continue
            reason = f"it answered {error.code} {error.reason}"
            if error.code < 500:
                break
        except (OSError, http.client.HTTPException) as error:
            reason = str(getattr(error, "reason", error))[:120]
    raise BadInput(
        f"The data set {name!r} could not be downloaded from {host} ({reason}); check the "
        "connection and try again."
    )


def _once(url: str, part: Path, progress: Progress) -> None:
    """One request; from where `part` ends, if the server's file is still the one it began with."""
    tag = _tag(part)
    held = part.stat().st_size if part.is_file() and tag.is_file() else 0
    request = urllib.request.Request(url, headers={"User-Agent": "scant"})
    if held:
        request.add_header("Range", f"bytes={held}-")
        request.add_header("If-Range", tag.read_text())
    with urllib.request.urlopen(request, timeout=120) as answer:
        went_on = answer.status == 206 and answer.headers.get("Content-Range", "").startswith(
            f"bytes {held}-"
        )
        done = held if went_on else 0
        validator = answer.headers.get("ETag")
        tag.unlink(missing_ok=True)
        if validator and not validator.startswith("W/"):
            tag.write_text(validator)
        length = answer.headers.get("Content-Length")
        total = done + int(length) if length else None
        with part.open("ab" if went_on else "wb") as out:
            while chunk := answer.read(_CHUNK):
                out.write(chunk)
                done += len(chunk)
                progress(done, total)
    if total is not None and done < total:
        raise http.client.IncompleteRead(b"", total - done)


def _tag(part: Path) -> Path:
    """Where the validator of a partial download is kept."""
    return part.with_suffix(".tag")
