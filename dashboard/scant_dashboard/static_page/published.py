"""The static pages of a server: the gallery and one per study, stored on disk.

A separate process makes them when the server starts. A page is remade when its recording, the
package or the server's limits change, as shown by its key. Until then visitors get the page shipped
with the package or, if its recordings or styles differ, the live page.
"""

from __future__ import annotations

import asyncio
import gzip
import hashlib
import logging
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import scant
from scant.package_data import package_file
from scant.store.private_files import private_folder
from scant.studies import STUDIES
from scant_dashboard.server.apart import database, start_process
from scant_dashboard.static_page.page import ACCOUNT, CLASSES, END
from scant_dashboard.static_page.pictures import apart
from scant_dashboard.template import assets, log_out

FOLDER = "pages"
SHIPPED = package_file("pages")  # made by scripts/ship_pages.py
GALLERY = "gallery"
PAGES = (GALLERY, *STUDIES)
DATA = Path(str(package_file()))  # includes the recordings

log = logging.getLogger(__name__)


class Published:
    """Static pages by study, as far as they exist.

    Args:
        folder: The server's data directory.
        database: The address of its store.
        hours: Maximum duration of a run on this server, in hours; stated on pages.
    """

    def __init__(self, folder: Path, database: str, hours: float) -> None:
        self._folder, self._database, self._hours = folder / FOLDER, database, hours
        self._pages: dict[str, str] = {}
        self._figures: dict[str, bytes] = {}  # compressed by gzip
        self._packed: dict[tuple[str, bool], bytes] = {}
        self._maker: asyncio.Task[None] | None = None

    def start(self) -> None:
        """Load the shipped pages, then read or make this server's own ones."""
        made_of = styles_key()
        for page in PAGES:
            if text := shipped_page(page, made_of):
                self._take(page, text)
        self._maker = asyncio.get_running_loop().create_task(self._make())

    def close(self) -> None:
        """Stop making pages."""
        if self._maker is not None:
            self._maker.cancel()

    def markup(self, study: str, dark: bool, user: str = "") -> str | None:
        """Return a study's page as HTML; None if it does not exist yet.

        Args:
            study: Name of the study, or of the gallery.
            dark: Whether the visitor's theme is dark.
            user: Name of the logged-in user.
        """
        page = self._pages.get(study)
        if page is None:
            return None
        return page.replace(CLASSES, "dark" * dark, 1).replace(ACCOUNT, log_out(user), 1)

    def _take(self, study: str, page: str) -> None:
        self._pages[study], models = apart(page)
        self._figures[study] = gzip.compress(models.encode(), 6, mtime=0)

    def figures(self, study: str) -> bytes | None:
        """Return the models of a page's figures (`pictures.apart`), compressed by gzip."""
        return self._figures.get(study)

    def packed(self, study: str, dark: bool) -> bytes | None:
        """Return the page for a visitor without an account, compressed by gzip."""
        if (study, dark) not in self._packed:
            made = self.markup(study, dark)
            if made is None:
                return None
            self._packed[study, dark] = gzip.compress(made.encode(), 9, mtime=0)
        return self._packed[study, dark]

    async def _make(self) -> None:
        try:
            private_folder(self._folder)
            key = await asyncio.to_thread(code_key, self._hours)
            missing = [page for page in PAGES if not await self._read(key, page)]
            for page in self._pages.keys() & set(missing):  # those of the package, until then
                await self._pack(page)
            if missing:
                await self._make_pages(key, missing)
            self._forget(key)
        except Exception:
            log.exception("static pages could not be made; visitors get live ones")

    async def _read(self, key: str, study: str) -> bool:
        """Read a page from disk; return whether it exists."""
        if not await asyncio.to_thread(self.read, key, study):
            return False
        await self._pack(study)
        return True

    async def _pack(self, study: str) -> None:
        """Compress a page in both themes in advance."""
        for dark in (False, True):
            await asyncio.to_thread(self.packed, study, dark)

    def read(self, key: str, study: str) -> bool:
        """Read a page from disk; return False if it is missing or incomplete."""
        try:
            page = file_of(self._folder, key, study).read_text(encoding="utf-8")
        except (FileNotFoundError, UnicodeDecodeError):
            return False
        if CLASSES not in page or END not in page:
            return False
        self._take(study, page)
        for dark in (False, True):
            self._packed.pop((study, dark), None)
        return True

    async def _make_pages(self, key: str, studies: list[str]) -> None:
        """Make pages in a separate process; each is served once it is complete."""
        arguments = (str(self._folder), key, str(self._hours), *studies)
        with open(self._folder / "log", "w+b") as log_file:
            process = await start_process(
                "scant_dashboard.static_page.make", *arguments, stderr=log_file
            )
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
                log_file.seek(0)
                raise RuntimeError(log_file.read().decode(errors="replace")[-2000:])

    def _forget(self, key: str) -> None:
        for file in self._folder.glob("*.html"):
            if not file.stem.endswith(key):
                file.unlink(missing_ok=True)


def shipped_page(page: str, key: str) -> str:
    """Return the page shipped with the package; "" if it was made of other styles than `key`."""
    shipped = SHIPPED.joinpath(f"{page}-{key}.html.gz")
    return gzip.decompress(shipped.read_bytes()).decode() if shipped.is_file() else ""


def file_of(folder: Path, key: str, study: str) -> Path:
    """Return the path of a study's page."""
    return folder / f"{study}-{key}.html"


def styles_key() -> str:
    """Return a hash of recordings and styles, which shipped pages must match."""
    made = hashlib.sha256()
    styles = [file for file in sorted(assets().rglob("*")) if file.suffix in (".css", ".js")]
    for file in (*styles, *sorted((DATA / "recordings").iterdir())):
        made.update(file.read_bytes())
    return made.hexdigest()[:16]


def code_key(hours: float) -> str:
    """Return a hash of the package's code and recordings and the server's limits."""
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
    """Return the pages of a server with this run service."""
    return Published(folder, database(service.store), service.limits.hours)
