"""The omniglot study: what it makes of a table, and what it answers once it is fitted."""

from __future__ import annotations

import io
import zipfile
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import torch
from PIL import Image

from scant.data_sources.open import open_to_predict
from scant.errors import BadInput
from scant.events import Note, Report
from scant.studies.omniglot import simulate
from scant.studies.omniglot.entry import ENTRY
from scant.studies.omniglot.public_alphabets import PUBLISHED
from scant.studies.omniglot.study import Study
from scant.studies.omniglot.table import of
from scant.studies.trained import WHOLE_EVERY
from scant.training.api import fit
from scant.training.loop import train
from tests.engine.studies import studying
from tests.engine.studies.omniglot.alphabets import CPU, TIDY, settings
from tests.engine.studies.omniglot.alphabets import drawings as drawn
from tests.engine.studies.studying import run, value

# --- rows ---------------------------------------------------------------------------------------


def test_every_class_is_learnt_and_scored_and_fewer_shots_are_among_more(
    drawings: pd.DataFrame,
) -> None:
    studies = [Study(settings(shots=k), drawings, CPU) for k in (0, 5, 2)]
    for study, each in zip(studies, (8, 5, 2)):
        assert np.bincount(study.data.observed.number[study.data.train]).tolist() == [each] * 7
        assert np.bincount(study.data.observed.number[study.data.test]).tolist() == [2] * 7
        assert not set(study.data.train) & set(study.data.test)
        assert np.array_equal(study.data.test, studies[0].data.test)
    assert set(studies[2].data.train) < set(studies[1].data.train) < set(studies[0].data.train)
    assert studies[2].metadata["shots_most"] == 8
    other = Study(settings(seed=1), drawings, CPU)
    assert not np.array_equal(other.data.test, studies[0].data.test)


def test_outputs_and_classes_can_be_fewer(drawings: pd.DataFrame) -> None:
    one = Study(settings(n_outputs=1), drawings, CPU)
    assert one.metadata["outputs"] == ["Anu"]
    assert len(one.data.observed) == 30
    two = Study(settings(n_classes=2), drawings, CPU)
    assert two.metadata["classes"] == [["Anu 1", "Anu 2"], ["Bel 1", "Bel 2"]]
    assert two.metadata["shown"][2] == ["Bel", "Bel 1"]


def test_images_are_brought_to_size_and_to_black_and_white(drawings: pd.DataFrame) -> None:
    bw = Study(settings(size=6), drawings, CPU)
    assert bw.data.image == (6, 6)
    assert set(np.unique(bw.data.observed.x)) == {0.0, 1.0}
    assert any("12 x 12 pixels were resized to 6 x 6" in note for note in bw.notes)
    gray = Study(settings(pixels="gray"), drawings, CPU)
    own = of(drawings).x
    assert np.abs(gray.data.observed.x - own).max() <= 0.5 / 255 + 1e-9
    tall = drawings.drop(columns=[f"p{i}" for i in range(132, 144)])
    assert Study(settings(height=11), tall, CPU).data.image == (11, 12)


def test_the_nearest_pixel_is_an_alternative_to_averages(drawings: pd.DataFrame) -> None:
    study = Study(settings(size=6, resize="nearest neighbor", pixels="gray"), drawings, CPU)
    every_second = of(drawings).x.reshape(-1, 12, 12)[:, 1::2, 1::2].reshape(-1, 36)
    np.testing.assert_allclose(study.data.observed.x, every_second, atol=0.5 / 255 + 1e-9)
    assert any("6 x 6, each pixel the nearest of the image" in note for note in study.notes)


def test_kernels_follow_the_columns(drawings: pd.DataFrame, features: pd.DataFrame) -> None:
    assert Study(settings(), drawings, CPU).metadata["kernel"] == "patch"
    assert Study(settings(kernel="rbf-ard"), drawings, CPU).metadata["kernel"] == "rbf-ard"
    study = Study(settings(), features, CPU)
    assert study.metadata["kernel"] == "rbf-ard"
    assert study.metadata["size"] == []
    assert study.metadata["features"] == ["a", "b", "c"]


def test_one_row_a_class_is_learnt_and_nothing_scored(drawings: pd.DataFrame) -> None:
    once = drawings.groupby("label", sort=False).head(1).reset_index(drop=True)
    study = Study(settings(baselines=True), once, CPU)
    events = list(train(study))
    notes = [e.text for e in events if isinstance(e, Note)]
    assert any("Classes with a single row: 7" in note for note in notes)
    assert any("No row is held out" in note for note in notes)
    last = events[-1]
    assert [m.name for m in last.report.metrics] == ["bound (nats a row)"]
    assert np.isnan(last.report.arrays["accuracy"]).all()
    assert last.report.arrays["examples"].shape == (0, 12, 12)
    with pytest.raises(BadInput, match="No row is held out"):
        study.explore("shots", k=1)


def test_light_pages_and_rows_without_a_label_are_noticed(drawings: pd.DataFrame) -> None:
    pixels = [c for c in drawings if c.startswith("p")]
    turned = drawings.assign(**{c: 1 - drawings[c] for c in pixels})
    turned.loc[0, "label"] = None
    study = Study(settings(), turned, CPU)
    assert any("light and dark are not swapped" in note for note in study.notes)
    assert len(study.data.observed) == len(drawings) - 1


# --- training -----------------------------------------------------------------------------------


LITERAL = {
    "patch_weights": "shared",
    "patch_lengthscales": "shared",
    "class_constants": False,
    "learning_rate_schedule": "constant",
}


def test_what_the_publication_or_its_program_has_reaches_the_model_and_its_file(
    drawings: pd.DataFrame,
) -> None:
    study = Study(settings(learning_rate=0.02, max_steps=3, **LITERAL), drawings, CPU)
    study.start_restart(0, 0, None)
    kernel, n_latent = study.model.kernel, study.settings.n_latent
    assert kernel.weights.shape == (1, 100)  # of patches of 3 x 3 in images of 12 x 12
    assert kernel.lengthscale.shape == (n_latent, 1, 1)
    assert study.model.mixing.weight.shape == (7, n_latent)
    for _ in range(3):
        study.trainer.step()
    # Without constants the mean of a function is that of the latent functions, mixed (3.5).
    latent = study.model.latent(kernel.prepare(study.data.x))[0].numpy()
    mixed = latent.T @ study.model.factors()[..., 0].numpy()
    np.testing.assert_allclose(study.present.means(np.arange(len(study.data.x))), mixed)
    rates = {group["lr"] for group in study.trainer.optimizers[0].param_groups}
    assert rates == {0.02}
    assert not study.scheduled  # steps end at their limit, not at rest
    again = Study.restore(study.settings, *study.fitted(), CPU)
    expected = study.present.predictive(study.data.test).probabilities
    np.testing.assert_array_equal(again.present.predictive(study.data.test).probabilities, expected)
    usual = Study(settings(learning_rate=0.02, max_steps=3), drawings, CPU)
    usual.start_restart(0, 0, None)
    assert usual.model.kernel.weights.shape == (n_latent, 100)
    assert usual.model.kernel.lengthscale.shape == (n_latent, 1, 9)
    assert usual.model.mixing.weight.shape == (7, n_latent + 1)
    for _ in range(4):
        usual.trainer.step()
    # The cosine has ended.
    assert usual.trainer.optimizers[0].param_groups[0]["lr"] == pytest.approx(0.01 * 0.02)


def test_it_learns(alphabets: tuple[Study, Report], drawings: pd.DataFrame) -> None:
    study, report = alphabets
    assert value(report, "recall") > 0.5  # two of seven by chance
    assert value(report, "mean log probability (nats)") > np.log(2 / 7)
    right = report.arrays["test_right"]
    assert value(report, "recall") == pytest.approx(right.mean())
    assert np.nansum(report.arrays["accuracy"] * [3, 4]) == pytest.approx(7 * right.mean())
    assert report.arrays["reliability"][2].sum() == len(study.data.test)
    told = pd.DataFrame({k: v for k, v in report.arrays.items() if k.startswith("test_")})
    assert drawings["output"].iloc[told["test_row"]].tolist() == ["Anu"] * 6 + ["Bel"] * 8
    names = [label for labels in study.data.observed.classes for label in labels]
    assert drawings["label"].iloc[told["test_row"]].tolist() == [
        names[c] for c in told["test_class"]
    ]
    assert (told["test_right"] == (told["test_class"] == told["test_predicted"])).all()


def test_a_bound_of_some_rows_stands_for_that_of_all(
    drawings: pd.DataFrame, monkeypatch: pytest.MonkeyPatch
) -> None:
    study = Study(settings(), drawings, CPU)
    study.start_restart(0, 0, None)
    for _ in range(5):
        study.step()
    monkeypatch.setattr(study.trainer, "steps", WHOLE_EVERY)
    whole = study._whole(0.0)
    at = torch.as_tensor(study.data.train)
    exact = study.model.bound(study.prepared, study.data.output[at], study.data.label[at]) / len(at)
    assert whole == pytest.approx(float(exact))
    monkeypatch.setattr("scant.studies.omniglot.study.MOST_SCORED", 28)
    study._scored = study._scored[::2]
    assert study._whole(0.0) == pytest.approx(whole, abs=0.3)


# --- the fitted model ---------------------------------------------------------------------------


def test_predictions_name_the_class_and_keep_the_rows(
    alphabets: tuple[Study, Report], drawings: pd.DataFrame
) -> None:
    study, _ = alphabets
    query = drawings.iloc[[3, 60, 10]].drop(columns="label").set_index(pd.Index([5, 3, 9]))
    told = study.predict(query)
    assert list(told.index) == [5, 3, 9]
    assert all(label.split()[0] == output for label, output in zip(told["label"], told["output"]))
    own = [c for c in told if c.startswith("p(Anu/")]
    assert own == ["p(Anu/Anu 1)", "p(Anu/Anu 2)", "p(Anu/Anu 3)"]
    assert told[own].iloc[0].sum() == pytest.approx(1.0)
    assert told[own].iloc[1].isna().all()
    best = told[[f"p(Anu/{label})" for label in told["label"][told["output"] == "Anu"]]]
    assert told["probability"].iloc[0] == pytest.approx(best.iloc[0].max())
    labeled = study.predict(drawings.iloc[[3, 60]])
    assert labeled["label"].tolist() == drawings["label"].iloc[[3, 60]].tolist()
    assert set(labeled["predicted"]) <= {c for names in study.data.observed.classes for c in names}
    with pytest.raises(BadInput, match="row 4: the model was not trained on 'Cor'"):
        study.predict(query.assign(output=["Anu", "Bel", "Cor"]))


def test_images_of_another_size_are_brought_to_the_models(drawings: pd.DataFrame) -> None:
    study = Study(settings(size=6), drawings, CPU)
    run(study)
    small = drawn(6)
    columns = ["predicted", "probability"]
    pd.testing.assert_frame_equal(study.predict(drawings)[columns], study.predict(small)[columns])
    whole = Study(settings(), drawings, CPU)
    run(whole)
    with pytest.raises(BadInput, match="have 6 x 6 pixels, and the model was trained on 12 x 12"):
        whole.predict(small)


def test_a_zip_goes_all_the_way(tmp_path: Path) -> None:
    """Pages are light: ink is found, learned from, and predicted, as the command line does it."""
    data = simulate.alphabets(
        1, 20, sizes={"Uno": (0, 3), "Due": (0, 3)}, drawers=8, variation=TIDY
    )
    names = [data.classes[d][c] for d, c in zip(data.output, data.label)]
    for file, new in (("learn.zip", False), ("new.zip", True)):
        with zipfile.ZipFile(tmp_path / file, "w") as archive:
            for i, image in enumerate(data.x.reshape(-1, 20, 20)):
                if (i % 8 == 7) != new:
                    continue
                page = io.BytesIO()
                Image.fromarray((255 * (1 - image)).astype(np.uint8)).save(page, "PNG")
                label = "unknown" if new else names[i]
                path = f"{data.outputs[data.output[i]]}/{label}/{i:02}.png"
                archive.writestr(path, page.getvalue())
    values = {
        **studying.QUICK["omniglot"],
        "max_steps": 60,
        "n_latent": 5,
        "n_inducing": 20,
        "size": 12,
    }
    fitted = fit("omniglot", tmp_path / "learn.zip", **values)
    notes = [event.text for event in fitted if isinstance(event, Note)]
    assert any("dark pixels were read as ink" in note for note in notes)
    query = open_to_predict(ENTRY, tmp_path / "new.zip", fitted.study.settings)
    told = fitted.study.predict(query)
    own = [names[i] for i in (31, 39, 47, 7, 15, 23)]  # by path: Due comes before Uno
    assert np.mean([a == b for a, b in zip(told["predicted"], own)]) >= 0.5
    assert all(told["predicted"].str.split().str[0] == told["output"])


# --- beside others ------------------------------------------------------------------------------


@pytest.mark.slow
def test_other_classifiers_stand_beside_it(
    features: pd.DataFrame, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("scant.studies.omniglot.learners.SINGLE_STEPS", 80)
    study = Study(settings(baselines=True, max_steps=60), features, CPU)
    report = run(study)
    methods = list(dict.fromkeys(m.method for m in report.metrics if m.source == "baseline"))
    assert methods == ["nearest neighbor", "logistic regression", "G-M", "G-A"]
    assert report.arrays["compare_accuracy"].shape == (4, 2)
    for method in ("this run", *methods):
        assert value(report, "recall", method) > 0.5
    assert {m.name for m in report.metrics if m.method == "nearest neighbor"} == {
        "recall",
        "precision",
        "F1",
    }


def test_slow_ones_are_left_out_with_a_note(
    drawings: pd.DataFrame, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("scant.studies.omniglot.learners.SINGLE_MAX_ROWS", 10)
    monkeypatch.setattr("scant.studies.omniglot.learners.LOGISTIC_MAX_SIZE", 10)
    monkeypatch.setattr("scant.studies.omniglot.problem.MOST_CHANCES", 10)
    report = run(Study(settings(baselines=True), drawings, CPU))
    assert {m.method for m in report.metrics} == {"this run", "nearest neighbor"}
    assert report.notes[0].startswith("No other methods were compared: ")
    assert [note.split(" is left")[0] for note in report.notes[1:]] == [
        "logistic regression",
        "G-M",
        "G-A",
    ]


def test_published_figures_stand_only_beside_the_published_data(drawings: pd.DataFrame) -> None:
    sizes = {PUBLISHED[0]: (0, 14), PUBLISHED[1]: (0, 14)}
    table = simulate.alphabets(0, 8, sizes=sizes, drawers=5).frame()
    report = run(Study(settings(max_steps=2), table, CPU))
    theirs = {m.method: m.value for m in report.metrics if m.source == "published"}
    assert theirs["MOGPs-AR (1), patches (published)"] == 0.714
    assert any(m.name == "recall of Blackfoot" and m.source == "run" for m in report.metrics)
    for other in (settings(max_steps=2, shots=1), settings(max_steps=2, n_classes=3)):
        report = run(Study(other, table, CPU))
        assert not any(m.source == "published" for m in report.metrics)
