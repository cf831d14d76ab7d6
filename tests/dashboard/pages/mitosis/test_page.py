"""The mitosis page's own views: what they ask of the model, and what they do with its answers."""

from __future__ import annotations

import asyncio
from base64 import b64decode
from collections.abc import Callable
from io import BytesIO
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from PIL import Image

from scant.errors import BadInput
from scant.events import Report, Snapshot
from scant.studies.mitosis.settings import FIXED, MitosisSettings
from scant_dashboard.pages.mitosis.cells import NO_IMAGES, Covariances, Strips
from scant_dashboard.pages.mitosis.imbalance import Imbalance
from scant_dashboard.pages.mitosis.latent_placement import LatentPlacement
from scant_dashboard.pages.mitosis.latent_traversal import LatentTraversal
from scant_dashboard.pages.mitosis.page import alternatives, hidden
from scant_dashboard.pages.mitosis.spaces import Private, Space
from scant_dashboard.pages.mitosis.threshold import NONE, Threshold
from scant_dashboard.plots.base import NOTHING
from scant_dashboard.template import header
from tests.dashboard.fakes import Asker

METADATA: dict[str, Any] = {
    "classes": ["other", "mitosis"],
    "rare": "mitosis",
    "size": [2, 3],
    "n_shared": 2,
    "n_private": 1,
    "methods": ["SCLVM", "weighted SVM"],
    "rows": {"training": 24, "test": 4},
}
OWN = np.array([[0.5, -0.5, 0.0], [-0.5, 0.5, 0.0], [0.0, 0.0, 0.0]])
APART = np.stack([0 * OWN, OWN, OWN])  # nothing but the classes' own is left
FEATURES = {"size": [], "features": ["radius", "area"]}


def arrays() -> dict[str, np.ndarray]:
    rng = np.random.default_rng(0)
    pr = np.array([[[0.1, 0.5, 0.9], [0.5, 0.75, np.nan], [1.0, 0.5, 0.0]]] * 2)
    return {
        "latent_mean": np.array([[0.0, 0.0, 1.0], [1.0, 0.0, 2.0], [3.0, 1.0, -1.0]]),
        "latent_std": np.full((3, 3), 0.1),
        "latent_class": np.array([0, 0, 1]),
        "relevance": np.array([0.1, 1.0, 5.0]),
        "covariance": np.stack([np.ones((3, 3)), np.eye(3), np.ones((3, 3)) + np.eye(3)]),
        "covariance_apart": APART,
        "covariance_class": np.array([0, 0, 1]),
        "generated": rng.uniform(size=(4, 2, 3)),
        "generated_class": np.array([0, 0, 1, 1]),
        "real": rng.uniform(size=(4, 2, 3)),
        "real_class": np.array([0, 0, 1, 1]),
        "test_label": np.array([0, 1, 0, 1]),
        "pr": pr,
        "threshold": np.array([0.6, np.nan]),
        "confusion": np.array([[[2, 1, 0], [2, 0, 0], [0, 1, 2], [0, 2, 2]]] * 2),
    }


class Model(Asker):
    present = False
    entry = SimpleNamespace(name="mitosis")
    refused: Exception | None = None

    def background(self, work: Any, then: Callable[[Any], None]) -> None:
        try:
            then(asyncio.run(work))
        except BadInput as error:
            self.refused = error

    def say(self, sentence: str, kind: str = "info") -> None: ...

    def link(self, **query: Any) -> str:
        return "./mitosis?"

    def read(self, at_once: bool = False) -> None: ...


@pytest.fixture
def model() -> Any:
    return Model()


def run(metadata: dict[str, Any] | None = None, **settings: Any) -> Any:
    return SimpleNamespace(
        id="r",
        metadata=METADATA | (metadata or {}),
        report=Report((), arrays()),
        record=SimpleNamespace(settings=MitosisSettings.parse(FIXED | settings).values()),
        recorded=False,
    )


def placed(label: int = 1) -> dict[str, np.ndarray]:
    return {
        "p": np.array([0.2, 0.8]),
        "mean": np.array([[0.0, 1.0, 0.0], [2.0, 3.0, 0.0]]),
        "std": np.ones((2, 3)),
        "evidence": np.array([-10.0, -8.0]),
        "reconstruction": np.full((2, 2, 3), 0.5),
        "image": np.full((2, 3), 0.25),
        "label": np.array([label]),
    }


def picture() -> bytes:
    file = BytesIO()
    Image.fromarray(np.full((20, 30), 51, np.uint8)).save(file, "PNG")
    return file.getvalue()


def test_the_shared_space_shows_the_two_dimensions_that_count_until_others_are_chosen() -> None:
    view = Space()
    view.update(Snapshot(1, arrays()), METADATA)
    assert view.plot.figures[0].xaxis[0].axis_label == "shared dimension 2"
    assert view.plot.rows.data["y"].tolist() == [0, 1, 3]
    view.across.value = 0
    assert view.plot.figures[0].xaxis[0].axis_label == "shared dimension 1"
    view.update(Snapshot(2, arrays() | {"relevance": np.array([2.0, 1.0, 0.0])}), METADATA)
    assert view.across.value == 0
    view.clear(None)  # type: ignore[arg-type]
    view.up.value = 1
    assert view.alt == NOTHING


def test_a_private_space_holds_the_rows_of_its_class_alone() -> None:
    view = Private()
    view.update(Snapshot(1, arrays()), METADATA)
    assert view.of.value == "mitosis"
    assert view.alt.startswith("Rows: 1 mitosis,")
    assert view.plot.rows.data["x"].tolist() == [-1]
    assert view.plot.rows.data["y"].tolist() == [0]  # there is but one dimension
    view.of.value = "other"
    assert view.alt.startswith("Rows: 2 other,")


def test_views_that_a_run_has_nothing_for_are_hidden() -> None:
    assert hidden(run()) == set()
    assert hidden(run(FEATURES)) == {Strips.title}
    assert hidden(run({"n_private": 0})) == {Private.title}
    assert hidden(SimpleNamespace(metadata={})) == set()  # type: ignore[arg-type]


def test_covariances_show_what_tells_rows_apart_and_the_whole_on_demand() -> None:
    view = Covariances()
    view.update(Snapshot(1, arrays()), METADATA)
    # All rows share a 1 of variance 2; each has a private 1, a third of which is its class's own.
    assert "83% of the variance is common to all rows or to a class" in view.alt
    assert "zero between classes by design" in view.alt
    before = view.plot.pictures.data["image"][1]
    view.whole.value = True
    assert "covariance of the sum is 1 within a class and 1 between" in view.alt
    assert not np.array_equal(before, view.plot.pictures.data["image"][1])
    view.update(Snapshot(1, arrays()), METADATA | {"n_shared": 3, "n_private": 0})
    assert "by design" not in view.alt
    assert len(view.plot.pictures.data["image"]) == 1
    view.update(Snapshot(1, arrays() | {"covariance": np.empty((3, 0, 0))}), METADATA)
    assert "no covariance" in view.alt


def test_new_cells_stand_beside_real_ones() -> None:
    view = Strips()
    view.update(Snapshot(1, arrays()), METADATA)
    assert "Generated by the model: 2 other, 2 mitosis." in view.alt
    assert len(view.real.frames.data["left"]) == 4
    view.update(Snapshot(1, arrays() | {"generated": np.empty((0, 0, 0))}), METADATA)
    assert view.alt == NO_IMAGES


def test_a_walk_begins_at_a_rare_cell_and_goes_where_one_clicks(model: Any) -> None:
    view = LatentTraversal(model)
    view.open(run())
    assert model.asked == [("decode", {"x": [3.0, 1.0, -1.0], "label": "mitosis"})]
    assert (view.across.value, view.up.value) == (2, 1)  # by relevance
    assert len(view.plane.rows.data["x"]) == 1  # one axis is private to the class
    view._picked(-0.9, 1.1)
    assert model.asked[-1][1]["x"] == pytest.approx([3.0, 1.1, -0.9])
    view._picked(1e6, 1.1)  # beyond the sliders' end
    assert model.asked[-1][1]["x"][2] == pytest.approx(view.across_value.end)
    many = len(model.asked)
    view.up_value.value = 0.5
    assert len(model.asked) == many + 1
    view.across.value = 0
    view.up.value = 1
    assert len(view.plane.rows.data["x"]) == 3
    model.then({"image": np.full((2, 3), 0.5), "std": np.full((2, 3), 0.1)})
    assert "Expected image of mitosis at shared 1 = 3.00, shared 2 = 0.50" in view.alt
    view.of.value = "other"
    assert model.asked[-1][1]["label"] == "other"
    first = model.asked[-1][1]["x"]
    view._begin(view._turn + 1)
    assert model.asked[-1][1]["x"] != first
    view.clear(None)  # type: ignore[arg-type]
    assert view.across_value.disabled
    assert "Click or drag" in view.alt


def test_a_walk_without_images_lists_features_those_it_changed_first(model: Any) -> None:
    view = LatentTraversal(model)
    names = [f"f{i}" for i in range(30)]
    view.open(run(FEATURES | {"features": names}))
    mean = np.linspace(1.0, 2.0, 30)
    model.then({"image": mean[None], "std": np.full((1, 30), 0.1)})
    assert "1 <span class='spread'>± 0.1<" in view.features.object
    assert view.features.object.index(">f0<") < view.features.object.index(">f1<")
    assert "18 more" in view.features.object
    assert "Expected row of mitosis" in view.alt
    view._on_slide()
    mean[20] += 0.5
    model.then({"image": mean[None], "std": np.full((1, 30), 0.1)})
    assert view.features.object.index(">f20<") < view.features.object.index(">f0<")
    assert "+0.5" in view.features.object


def test_a_crowd_does_not_ask_all_at_once(model: Any) -> None:
    model.owns_run = False
    for view in (LatentTraversal(model), LatentPlacement(model)):
        view.open(run())
    assert model.asked == []


def test_a_held_out_row_is_placed_under_each_class(model: Any) -> None:
    view = LatentPlacement(model)
    view.open(run())
    assert list(view.row.options.values()) == [-1, 1, 3, 0, 2]  # rare ones first
    assert model.asked == [("row", {"index": 1, "of": "test"})]
    model.then(placed())
    assert "This held-out row is mitosis with probability 80%, other with 20%" in view.alt
    assert "Its true class is mitosis." in view.alt
    assert view.plane.mark.data["name"] == ["\nif other", "if mitosis"]
    assert "Under mitosis its position is 3.00, 2.00" in view.plane.alt
    assert "-8.0" in view.numbers.object
    bars = view.gallery.bars.data
    assert (bars["right"] - bars["left"]).argmax() == 1  # the likeliest class comes first
    view.clear(None)  # type: ignore[arg-type]
    assert view.alt == "No row yet."


def test_an_image_is_brought_to_the_models_size_and_asked_about(model: Any) -> None:
    view = LatentPlacement(model)
    view.open(run())
    view.file.filename = "mine.png"
    view.file.value = picture()
    question, query = model.asked[-1]
    assert question == "place"
    levels = np.frombuffer(b64decode(query["pixels"]), np.uint8)
    assert levels.tolist() == [51] * 6
    assert view.row.value == -1
    model.then(placed(-1))
    assert view.alt.startswith("mine.png is mitosis with probability 80%")
    assert "It is" not in view.alt
    view.file.value = b"no image"
    assert "mine.png" in str(model.refused)


def test_without_images_none_can_be_brought(model: Any) -> None:
    view = LatentPlacement(model)
    view.open(run(FEATURES))
    assert not view.file.visible
    model.then(placed() | {"image": np.ones((1, 2)), "reconstruction": np.ones((2, 2))})
    assert "mitosis with probability 80%" in view.alt


def test_the_threshold_counts_what_is_found_and_what_is_taken_for_it(model: Any) -> None:
    view = Threshold(model)
    view.open(run())
    assert "At the threshold 0.6, SCLVM detects 1 of 2 rows of mitosis" in view.alt
    assert "False positives: 0; precision 75%, recall 50%" in view.alt
    view.slider.value = 0.12
    assert "SCLVM detects 2 of 2 rows of mitosis. False positives: 2;" in view.alt
    assert "weighted SVM" in view.table.object
    view.slider.value = 1.0
    assert "precision –" in view.alt
    none = run()
    none.report = Report(
        (), arrays() | {"pr": np.empty((0, 3, 0)), "confusion": np.empty((0, 4, 0))}
    )
    view.clear(none)
    view.open(none)
    assert view.alt == NONE
    assert view.slider.disabled


def test_the_curve_of_imbalance_grows_by_a_point_for_each_stop(model: Any) -> None:
    view = Imbalance(model)
    view.open(run())
    assert view.alt == view.help
    view._ask(100)
    assert model.asked == [("imbalance", {"ratio": 100})]
    scores = np.array([[0.5, 0.4, 0.44, 0.5], [0.9, 0.2, 0.33, np.nan]])
    model.then({"ratio": np.array([100.0]), "rows": np.array([3, 300]), "scores": scores})
    assert "F1 of SCLVM" in view.alt
    assert "0.44 at 1:100" in view.alt
    assert "Trained on 3 rare rows and 300 others" in view.table.object
    view._ask(100)
    assert len(model.asked) == 1  # known already
    view.score.value = "average precision"
    assert "0.50 at 1:100" in view.alt
    view.clear(None)  # type: ignore[arg-type]
    assert view.slider.disabled
    assert view.alt == view.help


def test_every_alternative_can_be_trained() -> None:
    message, others = alternatives(run())
    assert message == "This run trained SCLVM on 24 rows."
    assert len(others) >= 6
    for other in others:
        changed = MitosisSettings.parse(FIXED | other.settings)
        assert changed.changed(FIXED) == other.settings
    chosen = {"chosen": {"model": ["dgplvm", "a test"], "n_components": [0, "few columns"]}}
    told, others = alternatives(
        run({"chosen": {"classifier": ["GP", "a test"]}}, classifier="auto")
    )
    assert told == "This run trained SCLVM on 24 rows; a GP classifier predicted the classes."
    assert others[0].settings == {"classifier": "latent variables"}
    assert alternatives(run(chosen, model="auto"))[0] == "This run trained DGPLVM + SVM on 24 rows."


def test_the_navigation_names_the_page_once() -> None:
    bar = header("multiview", present=True).object
    assert "<a href='./multiview?present' aria-current='page'>Many views</a>" in bar
    assert bar.count("./multiview") == 1
    assert "<a href='./genes?present'>Genes</a>" in bar
