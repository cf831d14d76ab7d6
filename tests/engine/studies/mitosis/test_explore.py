"""What the mitosis study answers once it and what it is compared with are fitted."""

from __future__ import annotations

import base64

import numpy as np
import pytest

from scant.events import Report
from scant.studies.mitosis.study import Study
from tests.engine.studies.mitosis.nuclei import CPU, clouds, patches, settings
from tests.engine.studies.studying import run, value


@pytest.fixture(scope="module")
def fitted() -> tuple[Study, Report]:
    study = Study(settings(max_steps=40, baselines=True), patches(), CPU)
    return study, run(study)


@pytest.fixture(scope="module")
def plain() -> Study:
    study = Study(settings(imbalance=0, max_steps=30), clouds({"few": 30, "a": 40, "b": 80}), CPU)
    run(study)
    return study


@pytest.mark.slow
def test_other_methods_stand_beside_it(fitted: tuple[Study, Report]) -> None:
    study, report = fitted
    names = study.metadata["methods"]
    assert names[:3] == ["SCLVM", "BGPLVM + SVM", "DGPLVM + SVM"]
    others = list(dict.fromkeys(m.method for m in report.metrics if m.source == "baseline"))
    assert others == names[1:]
    for method in ("this run", *others):
        assert 0 <= value(report, "F1", method) <= 1
        assert value(report, "mean log probability (nats)", method) < 0
    assert report.arrays["pr"].shape == (5, 3, 102)  # each method's own threshold is one of them
    assert np.isfinite(report.arrays["pr"][:, 2]).all()
    assert np.isfinite(report.arrays["threshold"]).all()


@pytest.mark.slow
def test_a_row_is_placed_as_it_was_scored(fitted: tuple[Study, Report], plain: Study) -> None:
    study, report = fitted
    told = study.explore("row", index=7)
    np.testing.assert_allclose(told["p"], report.arrays["test_p"][7], atol=0.02)
    assert told["label"][0] == report.arrays["test_label"][7]
    assert told["mean"].shape == told["std"].shape == (2, 3)
    assert told["reconstruction"].shape == (2, 10, 10)
    again = study.explore("place", pixels=told["image"].ravel().tolist())
    assert all(np.array_equal(again[k], told[k]) for k in told if k != "label")
    assert again["label"].tolist() == [-1]
    shown = study.explore("row", index=0, of="shown")
    assert shown["label"][0] == report.arrays["latent_class"][0]
    numbers = plain.explore("row", index=3)
    assert numbers["reconstruction"].shape == (3, 5)
    assert numbers["image"].shape == (1, 5)


def test_pixels_come_as_numbers_as_words_and_as_bytes(fitted: tuple[Study, Report]) -> None:
    study, _ = fitted
    gray = study.explore("row", index=4)["image"].ravel()
    packed = base64.b64encode(np.round(255 * gray).astype(np.uint8).tobytes()).decode()
    ways = [gray.tolist(), ",".join(map(str, gray)), packed]
    lines = [study.explore("place", pixels=way) for way in ways]
    assert all(np.array_equal(t["p"], lines[0]["p"]) for t in lines)
    gaps = ["" if i < 10 else str(v) for i, v in enumerate(gray)]
    assert np.isfinite(study.explore("place", pixels=",".join(gaps))["p"]).all()


def test_decoding_a_rows_own_place_gives_it_back(fitted: tuple[Study, Report]) -> None:
    study, _ = fitted
    told = study.explore("row", index=0, of="shown")
    c = int(told["label"][0])
    name = study.metadata["classes"][c]
    decoded = study.explore("decode", x=told["mean"][c].tolist(), label=name)
    np.testing.assert_array_equal(decoded["image"], told["reconstruction"][c])
    assert (decoded["std"] > 0).all()
    away = study.explore("decode", x=[9.0, 9.0, 9.0], label=name)
    assert away["std"].mean() > decoded["std"].mean()


def test_generated_rows_are_of_their_class(plain: Study, fitted: tuple[Study, Report]) -> None:
    study, _ = fitted
    one, same, other = (study.explore("generate", label="mitosis", seed=s) for s in (1, 1, 2))
    assert one["generated"].shape == (8, 10, 10)
    assert np.array_equal(one["generated"], same["generated"])
    assert not np.array_equal(one["generated"], other["generated"])
    for i, name in enumerate(["few", "a", "b"]):
        made = plain.explore("generate", label=name, count=30)["generated"]
        assert made.mean(0).argmax() == i  # the cloud's own axis


def test_real_rows_are_made_anew_beside_themselves(
    plain: Study, fitted: tuple[Study, Report]
) -> None:
    study, _ = fitted
    told = study.explore("redraw", label="mitosis", count=4, seed=1)
    held = study.data.places[study.data.test[study.data.label[study.data.test] == 0]]
    assert np.isin(told["rows"], held).all()
    assert told["real"].shape == told["redrawn"].shape == (4, 10, 10)
    other = study.explore("redraw", label="other", count=4, seed=1)
    crossed = np.abs(told["real"] - other["redrawn"]).mean()
    assert np.abs(told["real"] - told["redrawn"]).mean() < crossed
    for name in ("few", "a", "b"):
        rows = plain.explore("redraw", label=name, count=3)
        assert rows["real"].shape == rows["redrawn"].shape == (3, 5)


@pytest.mark.slow
def test_the_imbalance_bites_and_the_run_stays_as_it_was(fitted: tuple[Study, Report]) -> None:
    study, _ = fitted
    kept = {k: v.clone() for k, v in study.model.state_dict().items()}
    before = study.explore("row", index=1)["p"]
    even, scarce = (study.explore("imbalance", ratio=r) for r in (1, 300))
    assert even["scores"].shape == (5, 4)
    assert np.isfinite(even["scores"]).all()
    assert even["rows"].tolist() == [study.metadata["pool"][0]] * 2
    assert even["ratio"].tolist() == [1.0]
    assert scarce["rows"].tolist() == [2, study.metadata["pool"][1]]
    assert not np.allclose(even["scores"], scarce["scores"])
    # With two rare rows left, average precision falls for most methods.
    assert (scarce["scores"][:, 3] < even["scores"][:, 3]).sum() >= 3
    again = study.explore("imbalance", ratio=1)
    assert np.array_equal(again["scores"], even["scores"])
    assert all((v == study.model.state_dict()[k]).all() for k, v in kept.items())
    assert np.array_equal(study.explore("row", index=1)["p"], before)


def test_only_the_runs_own_method_is_tried_where_no_others_were(plain: Study) -> None:
    told = plain.explore("imbalance", ratio=1)
    assert told["scores"].shape == (1, 4)
    assert np.isfinite(told["scores"]).all()
