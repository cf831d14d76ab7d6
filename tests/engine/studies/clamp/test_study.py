"""The clamp study: sessions with a simulated expert, and what a person's session is answered."""

from __future__ import annotations

from collections import deque
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch

import scant
from scant.errors import BadInput
from scant.events import Finished, Progress, Report, Snapshot, State
from scant.models.laplace import acquisition
from scant.models.laplace.classifier import LaplaceGPC, Prior
from scant.studies.auto import CHOSEN
from scant.studies.clamp import report as clamp_report
from scant.studies.clamp import splits
from scant.studies.clamp.components import Scaling
from scant.studies.clamp.cost import estimate
from scant.studies.clamp.entry import ENTRY
from scant.studies.clamp.settings import (
    ACQUISITIONS,
    CNN,
    COMPARED,
    DIVERSITY,
    VALIDATION_F1,
    ClampSettings,
)
from scant.studies.clamp.study import Study
from scant.studies.clamp.table import PatchPool
from scant.tables.images.cutting import cut, table_of
from scant.tables.images.kinds import HANDMADE, JOINED, NETWORK
from scant.training.loop import train
from tests.engine.studies.clamp.pools import CPU, clouds, settings
from tests.engine.studies.studying import run, value


@pytest.fixture(scope="module")
def table() -> pd.DataFrame:
    return clouds()


@pytest.fixture(scope="module")
def session(table: pd.DataFrame) -> tuple[Study, Report]:
    study = Study(settings(), table, CPU)
    return study, run(study)


@pytest.fixture(scope="module")
def photographs(tmp_path_factory: pytest.TempPathFactory) -> pd.DataFrame:
    """Ten pictures of noise with red squares here and there."""
    rng = np.random.default_rng(0)
    cuts, labels = [], []
    for i in range(10):
        image = rng.integers(60, 120, (160, 240, 3)).astype(np.uint8)
        image[:40, 80 * (i % 3) : 80 * (i % 3) + 40] = (250, 30, 30)
        for one in cut(image, f"photo {i}", 80):
            cuts.append(one)
            labels.append("clamp" if (one.image[..., 0] > 200).mean() > 0.1 else "no clamp")
    return table_of(cuts, labels)


# --- rows ---------------------------------------------------------------------------------------


def test_the_catalog_names_what_the_models_know() -> None:
    assert tuple(ACQUISITIONS) == ("auto", *acquisition.METHODS)
    assert tuple(DIVERSITY) == acquisition.DIVERSITY
    for values in ENTRY.presets.values():
        ClampSettings.parse(values)
    seconds, held = estimate(ClampSettings(), 756, 6, {})
    assert 2 < seconds < 120
    assert held < 2e9


def test_pictures_are_held_out_as_a_whole(table: pd.DataFrame) -> None:
    shares = {"validation_share": 0.15, "count_validation": False}
    rows = Study(settings(**shares), table, CPU).data.rows
    owners = [set(rows.pool.picture[rows.role == role]) for role in range(3)]
    assert all(owners)
    assert not owners[0] & owners[1]
    assert not owners[0] & owners[2]
    assert not owners[1] & owners[2]
    assert np.bincount(rows.pool.label[rows.scored], minlength=2).all()
    same = Study(settings(**shares, seed=1), table, CPU).data.rows
    assert np.array_equal(same.role, rows.role)  # the test set is fixed
    for values in ({"data_seed": 1}, {"seed": 1, "fixed_split": False}):
        other = Study(settings(**shares, **values), table, CPU).data.rows
        assert not np.array_equal(other.role, rows.role)


@pytest.mark.parametrize("ratio", [2.0, 20.0])
def test_imbalance_is_that_of_the_setting(table: pd.DataFrame, ratio: float) -> None:
    study = Study(settings(imbalance=ratio, test_share=0.4, validation_share=0.0), table, CPU)
    other, wanted = np.bincount(study.data.rows.pool.label)
    assert other / wanted == pytest.approx(ratio, rel=0.1)
    assert any("Rows left out: " in note for note in study.notes)
    assert np.array_equal(
        table["label"].to_numpy()[study.data.rows.row] == "clamp", study.data.rows.pool.label == 1
    )


def test_features_are_made_once_whatever_is_left_out(
    photographs: pd.DataFrame, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SCANT_DATA_DIR", str(tmp_path))
    every, few = (
        Study(settings(imbalance=ratio, feature_extractor=HANDMADE), photographs, CPU).data.rows
        for ratio in (0.0, 20.0)
    )
    assert len(few.row) < len(every.row)
    assert len(list((tmp_path / "features").iterdir())) == 1


def test_components_are_those_of_scikit_learn() -> None:
    from sklearn.decomposition import PCA

    x = np.random.default_rng(1).normal(size=(50, 7)) @ np.diag([5, 4, 3, 2, 1, 1, 0])
    result = Scaling.fit(x, 4)
    z = (x - x.mean(0)) / np.where(x.std(0) > 0, x.std(0), 1)
    theirs = PCA(4).fit(z)
    np.testing.assert_allclose(result.share[:4], theirs.explained_variance_ratio_, atol=1e-10)
    own = result.transform(x)
    assert (own**2).mean() == pytest.approx(1)
    assert np.abs(np.corrcoef(own.T, theirs.transform(z).T)[:4, 4:]).diagonal() == pytest.approx(1)


# --- a simulated expert -------------------------------------------------------------------------


@pytest.mark.slow
def test_a_session_asks_for_batches_until_the_budget_is_spent(table: pd.DataFrame) -> None:
    events = list(train(Study(settings(patience=0, baselines=False), table, CPU)))
    steps = [e for e in events if isinstance(e, Progress)]
    assert len(steps) == 4
    last = [e.arrays for e in events if isinstance(e, Snapshot)][-1]
    assert last["labels"].tolist() == [20, 30, 40, 50]
    assert last["f1"].shape == last["precision"].shape == last["recall"].shape == (2, 4)
    assert len(set(last["asked"].tolist())) == 50
    assert (last["role"][last["asked"]] == 0).all()
    assert np.array_equal(last["truth"][last["asked"]], last["asked_label"])
    assert last["pool_p"].shape == (240,)
    assert events[-1].state is State.FINISHED
    assert events[-1].reason == "All 50 labels of the budget are used."
    assert len(last["queue"]) == 8, "what further labels would be asked for"
    assert set(last["queue"]).isdisjoint(last["asked"])
    first = next(e.arrays for e in events if isinstance(e, Snapshot))
    assert np.array_equal(first["queue_p"], first["pool_p"][first["queue"]])


def test_the_report_compares_methods_on_the_same_labels(session: tuple[Study, Report]) -> None:
    study, report = session
    for name in COMPARED:
        for score in clamp_report.SCORES:
            assert 0 <= value(report, score, name) <= 1
    assert value(report, "F1") == report.arrays["f1"][0, -1]
    assert value(report, "F1") > 0.3
    rounds = len(report.arrays["labels"])
    assert report.arrays["compare_f1"].shape == (4, rounds)
    random = np.array(study.history.values["GP, random"])[:, :, 0]
    np.testing.assert_allclose(report.arrays["compare_f1"][1], random.mean(1))
    np.testing.assert_allclose(report.arrays["compare_sd"][1], random.std(1))
    assert value(report, "F1", "GP, active (published, other pictures)") == 0.78
    assert report.arrays["reliability"][2].sum() == len(report.arrays["test_row"])
    gain = report.arrays["compare_f1"][0] - report.arrays["compare_f1"][1]
    expected = np.trapezoid(gain, report.arrays["labels"]) / 30
    told = value(report, "mean gain of F1 over random", "GP, active")
    assert told == pytest.approx(expected) if rounds == 4 else True
    assert any("changes F1 by" in note for note in report.notes)


@pytest.mark.slow
def test_sessions_begin_alike_and_random_ones_go_on_at_random(table: pd.DataFrame) -> None:
    study = Study(settings(patience=0, baselines=False), table, CPU)
    run(study)
    active, same, other = study.active, *study.random
    assert active.rows[:20] == same.rows[:20]
    assert active.rows[20:] != same.rows[20:]
    assert same.rows[:20] != other.rows[:20]
    assert same.rows == same.order[:50].tolist()
    assert len(active.rows) == len(same.rows) == len(other.rows)


def test_patches_that_are_asked_about_lie_between_the_classes(table: pd.DataFrame) -> None:
    study = Study(settings(patience=0, diverse="none", acquisition="least confident"), table, CPU)
    study.start_restart(0, 0, None)
    study.step()
    free = study.active.free().numpy()
    p = study.active.p.numpy()
    own = np.abs(p[study.active.pending] - 0.5)
    left = np.setdiff1d(free, study.active.pending)
    assert own.max() <= np.abs(p[left] - 0.5).min()


@pytest.mark.slow
def test_it_stops_when_nothing_changes() -> None:
    """Two clouds far apart are learned at once."""
    table = clouds()
    table.loc[table["label"] == "clamp", [f"f{i}" for i in range(6)]] += 20
    events = list(train(Study(settings(budget=150, patience=3, baselines=False), table, CPU)))
    assert events[-1].state is State.CONVERGED
    assert "a batch changed F1 by about 0.000 in the last 3" in events[-1].reason
    assert any(note.startswith("You may stop: a batch") for note in events[-1].report.notes)
    assert len([e for e in events if isinstance(e, Progress)]) < 14


@pytest.mark.slow
def test_the_published_rule_stops_where_the_validation_f1_no_longer_rises(
    table: pd.DataFrame,
) -> None:
    values = {"stop_rule": VALIDATION_F1, "patience": 2, "budget": 150, "repeats": 1}
    study = Study(settings(**values, validation_share=0.3, baselines=False), table, CPU)
    *_, end = train(study)
    f1 = study.history.values["validation_f1"]
    rounds = range(3, len(f1) + 1)
    stops = [r for r in rounds if max(f1[r - 2 : r]) <= max(f1[: r - 2])]
    assert stops == [len(f1)]
    assert end.state is State.CONVERGED
    assert end.reason == "The validation F1 has not risen in 2 batches."
    assert len(study.active.rows) < study.most
    with pytest.raises(BadInput, match="no validation row; raise 'validation_share'"):
        Study(settings(**values), table, CPU)
    Study(settings(**{**values, "patience": 0}), table, CPU)  # never stops, so needs none


def test_labels_told_apart_without_an_error_do_not_break_the_fit() -> None:
    x = torch.cat([torch.zeros(30, 2), torch.full((30, 2), 9.0)]).double()
    x += 0.01 * torch.randn(60, 2, generator=torch.Generator().manual_seed(0)).double()
    label = (x[:, 0] > 4).long()
    model = LaplaceGPC.build(x, label, prior=Prior())
    model.fit(100)
    assert 1 < float(model.kernel.outputscale.detach()) < 1000
    assert (model.probability(x)[:30] < 0.1).all()
    more = model.refit(torch.cat([x, x[:1]]), torch.cat([label, label[:1]]))
    assert torch.equal(more.a[:60], model.a)
    assert more.fit(5) < 0


@pytest.mark.slow
def test_an_expert_who_takes_his_time_gives_the_same_labels(
    table: pd.DataFrame, monkeypatch: pytest.MonkeyPatch
) -> None:
    waited: list[float] = []
    monkeypatch.setattr("scant.studies.clamp.study.time.sleep", waited.append)
    slow = Study(settings(patience=0, pace=12.0, baselines=False), table, CPU)
    rows = [len(slow.active.rows) for e in train(slow) if isinstance(e, Progress)]
    assert sum(waited) == pytest.approx(30 / 12)
    assert max(waited) <= 0.25
    assert rows[:6] == [20, 23, 26, 29, 30, 33]
    quick = Study(settings(patience=0, baselines=False), table, CPU)
    run(quick)
    assert slow.active.rows == quick.active.rows
    assert torch.equal(slow.active.p, quick.active.p)


def test_one_row_of_a_class_is_found_however_small_the_start() -> None:
    rare = clouds(400)
    wanted = np.flatnonzero(rare["label"] == "clamp")
    rare = rare.drop(index=wanted[12:]).reset_index(drop=True)
    study = Study(settings(start=2, budget=300, repeats=1, baselines=False), rare, CPU)
    study.start_restart(0, 0, None)
    study.step()
    assert set(study.active.labels) == {0, 1}


@pytest.mark.slow
def test_without_a_prior_the_evidence_alone_is_maximized(table: pd.DataFrame) -> None:
    """Of labels that touch, the evidence has a maximum of its own; the prior moves it."""
    values = {"kernel": "RBF", "start": 60, "budget": 60, "repeats": 1}
    models = {}
    for on in (True, False):
        study = Study(settings(hyperprior=on, **values), table, CPU)
        study.start_restart(0, 0, None)
        study.step()
        models[on] = study.active.model
    free = models[False]
    assert free.log_prior() == 0
    assert free.log_evidence() > models[True].log_evidence()
    back = Study.restore(study.settings, *study.fitted(), CPU).active.model
    assert back.log_prior() == 0
    assert torch.equal(back.latent(study.active.x)[0], free.latent(study.active.x)[0])


def test_validation_labels_are_counted_in_the_budget(table: pd.DataFrame) -> None:
    values = {"patience": 0, "baselines": False, "budget": 60}
    counted = Study(settings(**values, validation_share=0.25), table, CPU)
    report = run(counted)
    assert len(counted.data.rows.validation) == 15
    assert len(counted.active.rows) == 45
    assert value(report, "labels") == 60
    assert report.arrays["labels"][-1] == 60
    assert np.isfinite(report.arrays["validation_f1"]).all()
    assert set(counted.active.rows).isdisjoint(counted.data.rows.validation.tolist())
    beside = Study(settings(**values, validation_share=0.25, count_validation=False), table, CPU)
    assert beside.most == 60
    assert beside.data.spent == 0


@pytest.mark.slow
def test_a_strict_band_is_asked_about_alone_and_ends_the_session(table: pd.DataFrame) -> None:
    values = {"acquisition": "band, strict", "delta": 0.02, "budget": 120, "baselines": False}
    events = list(train(Study(settings(**values, patience=0), table, CPU)))
    assert events[-1].state is State.CONVERGED
    assert events[-1].reason == "No row is left with p within 0.02 of 0.5."
    shots = [e.arrays for e in events if isinstance(e, Snapshot)]
    p = np.concatenate([a["queue_p"] for a in shots])
    assert len(p)
    assert (np.abs(p - 0.5) <= 0.02).all()
    assert shots[-1]["labels"][-1] < 120


@pytest.mark.parametrize("positive", ["clamp", "no clamp"])
def test_imbalance_by_picture_drops_whole_pictures(
    photographs: pd.DataFrame, positive: str
) -> None:
    some = photographs.copy()
    some.loc[some["picture"].isin([f"photo {i}" for i in (1, 4, 5, 8)]), "label"] = "no clamp"
    pool = PatchPool.of(some, positive=positive)
    kept = splits.thinned(settings(imbalance=2.0, imbalance_by="picture"), pool)
    shows = {p: (pool.label[pool.picture == p] == splits.rarer(pool)).any() for p in range(10)}
    left = sorted(set(pool.picture[kept].tolist()))
    assert len(kept) == 15 * len(left)  # whole ones
    with_clamp = sum(shows[p] for p in left)
    sought = with_clamp if positive == "clamp" else len(left) - with_clamp
    assert (len(left) - sought) / sought == pytest.approx(2.0, abs=0.34)


def test_who_answers_is_chosen_by_the_labels_that_there_are(table: pd.DataFrame) -> None:
    assert Study(settings(), table, CPU).metadata["expert"] == "simulated"
    none = Study(settings(class_names="screw, no screw"), table.assign(label=None), CPU)
    assert none.metadata["expert"] == none.settings.expert == "you"
    assert none.metadata["classes"] == ["no screw", "screw"]
    assert none.metadata[CHOSEN]["expert"][1] == "none of 240 rows have a label"
    restored = Study.restore(settings(), *none.fitted(), CPU)
    assert restored.settings.expert == "you"
    few = table.assign(label=table["label"].where(np.arange(240) < 60))
    assert Study(settings(), few, CPU).metadata["expert"] == "you"
    made = deque(scant.fit("clamp", few, device="cpu", own=False, budget=40), maxlen=1)[0]
    assert made.state is State.FINISHED
    assert estimate(ClampSettings(), 240, 8, {"label": {}})[0] == pytest.approx(1.0)


@pytest.mark.slow
def test_a_network_is_a_baseline_of_images(
    photographs: pd.DataFrame, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SCANT_DATA_DIR", str(tmp_path))
    wanted = settings(start=20, budget=90, n_components=8, network=True, repeats=1)
    study = Study(wanted, photographs, CPU)
    report = run(study)
    assert study.metadata["compared"][-1] == CNN
    assert value(report, "F1", CNN) > 0.6  # red squares are easy
    assert report.arrays["compare_f1"].shape[0] == 5


# --- pictures -----------------------------------------------------------------------------------


@pytest.mark.slow
def test_pictures_are_put_together_from_their_patches(
    photographs: pd.DataFrame, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SCANT_DATA_DIR", str(tmp_path))
    wanted = settings(start=10, budget=30, picture_width=200, n_components=8, baselines=False)
    made = Study(wanted, photographs, CPU)
    report = run(made)
    assert value(report, "F1 of whole pictures") >= 0
    study = Study.restore(made.settings, *made.fitted(), CPU)
    told = study.explore("picture", row=0)
    assert told["image"].shape == (133, 200, 3)  # 160 x 240, reduced
    assert told["rows"].tolist() == list(range(15))
    assert told["boxes"][0] == pytest.approx([0, 0, 80 / 1.2, 80 / 1.2])
    red = told["image"][5:25, 5:25]
    assert red[..., 0].mean() > 180 > 100 > red[..., 1].mean()
    assert told["verdict"][0] == told["p"].max()
    patch = study.explore("patch", row=0)["image"]
    assert patch.shape == (67, 67, 3)
    np.testing.assert_array_equal(patch, told["image"][:67, :67])
    predicted = study.predict(photographs)
    np.testing.assert_allclose(predicted["p(clamp)"], made.active.p, atol=1e-9)
    assert (predicted["predicted"] == photographs["label"]).mean() > 0.8
    with pytest.raises(BadInput, match="the table has none"):
        study.predict(photographs.drop(columns="image").assign(f=1.0))


@pytest.mark.slow
def test_patches_without_a_place_are_pictures_of_their_own(
    photographs: pd.DataFrame, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SCANT_DATA_DIR", str(tmp_path))
    alone = photographs[["label", "image"]]
    study = Study(settings(start=10, budget=20, baselines=False), alone, CPU)
    assert any("held out one by one" in note for note in study.notes)
    told = study.explore("picture", row=7)
    assert told["rows"].tolist() == [7]
    assert told["image"].shape == (80, 80, 3)
    assert told["boxes"].tolist() == [[0, 0, 80, 80]]


def test_few_columns_are_all_kept_and_images_give_more_components_to_a_network() -> None:
    def chosen(counts: dict[str, Any], kind: str = HANDMADE) -> int:
        asked = ClampSettings(feature_extractor=kind)
        made, _ = ENTRY.settled(asked, 200, len(counts), counts)
        return int(made.values()["n_components"])

    label = {"label": {"clamp": 40, "no clamp": 160}}
    assert chosen({**label, **{f"f{i}": {} for i in range(30)}}) == 30
    assert chosen({**label, **{f"f{i}": {} for i in range(300)}}) == 20
    images: dict[str, Any] = {**label, "image": {}, "picture": {}, "left": {}, "top": {}}
    assert [chosen(images, kind) for kind in (HANDMADE, NETWORK, JOINED)] == [20, 50, 50]
    fixed = [p for p in ENTRY.presets.values() if p.get("expert") != "you"]
    assert all(p["n_components"] == 20 for p in fixed)
    run = scant.fit(
        "clamp", clouds(), device="cpu", own=False, start=15, budget=25, repeats=1, baselines=False
    )
    assert isinstance(deque(run, maxlen=1)[0], Finished)
    assert run.study.settings.values()["n_components"] == 6
