"""The static pages of a server: the gallery and one a study, kept on disk.

A process of its own makes them at start. A page is made again when its recording, the package or
the server's limits change, which its key tells. Until it is there, visitors get the page that came
with the package, and where that was made of other recordings or styles, the live page.
"""

from __future__ import annotations

import asyncio
import gzip
import hashlib
import logging
from collections.abc import Iterator
from itertools import product, starmap
from pathlib import Path
from typing import Any, NamedTuple

import scant
from scant.package_data import package_file
from scant.store.private_files import private_folder
from scant.studies import STUDIES
from scant_dashboard.server.apart import begun, database
from scant_dashboard.static_page.page import ACCOUNT, CLASSES, END
from scant_dashboard.template import assets, log_out

FOLDER = "pages"
SHIPPED = package_file("pages")  # written by scripts/ship_pages.py
GALLERY = "gallery"
PAGES = (GALLERY, *STUDIES)
DATA = Path(str(package_file()))  # with the recordings

log = logging.getLogger(__name__)


class Look(NamedTuple):
    """What of a static page differs between visitors."""

    first: bool  # whether they have not used a page before; else the story is folded
    dark: bool

    def classes(self) -> str:
        """As classes of the page."""
        return " ".join(name for name, holds in self._asdict().items() if holds)


LOOKS = tuple(starmap(Look, product((True, False), repeat=2)))


class Published:
    """Pages by study, as long as there are any.

    Args:
        folder: The server's data directory.
        database: The address of its store.
        hours: That a run may use on this server, which pages say.
    """

    def __init__(self, folder: Path, database: str, hours: float) -> None:
        self._folder, self._database, self._hours = folder / FOLDER, database, hours
        self._pages: dict[str, str] = {}
        self._packed: dict[tuple[str, Look], bytes] = {}
        self._maker: asyncio.Task[None] | None = None

    def start(self) -> None:
        """Show the pages that came with the package, read those that there are of this server, and
        have the others made."""
        made_of = styles_key()
        for page in PAGES:
            shipped = SHIPPED.joinpath(f"{page}-{made_of}.html.gz")
            if shipped.is_file():
                self._pages[page] = gzip.decompress(shipped.read_bytes()).decode()
        self._maker = asyncio.get_running_loop().create_task(self._make())

    def close(self) -> None:
        """Make no more."""
        if self._maker is not None:
            self._maker.cancel()

    def markup(self, study: str, look: Look, user: str = "") -> str | None:
        """A study's page as HTML; None where it is not made yet.

        Args:
            study: Its name, or the gallery's.
            look: How the visitor sees it.
            user: Who is logged in.
        """
        page = self._pages.get(study)
        if page is None:
            return None
        return page.replace(CLASSES, look.classes(), 1).replace(ACCOUNT, log_out(user), 1)

    def packed(self, study: str, look: Look) -> bytes | None:
        """The same for whom nobody knows by name, compressed by gzip."""
        if (study, look) not in self._packed:
            made = self.markup(study, look)
            if made is None:
                return None
            self._packed[study, look] = gzip.compress(made.encode(), 9, mtime=0)
        return self._packed[study, look]

    async def _make(self) -> None:
        try:
            private_folder(self._folder)
            key = await asyncio.to_thread(code_key, self._hours)
            wanted = [page for page in PAGES if not await self._read(key, page)]
            for page in self._pages.keys() & set(wanted):  # those of the package, until then
                await self._pack(page)
            if wanted:
                await self._made(key, wanted)
            self._forget(key)
        except Exception:
            log.exception("static pages could not be made; visitors get live ones")

    async def _read(self, key: str, study: str) -> bool:
        """Take a page from disk; whether it is there."""
        if not await asyncio.to_thread(self.read, key, study):
            return False
        await self._pack(study)
        return True

    async def _pack(self, study: str) -> None:
        """Compress a page for every look, before visitors wait for that."""
        for look in LOOKS:
            await asyncio.to_thread(self.packed, study, look)

    def read(self, key: str, study: str) -> bool:
        """Take a page from disk; False where there is none, or not the whole of it."""
        try:
            page = file_of(self._folder, key, study).read_text(encoding="utf-8")
        except (FileNotFoundError, UnicodeDecodeError):
            return False
        if CLASSES not in page or END not in page:
            return False
        self._pages[study] = page
        for look in LOOKS:
            self._packed.pop((study, look), None)
        return True

    async def _made(self, key: str, studies: list[str]) -> None:
        """Have pages written by a process that ends then; each is shown once it is there."""
        arguments = (str(self._folder), key, str(self._hours), *studies)
        with open(self._folder / "log", "w+b") as said:
            process = await begun("scant_dashboard.static_page.make", *arguments, stderr=said)
            try:
                assert process.stdin is not None
                assert process.stdout is not None
                process.stdin.write(self._database.encode())
                process.stdin.close()
                async for line in process.stdout:
                    await self._read(key, line.decode().strip())
                await process.wait()
            except asyncio.CancelledError:
                process.kill()
                await process.wait()
                raise
            if process.returncode:
                said.seek(0)
                raise RuntimeError(said.read().decode(errors="replace")[-2000:])

    def _forget(self, key: str) -> None:
        for file in self._folder.glob("*.html"):
            if not file.stem.endswith(key):
                file.unlink(missing_ok=True)


def file_of(folder: Path, key: str, study: str) -> Path:
    """Where a study's page lies."""
    return folder / f"{study}-{key}.html"


def styles_key() -> str:
    """What pages that came with the package must have been made of: its recordings and styles."""
    made = hashlib.sha256()
    styles = [file for file in sorted(assets().rglob("*")) if file.suffix in (".css", ".js")]
    for file in (*styles, *sorted((DATA / "recordings").iterdir())):
        made.update(file.read_bytes())
    return made.hexdigest()[:16]


def code_key(hours: float) -> str:
    """What pages are made of: the package's code and recordings, and the server's limits."""
    made = hashlib.sha256(f"{scant.__version__} {hours}".encode())
    for file in _sources():
        stat = file.stat()
        made.update(f"{file.name} {stat.st_size} {stat.st_mtime_ns}".encode())
    return made.hexdigest()[:16]


def _sources() -> Iterator[Path]:
    for folder in (Path(scant.__file__).parent, Path(__file__).parents[1], assets(), DATA):
        for file in sorted(folder.rglob("*")):
            if file.suffix in (".py", ".md", ".css", ".js", ".scant", ".csv") and file.is_file():
                yield file


def made_by(service: Any, folder: Path) -> Published:
    """The pages of a server with this run service."""
    return Published(folder, database(service.store), service.limits.hours)
