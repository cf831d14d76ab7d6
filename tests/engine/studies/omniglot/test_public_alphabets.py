"""Omniglot's two files: fetched as one data set, checked, and the same as the data at hand."""

from __future__ import annotations

import hashlib
import io
import os
import threading
import zipfile
from collections.abc import Callable, Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from PIL import Image

from scant.data_sources.fetch import Download, File, fetch
from scant.errors import BadInput
from scant.studies.omniglot import public_alphabets
from scant.studies.omniglot.table import TABLE, area, of
from scant.tables.read import read_frame
from tests.paths import REAL_DATA


def packed(part: str, alphabets: dict[str, int], drawers: int = 20) -> bytes:
    """An archive as the repository has them: one bit a pixel, paper white."""
    out, rng = io.BytesIO(), np.random.default_rng(0)
    with zipfile.ZipFile(out, "w") as archive:
        for alphabet, count in alphabets.items():
            for character in range(1, count + 1):
                for drawer in range(1, drawers + 1):
                    file = io.BytesIO()
                    ink = rng.uniform(size=(105, 105)) < 0.1
                    Image.fromarray(~ink).save(file, "PNG")
                    path = f"{part}/{alphabet}/character{character:02}/{character}_{drawer:02}.png"
                    archive.writestr(path, file.getvalue())
    return out.getvalue()


@pytest.fixture
def files(monkeypatch: pytest.MonkeyPatch) -> tuple[bytes, bytes]:
    monkeypatch.setattr(public_alphabets, "IMAGES", (100, 40))
    names = {public_alphabets.PUBLISHED[0]: 2, public_alphabets.PUBLISHED[1]: 2, "Latin": 1}
    return packed("images_background", names), packed("images_evaluation", {"Tengwar": 2})


@pytest.fixture
def served(tmp_path: Path) -> Iterator[Callable[[Path], str]]:
    """The address of a file under a server of `tmp_path`."""
    handler = partial(SimpleHTTPRequestHandler, directory=tmp_path)
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    yield lambda path: f"http://127.0.0.1:{server.server_port}/{path.relative_to(tmp_path)}"
    server.shutdown()
    thread.join()
    server.server_close()


def test_both_files_are_one_table(files: tuple[bytes, bytes]) -> None:
    table = public_alphabets.read_all(*files, "omniglot")
    data = of(read_frame(table, TABLE).frame)
    assert set(data.outputs) == {*public_alphabets.PUBLISHED, "Latin", "Tengwar"}
    assert data.classes[data.outputs.index("Tengwar")] == ["character01", "character02"]
    assert np.bincount(data.number).tolist() == [20] * 7
    assert data.x.shape == (140, 400)
    assert 0.05 < data.x.mean() < 0.15  # ink is 1
    two = public_alphabets.read_two(files[0], "ojibwe_blackfoot")
    assert set(two["output"]) == set(public_alphabets.PUBLISHED)
    assert len(two) == 80


def test_what_is_not_omniglot_is_said(files: tuple[bytes, bytes]) -> None:
    with pytest.raises(BadInput, match="holds 40 images where there should be 100"):
        public_alphabets.read_all(files[1], files[0], "omniglot")
    with pytest.raises(BadInput, match="not a ZIP archive"):
        public_alphabets.read_all(b"<html>busy</html>", files[1], "omniglot")
    with pytest.raises(BadInput, match="lacks the alphabet Ojibwe"):
        public_alphabets.read_two(packed("p", {"Latin": 5}), "ojibwe_blackfoot")
    uneven = packed("p", {"Latin": 5}, drawers=8)
    with pytest.raises(BadInput, match="8 images of character01 of Latin"):
        public_alphabets.read_all(packed("p", {"Greek": 5}), uneven, "omniglot")


def test_several_files_are_fetched_with_one_progress(
    files: tuple[bytes, bytes], tmp_path: Path, served: Callable[[Path], str]
) -> None:
    for n, data in enumerate(files):
        (tmp_path / f"{n}.zip").write_bytes(data)
    own = [
        File(served(tmp_path / f"{n}.zip"), hashlib.sha256(data).hexdigest(), len(data))
        for n, data in enumerate(files)
    ]
    made = Download(own[0].url, public_alphabets.read_all, own[0].sha256, own[0].size, (own[1],))
    seen: list[tuple[int, int | None]] = []
    (tmp_path / "datasets").mkdir()
    (tmp_path / "datasets" / "omniglot.part").write_bytes(files[0])  # an earlier call got so far
    (tmp_path / "0.zip").unlink()
    path = fetch("omniglot", tmp_path, lambda *p: seen.append(p), downloads={"omniglot": made})
    assert seen[0] == (len(files[0]), len(files[0]) + len(files[1]))
    assert seen[-1] == (len(files[0]) + len(files[1]),) * 2
    assert [done for done, _ in seen] == sorted(done for done, _ in seen)
    assert [p.name for p in path.parent.iterdir()] == ["omniglot.parquet"]
    read = public_alphabets.read_all(*files, "omniglot")
    pd.testing.assert_frame_equal(pd.read_parquet(path), read, check_dtype=False)


def test_a_damaged_file_is_thrown_away_and_the_whole_one_kept(
    files: tuple[bytes, bytes], tmp_path: Path, served: Callable[[Path], str]
) -> None:
    good, bad = tmp_path / "0.zip", tmp_path / "1.zip"
    good.write_bytes(files[0])
    bad.write_bytes(files[1][:-9])
    digests = [hashlib.sha256(data).hexdigest() for data in files]
    made = Download(
        served(good),
        public_alphabets.read_all,
        digests[0],
        len(files[0]),
        (File(served(bad), digests[1], len(files[1])),),
    )
    with pytest.raises(BadInput, match="damaged"):
        fetch("omniglot", tmp_path, downloads={"omniglot": made})
    assert [p.name for p in (tmp_path / "datasets").iterdir()] == ["omniglot.part"]
    bad.write_bytes(files[1])
    assert fetch("omniglot", tmp_path, downloads={"omniglot": made}).is_file()


def test_our_areas_are_those_of_the_data_at_hand() -> None:
    folder = Path(os.environ.get("SCANT_REAL_DATA", REAL_DATA)) / "omniglot"
    if not folder.is_dir():
        pytest.skip("SCANT_REAL_DATA names no folder omniglot")
    kept = np.load(folder / "ojibwe_blackfoot.npz")
    images = kept["images105"][::7].astype(float)
    # Pillow's box gives a pixel to one of two squares that share it; a share of it goes to each.
    ours = 255 * area(images, 20)
    assert np.abs(ours - kept["area20"][::7]).mean() < 3
    assert ours.mean() == pytest.approx(kept["area20"][::7].mean(), rel=0.01)
    # The road of a download: pack the pictures, read them back.
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        for i, image in enumerate(images):
            file = io.BytesIO()
            Image.fromarray(image == 0).save(file, "PNG")
            archive.writestr(f"a/b/{i:03}.png", file.getvalue())
    table = public_alphabets._part(out.getvalue(), "omniglot", len(images))
    read = of(table).x.reshape(-1, 20, 20)
    assert np.abs(255 * read - kept["area20"][::7]).max() < 1.01
