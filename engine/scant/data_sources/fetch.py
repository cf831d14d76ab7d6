"""Real data, downloaded once into the user's data directory: resumed, checked, then renamed."""

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
from pooch import HTTPDownloader
from pooch.hashes import hash_matches

from scant.errors import BadInput
from scant.studies.genes import drosophila
from scant.studies.omniglot import public_alphabets
from scant.studies.redshift import sdss

Progress = Callable[[int, int | None], None]  # bytes so far, bytes in all where known

_ATTEMPTS = 5
_CHUNK = 1 << 10  # what a broken connection loses at most


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
