"""Download of real data into the data directory, with resumption and checksums."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from urllib.parse import urlsplit

import pandas as pd
from PIL import Image
from pooch import HTTPDownloader
from pooch.hashes import hash_matches

from scant.errors import BadInput
from scant.studies.genes import drosophila
from scant.studies.omniglot import public_alphabets
from scant.studies.redshift import sdss

Progress = Callable[[int, int | None], None]  # bytes so far, total bytes or None

_ATTEMPTS = 5
_CHUNK = 1 << 10  # bytes; maximum loss from a broken connection


@dataclass(frozen=True)
class File:
    """File of a data set: URL, SHA-256 ("" if unknown) and size in bytes (None if unknown)."""

    url: str
    sha256: str = ""
    size: int | None = None


@dataclass(frozen=True)
class Download:
    """Data set to download, with one or several files.

    Attributes:
        url: URL of the first file.
        read: Function of the contents of the files in order and the name that returns a table.
        sha256: SHA-256 of the first file; "" if unknown.
        size: Size of the first file in bytes; None if unknown.
        more: Further files.
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


DOWNLOADS: Mapping[str, Download] = {
    "sdss": Download(sdss.url(), sdss.read),
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
    "ojibwe_blackfoot_nearest": Download(
        public_alphabets.BACKGROUND[0],
        partial(public_alphabets.read_two, resampling=Image.Resampling.NEAREST),
        *public_alphabets.BACKGROUND[1:],
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
    """Download a data set unless it exists.

    Args:
        name: Key of `downloads`.
        data_dir: Data directory of the user, with the file in `datasets/<name>.parquet`.
        progress: Function called with the bytes so far and the total (None if unknown).
        downloads: Available data sets by name.
        pause: Seconds before the second attempt, doubled for each further one.

    Raises:
        BadInput: The data set is unknown, cannot be downloaded or is damaged.
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
    report = _over_all(download.files, progress or (lambda done, total: None))
    for n, (file, part) in enumerate(zip(download.files, parts)):
        _download(file, part, name, partial(report, n), pause)
    try:
        frame = download.read(*(part.read_bytes() for part in parts), name)
    finally:
        for part in parts:
            part.unlink(missing_ok=True)
    temporary = folder / f"{name}.new"
    frame.to_parquet(temporary, index=False)
    temporary.replace(target)
    return target


def _over_all(files: Sequence[File], progress: Progress) -> Callable[[int, int, int | None], None]:
    """Return a callback for the progress of one file that reports the total progress."""
    sizes, received = [file.size for file in files], [0] * len(files)

    def report(n: int, done: int, total: int | None) -> None:
        received[n] = done
        sizes[n] = total if total is not None else sizes[n]
        known_sizes = [size for size in sizes if size is not None]
        progress(sum(received), sum(known_sizes) if len(known_sizes) == len(sizes) else None)

    return report


def _download(file: File, part: Path, name: str, progress: Progress, pause: float) -> None:
    """Download a file to `part`, resuming a partial download, and check it.

    Raises:
        BadInput: The download failed or is damaged; damaged content is deleted.
    """
    checksum, reason = file.sha256 or None, ""
    if checksum and part.is_file() and hash_matches(part, checksum):
        progress(part.stat().st_size, part.stat().st_size)
        return
    for attempt in range(_ATTEMPTS):
        if attempt:
            time.sleep(pause * 2 ** (attempt - 1))
        try:
            # Only a checksum can tell whether two halves are of one file.
            _request(file.url, part, "ab" if checksum else "wb", progress)
        except OSError as error:  # includes exceptions of requests
            response = getattr(error, "response", None)
            if response is None:
                reason = _innermost(error)
                continue
            reason = f"it answered {response.status_code} {response.reason}"
            if response.status_code == 416:  # the partial file is too long: restart
                part.unlink()
            elif response.status_code < 500:
                break
            continue
        if hash_matches(part, checksum):
            return
        part.unlink()
        raise BadInput(f"The download of {name!r} is damaged (checksum); fetch it again.")
    raise BadInput(
        f"The data set {name!r} could not be downloaded from {urlsplit(file.url).hostname} "
        f"({reason}); check the connection and try again."
    )


def _innermost(error: BaseException) -> str:
    """Return the message of the original exception."""
    while error.__context__ is not None:
        error = error.__context__
    return str(error)[:120]


def _request(url: str, part: Path, mode: str, progress: Progress) -> None:
    """Download a file, continuing `part` if `mode` appends and the server supports it."""
    total: int | None = None
    with part.open(mode) as out:
        headers = {"User-Agent": "scant", "Accept-Encoding": "identity"}
        if out.tell():
            headers["Range"] = f"bytes={out.tell()}-"

        def start_response(answer: Any, **_: object) -> None:
            nonlocal total
            if answer.status_code == 200:  # the whole file, not a range
                out.seek(0)
                out.truncate()
            length = answer.headers.get("Content-Length")
            total = out.tell() + int(length) if length else None

        def write(chunk: bytes) -> None:
            out.write(chunk)
            progress(out.tell(), total)

        download = HTTPDownloader(
            chunk_size=_CHUNK, headers=headers, hooks={"response": start_response}, timeout=120
        )
        download(url, SimpleNamespace(write=write, flush=out.flush), None)
