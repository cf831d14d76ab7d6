"""The upload wizard with a ZIP of images: shown before it is kept, kept like a CSV, or refused."""

from __future__ import annotations

import asyncio
import io
import zipfile
from base64 import b64decode
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from bokeh.document import Document
from panel.io.state import set_curdoc
from PIL import Image

from scant.store import Store
from scant.studies import entry
from scant.studies.clamp.table import TABLE as PATCHES
from scant.studies.mitosis.table import TABLE as CELLS
from scant.tables.images.image_table import read_image_table
from scant_dashboard.controls.image_preview import pictured
from scant_dashboard.frame.session import SessionContext
from scant_dashboard.frame.site import Site
from scant_dashboard.study_page.page import StudyPage
from tests.dashboard.controls.test_fetch import until
from tests.dashboard.fakes import FakeService, views
from tests.engine.tables.images.test_image_table import TABLE, archive

STUDY = replace(entry("redshift"), table=TABLE)


@pytest.fixture
def site(tmp_path: Path) -> Site:
    return Site(FakeService(Store.open(f"sqlite:///{tmp_path / 'runs.db'}")), tmp_path, "k" * 40)


def wizard(site: Site, act: Callable[[Any], Any]) -> None:
    """Open the wizard and run `act(upload)` on the loop."""

    async def main() -> None:
        doc = Document()
        with set_curdoc(doc):
            page = StudyPage(SessionContext(site, doc, "anna", {}), STUDY, views)
        page.turn = lambda *acts: [one() for one in acts]  # type: ignore[method-assign]
        await act(page.data.upload)

    asyncio.run(main())


def test_a_zip_is_shown_and_kept_like_a_csv(site: Site) -> None:
    async def act(upload: Any) -> None:
        upload._drop.value = {"mine.zip": archive(255, 0, ("alpha", "<b>"))}
        await until(lambda: upload._use.visible)
        message = upload._message.object
        assert "4 images of 2 classes in 1 folder" in message
        assert "dark pixels were read as ink" in message
        assert message.count("src='data:image/png;base64,") == 2
        assert "&lt;b&gt; of Greek" in message
        assert "<b>" not in message
        upload._store()
        store = site.service.store
        await until(lambda: store.uploads("anna"))
        kept = store.upload_table(store.uploads("anna")[0].id)
        assert kept["label"].tolist() == ["<b>", "<b>", "alpha", "alpha"]
        assert kept["p0"].dtype == np.float32
        assert len(kept.columns) == 2 + 20 * 20

    wizard(site, act)


def test_a_csv_is_still_taken_and_a_broken_zip_is_one_sentence(site: Site) -> None:
    async def act(upload: Any) -> None:
        assert "A ZIP of at most 200 MB" in upload._terms.object
        upload._drop.value = {"mine.zip": archive(255, 0)}
        await until(lambda: upload._use.visible)
        upload._drop.value = {"mine.zip": b"not an archive"}
        await until(lambda: "mine.zip is not a ZIP archive" in upload._message.object)
        assert "role='alert'" in upload._message.object
        assert not upload._use.visible
        rows = "".join(f"Greek,{c},{i},{i / 2}\n" for c in "ab" for i in range(4))
        upload._drop.value = {"mine.csv": b"output,label,p0,p1\n" + rows.encode()}
        await until(lambda: upload._use.visible)
        assert "8 rows, 4 columns" in upload._head.object

    wizard(site, act)


def cells(groups: bool) -> bytes:
    """Three light images with a dark row: two of one class, one of another."""
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as packed:
        for i, label in enumerate(("other", "other", "<i>")):
            pixels = np.full((4, 4), 204, np.uint8)
            pixels[i] = 51
            file = io.BytesIO()
            Image.fromarray(pixels).save(file, "PNG")
            folder = f"{label}/slide {i}" if groups else label
            packed.writestr(f"{folder}/{i}.png", file.getvalue())
    return out.getvalue()


def test_a_zip_of_photographs_is_counted_in_patches() -> None:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as packed:
        for name in ("one", "<two>"):
            file = io.BytesIO()
            Image.new("RGB", (640, 360), (90, 120, 60)).save(file, "PNG")
            packed.writestr(f"{name}.png", file.getvalue())
    table = read_image_table(out.getvalue(), PATCHES, name="mine.zip")
    message = pictured(table, PATCHES)
    assert "64 patches of 2 photographs" in message
    assert message.count("<img src='data:image/jpeg;base64,") == 16
    assert "&lt;two&gt;" in message


@pytest.mark.parametrize("groups", [False, True])
def test_a_zip_of_classes_is_counted_rarest_first_and_its_grey_is_kept(groups: bool) -> None:
    schema = replace(CELLS, minimum_rows=2)
    table = read_image_table(cells(groups), schema, size=4, name="mine.zip")
    message = pictured(table, schema)
    assert "3 images of 2 classes, the rarest first" in message
    assert message.index("&lt;i&gt;") < message.index("other")
    assert ("groups" in message) == groups
    assert "<td class='number'>2</td>" in message
    assert message.count("<img") == 3
    gray = np.asarray(Image.open(io.BytesIO(b64decode(message.split("base64,")[1].split("'")[0]))))
    assert sorted(np.unique(gray)) == [51, 204]
