"""The static pages of a server: one a study, made at start by a process of its own, kept on disk.

A page is made again when its recording, the package or the server's limits change, which its key
tells. Until it is there, visitors get the live page.
"""

from __future__ import annotations

import asyncio
import gzip
import hashlib
import logging
from pathlib import Path
from typing import Any, NamedTuple

from scant import __version__
from scant.dashboard.frame.template import assets, log_out
from scant.dashboard.static_page.apart import apart, database
from scant.dashboard.static_page.page import ACCOUNT, DARK_MARK
from scant.store.private_files import private_folder
from scant.studies import STUDIES

FOLDER = "pages"

log = logging.getLogger(__name__)


class Page(NamedTuple):
    """What is kept of a page: for a first visitor and for one who has used a page before."""

    first: str
    returning: str


class Published:
    """Pages by study, as long as there are any.

    Args:
        folder: The server's data directory.
        database: The address of its store.
        hours: That a run may use on this server, which pages say.
    """

    def __init__(self, folder: Path, database: str, hours: float) -> None:
        self._folder, self._database, self._hours = folder / FOLDER, database, hours
        self._pages: dict[str, Page] = {}
        self._packed: dict[tuple[str, bool, bool], bytes] = {}
        self._maker: asyncio.Task[None] | None = None

    def start(self) -> None:
        """Read the pages that there are, and have the others made."""
        self._maker = asyncio.get_running_loop().create_task(self._make())

    def close(self) -> None:
        """Make no more."""
        if self._maker is not None:
            self._maker.cancel()

    def markup(self, study: str, returning: bool, dark: bool, user: str = "") -> str | None:
        """A study's page as HTML; None where it is not made yet.

        Args:
            study: Its name.
            returning: Whether the visitor has used a page before; the story is folded then.
            dark: Whether the visitor prefers the dark theme.
            user: Who is logged in.
        """
        page = self._pages.get(study)
        if page is None:
            return None
        made = page.returning if returning else page.first
        return made.replace(DARK_MARK, "dark" if dark else "").replace(ACCOUNT, log_out(user))

    def packed(self, study: str, returning: bool, dark: bool) -> bytes | None:
        """The same for whom nobody knows by name, compressed by gzip."""
        key = (study, returning, dark)
        if key not in self._packed:
            made = self.markup(*key)
            if made is None:
                return None
            self._packed[key] = gzip.compress(made.encode(), 9, mtime=0)
        return self._packed[key]

    async def _make(self) -> None:
        try:
            private_folder(self._folder)
            key = self._key()
            for study in STUDIES:
                files = [self._folder / f"{study}-{kind}-{key}.html" for kind in Page._fields]
                if not all(file.is_file() for file in files):
                    await self._made(study, files)
                self._pages[study] = Page(*(file.read_text(encoding="utf-8") for file in files))
            self._forget(key)
        except Exception:
            log.exception("static pages could not be made; visitors get live ones")

    async def _made(self, study: str, files: list[Path]) -> None:
        """Have one page written by a process that ends then."""
        module = "scant.dashboard.static_page.make"
        await apart(module, self._database, study, str(self._hours), *map(str, files))

    def _key(self) -> str:
        """What a page is made of: the package's code and recordings, and the server's limits."""
        code = Path(__file__).parents[1]
        made = hashlib.sha256(f"{__version__} {self._hours}".encode())
        for root in (code, code.parent / "data", assets()):
            for file in sorted(root.rglob("*")):
                if file.is_file() and file.suffix in (".py", ".md", ".css", ".js", ".scant"):
                    stat = file.stat()
                    made.update(f"{file.name} {stat.st_size} {stat.st_mtime_ns}".encode())
        return made.hexdigest()[:16]

    def _forget(self, key: str) -> None:
        for file in self._folder.glob("*.html"):
            if not file.stem.endswith(key):
                file.unlink(missing_ok=True)


def made_by(service: Any, folder: Path) -> Published:
    """The pages of a server with this run service."""
    return Published(folder, database(service.store), service.limits.hours)
