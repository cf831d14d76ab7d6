"""Omniglot's two files, and invented alphabets."""

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
from scipy.ndimage import label as components
from sklearn.neighbors import KNeighborsClassifier

from scant.data_sources.fetch import Download, File, fetch
from scant.data_sources.open import sample
from scant.errors import BadInput
from scant.studies.omniglot import public_alphabets, simulate
from scant.studies.omniglot.entry import ENTRY
from scant.studies.omniglot.settings import OmniglotSettings
from scant.studies.omniglot.table import TABLE, area, nearest, of
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


def archive(images: np.ndarray) -> bytes:
    """Images with ink 1 as the downloads have them: PNG of one bit, paper 1."""
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as packed_images:
        for i, image in enumerate(images):
            file = io.BytesIO()
            Image.fromarray(image == 0).save(file, "PNG")
            packed_images.writestr(f"a/b/{i:03}.png", file.getvalue())
    return out.getvalue()


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
    table = public_alphabets._part(archive(images), "omniglot", len(images))
    read = of(table).x.reshape(-1, 20, 20)
    assert np.abs(255 * read - kept["area20"][::7]).max() < 1.01


def test_the_nearest_pixels_are_those_of_the_authors() -> None:
    folder = Path(os.environ.get("SCANT_REAL_DATA", REAL_DATA)) / "omniglot"
    if not folder.is_dir():
        pytest.skip("SCANT_REAL_DATA names no folder omniglot")
    kept = np.load(folder / "ojibwe_blackfoot.npz")
    images = kept["images105"][::7].astype(float)
    np.testing.assert_array_equal(nearest(images, 20), kept["nearest20"][::7])
    table = public_alphabets._part(
        archive(images), "omniglot", len(images), Image.Resampling.NEAREST
    )
    read = of(table).x.reshape(-1, 20, 20)
    np.testing.assert_array_equal(read, kept["nearest20"][::7])


@pytest.mark.slow
def test_the_demonstration() -> None:
    frame = simulate.demo(OmniglotSettings())
    table = read_frame(frame, TABLE)
    assert table.notes == ()
    data = of(table.frame)
    assert [len(names) for names in data.classes] == [12, 12, 10]
    assert np.bincount(data.number).tolist() == [20] * 34
    assert data.x.shape == (680, 400)
    assert data.x.min() == 0.0
    assert 0.9 < data.x.max() <= 1.0
    assert 0.03 < data.x.mean() < 0.2
    assert (ENTRY.sources[0].size, len(frame.columns)) == ((680, 402), 402)
    assert frame.equals(simulate.demo(OmniglotSettings()))
    assert not np.allclose(data.x, of(simulate.demo(OmniglotSettings(data_seed=1))).x)
    assert len(sample(ENTRY, "demo", 50)) == 50


def test_both_sizes_are_the_same_drawings() -> None:
    sizes = {"A": (0, 2)}
    large, small = (simulate.alphabets(0, n, sizes=sizes, drawers=3) for n in (105, 20))
    np.testing.assert_allclose(area(large.x.reshape(-1, 105, 105), 20).reshape(6, -1), small.x)


def test_a_line_is_as_wide_as_its_pen_and_smooth_at_its_edge() -> None:
    along = np.linspace([20.0, 52.3], [80.0, 52.3], 72)
    drawn = simulate.ink(along[None, None], np.array([1]), np.array([2.0]))[0]
    column = drawn[:, 50]
    assert column.sum() == pytest.approx(4.0, abs=0.1)  # twice the radius
    assert ((column > 0) & (column < 1)).any()
    assert (column @ np.arange(105)) / column.sum() == pytest.approx(52.3, abs=0.05)
    assert drawn[52, 21:80].min() == 1.0
    none = simulate.ink(along[None, None], np.array([0]), np.array([2.0]))
    assert none.sum() == 0.0


def test_strokes_are_never_broken() -> None:
    data = simulate.alphabets(2, 105, sizes={"A": (0, 6)}, drawers=4)
    for image in data.x.reshape(-1, 105, 105):
        assert 1 <= components(image > 0.1, np.ones((3, 3)))[1] <= 3  # strokes of a character


def test_a_neighbor_is_right_about_half_the_time() -> None:
    """Hard enough that there is something to learn, easy enough that it can be learned."""
    data = simulate.alphabets(0)
    drawer = np.arange(len(data)) % simulate.DRAWERS
    right = []
    for d in range(3):
        mine = data.output == d
        train, test = mine & (drawer < 16), mine & (drawer >= 16)
        nearest = KNeighborsClassifier(1).fit(data.x[train], data.label[train])
        right.append(nearest.score(data.x[test], data.label[test]))
    assert 0.35 < np.mean(right) < 0.7


def test_alphabets_of_one_family_share_strokes() -> None:
    """Over seeds, the nearest knots in a related alphabet are nearer than in another one."""
    rng = np.random.default_rng(0)
    knots, _ = simulate._characters(rng, {"A": (0, 40), "B": (0, 40), "C": (1, 40)})
    shapes = knots - knots.mean(axis=2, keepdims=True)
    shapes = shapes / np.linalg.norm(shapes, axis=(2, 3), keepdims=True)
    flat = np.abs(shapes.reshape(3, 120, -1))  # alphabet, stroke; mirrored strokes are alike
    near = [np.linalg.norm(flat[0][:, None] - flat[i][None], axis=2).min(1) for i in (1, 2)]
    assert np.mean(near[0] < 1e-6) > 0.4
    assert np.mean(near[1] < 1e-6) == 0.0
