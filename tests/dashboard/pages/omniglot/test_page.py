"""The omniglot page's own views: what they ask of the model, and what they do with its answers."""

from __future__ import annotations

from base64 import b64encode
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from scant.events import Metric, Report, Snapshot
from scant.studies.omniglot import models
from scant.studies.omniglot.preprocessing import AT_ONCE
from scant.studies.omniglot.settings import OmniglotSettings
from scant_dashboard.controls.drawing_canvas import DrawingCanvas
from scant_dashboard.pages.omniglot import page as omniglot
from scant_dashboard.pages.omniglot.draw import EMPTY, Draw
from scant_dashboard.pages.omniglot.gallery import NO_IMAGES, NO_PATCHES, Examples, Patches
from scant_dashboard.pages.omniglot.groups import Groups
from scant_dashboard.pages.omniglot.matrices import Confused, Matrices, name_of, names_of, short
from scant_dashboard.pages.omniglot.page import RECALL, alternatives
from scant_dashboard.pages.omniglot.rows import MAX_SNAPSHOT_ROWS, SHOT_ROWS
from scant_dashboard.pages.omniglot.shots import Shots
from scant_dashboard.pages.omniglot.submatrix import Submatrix
from scant_dashboard.plots.base import NOTHING
from scant_dashboard.plots.theme import GREEN, VERMILION
from tests.dashboard.fakes import Asker

METADATA: dict[str, Any] = {
    "outputs": ["Greek", "Latin"],
    "classes": [["alpha", "beta", "gamma"], ["a", "b"]],
    "shown": [["Greek", "alpha"], ["Greek", "beta"], ["Latin", "a"]],
    "size": [3, 2],
    "kernel": "patch",
    "shots_most": 4,
    "rows": {"training": 24, "test": 6},
}


def arrays() -> dict[str, np.ndarray]:
    b = np.array([[1.0, 0.5, -0.2], [0.5, 1.0, 0.4], [-0.2, 0.4, 1.0]])
    return {
        "accuracy": np.array([0.5, 0.75]),
        "latent": np.array([3, 0]),
        "shown_B": np.stack([b, b / 2]),
        "correlation": b,
        "order": np.array([2, 0, 1]),
        "global": np.ones((2, 2)),
        "patches": np.linspace(-0.5, 1.5, 18).reshape(2, 3, 3),
        "patches_weight": np.array([3.0, 1.0]),
        "examples": np.zeros((2, 3, 2)),
        "examples_true": np.array([0, 4]),
        "examples_predicted": np.array([0, 3]),
        "examples_p": np.array([0.9, 0.5]),
        "confusion": np.array([[0.5, 0.5, np.nan], [0.0, 1.0, np.nan], [np.nan, np.nan, 1.0]]),
    }


class Model(Asker):
    def train_variant(self, changed: Any) -> None:
        self.beside = dict(changed)

    def read(self, at_once: bool = False) -> None: ...


@pytest.fixture
def model() -> Any:
    return Model()


def run(metadata: dict[str, Any] | None = None, **settings: Any) -> Any:
    used = OmniglotSettings.parse(settings).values()
    return SimpleNamespace(
        id="r",
        metadata=METADATA | (metadata or {}),
        report=Report((), arrays()),
        record=SimpleNamespace(settings=used),
        recorded=False,
    )


def drawing(answer_to: int = 1) -> dict[str, np.ndarray]:
    return {
        "p": np.array([0.2, 0.7, 0.1, 0.4, 0.6]),
        "map": np.ones((1, 1)),
        "class": np.array([answer_to]),
        "image": np.zeros((3, 2)),
        "top": np.array([[1, 0, 2], [4, 3, -1]]),
        "top_image": np.zeros((2, 3, 3, 2)),
    }


def ink(levels: list[int]) -> str:
    return b64encode(bytes(levels)).decode()


def test_a_drawing_is_asked_about_and_answered_by_group(model: Any) -> None:
    view = Draw(model)
    model.owns_run = False
    view.open(run())
    assert model.asked == []
    assert (view.pad.high, view.pad.wide) == (3, 2)
    view.pad.ink = drawn = ink([0, 255, 0, 0, 0, 0])
    assert model.asked == [("draw", {"pixels": drawn, "output": "", "label": ""})]
    np.testing.assert_allclose(view.pad.image, [[0, 1], [0, 0], [0, 0]])
    model.then(drawing())
    assert "Greek/beta (70%); Latin/b (60%)" in view.alt
    assert len(view.likely.frames.data["left"]) == 5  # Latin has but two classes
    assert "Greek/beta" in view.response.alt

    view._clicked(2)  # the least probable of Greek
    assert model.asked[-1] == ("draw", {"pixels": drawn, "output": "Greek", "label": "gamma"})
    model.then(drawing(2))
    assert view.which.value == 2
    assert len(model.asked) == 2  # what the answer sets asks nothing

    view._empty()
    assert view.pad.ink == ""
    assert view.likely.alt == NOTHING
    assert len(model.asked) == 2


def test_an_answer_that_comes_after_the_paper_was_emptied_is_not_shown(model: Any) -> None:
    view = Draw(model)
    view.open(run())
    assert model.asked
    view._empty()
    model.then(drawing())
    assert view.likely.alt == NOTHING
    assert "Draw an image" in view.reading.object


def test_a_held_out_character_can_be_begun_with(model: Any) -> None:
    view = Draw(model)
    view.open(run())
    assert view.begin.value == 0  # whoever has trained it sees an answer at once
    assert len(model.asked) == 1
    assert list(view.begin.options) == [EMPTY, "1. Greek/alpha", "2. Latin/b"]
    turn = view.pad.turn
    view.begin.value = 1
    assert view.pad.turn == turn + 1
    assert view.pad.given == view.pad.ink == ink([0] * 6)
    assert model.asked[-1][1]["pixels"] == view.pad.ink


def test_without_images_there_is_nothing_to_draw(model: Any) -> None:
    view = Draw(model)
    view.open(run({"size": []}))
    assert not view.whole.visible
    assert "not on images" in view.reading.object


def test_ink_of_paper_that_was_replaced_is_not_taken() -> None:
    pad = DrawingCanvas(wide=2, high=3)
    pad.ink = ink([0] * 6)
    assert pad.image is not None
    pad.lay_out(None, (4, 4))
    pad.ink = ink([0] * 6)
    assert pad.image is None


def test_matrices_are_sorted_when_asked_and_say_what_is_alike() -> None:
    view = Matrices("alike", "correlation", single=True)
    view.update(Snapshot(1, arrays()), METADATA)
    assert "Most alike: within a group: Greek/alpha and Greek/beta (0.50)" in view.alt
    assert "between groups: Greek/beta and Latin/a (0.40)" in view.alt
    assert view.plot.cells.data["i"][0] == 0
    view.sorted.value = True
    assert view.plot.cells.data["i"][0] == 2
    every = Matrices("B", "shown_B")
    every.update(Snapshot(1, arrays()), METADATA)
    assert list(every.plot.heads.data["text"]) == ["B4", "B1"]
    assert list(dict.fromkeys(every.plot.strips.data["group"])) == ["Greek", "Latin"]
    view.clear(None)  # type: ignore[arg-type]
    view.sorted.value = False
    assert view.alt == NOTHING


def test_a_name_does_not_repeat_its_alphabet() -> None:
    several = {"outputs": ["Anu", "Greek"]}
    assert name_of("Anu", "Anu 3", several) == "Anu 3"
    assert name_of("Greek", "alpha", several) == "Greek/alpha"
    assert name_of("Greek", "alpha", {"outputs": ["Greek"]}) == "alpha"


def test_a_long_name_is_cut_to_its_label() -> None:
    assert short("Greek/alpha") == "Greek/alpha"
    assert short("Alphabet of the Magi/character01") == "character01"
    assert short("Magi/a character of many words") == "a character…"


def test_confusion_says_what_is_taken_for_what() -> None:
    view = Confused()
    view.update(Report((), arrays()), METADATA)
    assert (
        "The mean recall of 3 classes is 83%; 50% of Greek/alpha are classified as Greek/beta"
        in view.alt
    )


def test_galleries_say_what_they_show() -> None:
    patches, examples = Patches(), Examples()
    for view in (patches, examples):
        view.update(Snapshot(1, arrays()), METADATA)  # type: ignore[attr-defined]
    assert "2 inducing patches of 3 x 3 pixels" in patches.alt
    assert "Half of it comes from 1 of them" in patches.alt
    assert "Classified correctly (green, ✓): 1 of 2." in examples.alt
    assert list(examples.plot.frames.data["color"]) == [GREEN, VERMILION]
    assert "✗ Latin/a" in examples.plot.frames.data["tip"][1]
    none = arrays() | {"patches": np.empty((0, 0, 0)), "examples": np.empty((0, 0, 0))}
    for view in (patches, examples):
        view.update(Snapshot(1, none), METADATA)  # type: ignore[attr-defined]
    assert (patches.alt, examples.alt) == (NO_PATCHES, NO_IMAGES)


def test_a_closer_look_asks_for_a_block_and_names_its_classes(model: Any) -> None:
    view = Submatrix(model)
    view.open(run(n_latent=5))
    assert model.asked == [("block", {"latent": 3, "outputs": []})]
    view.outputs.value = ["Latin"]
    assert model.asked[-1] == ("block", {"latent": 3, "outputs": ["Latin"]})
    model.then({"matrix": np.array([[1.0, 0.5], [0.5, 2.0]]), "class": np.array([3, 4]),
                "aggregated": np.array([0])})  # fmt: skip
    assert "B4: Latin/b with itself" in view.alt
    model.then({"matrix": np.array([[1.0, 3.0], [3.0, 2.0]]), "class": np.array([0, 1]),
                "aggregated": np.array([1])})  # fmt: skip
    assert "Greek with Latin" in view.alt


def test_a_closer_look_offers_as_many_matrices_as_were_chosen(model: Any) -> None:
    view, shown = Submatrix(model), run(n_latent="auto")
    shown.metadata = {**shown.metadata, "chosen": {"n_latent": [4, "for 4 classes"]}}
    view.open(shown)
    assert len(view.latent.options) == 4


def test_the_curve_of_examples_grows_by_a_point_for_each_stop(model: Any) -> None:
    view = Shots(model)
    view.open(run())
    assert view.slider.options == [1, 2, 3, 4]
    assert view.alt == view.help
    assert not view.container.objects  # no empty frame
    view._ask(2)
    assert model.asked == [("shots", {"k": 2})]
    assert view.alt == "Working: training again on 2 examples of each class…"
    model.then({"accuracy": np.array([0.5, 0.7]), "nearest": np.array([0.3, 0.5])})
    assert view.container.objects == [view.plot.panel]
    assert view.alt.startswith("Working")
    model.last()
    assert not view.alt.startswith("Working")
    assert view.alt.startswith("Recall of the 6 held-out rows on average over the groups, ")
    assert "neighbor: 60.0% against 40.0% with 2 examples." in view.alt
    view._ask(2)
    assert len(model.asked) == 1  # known already
    view._ask(1)
    model.then({"accuracy": np.array([0.2, 0.4]), "nearest": np.array([0.2, 0.2])})
    assert list(view.plot.sources[0].data["x"]) == [1, 2]
    view.clear(None)  # type: ignore[arg-type]
    assert view.slider.disabled
    assert not view.container.objects
    assert view.alt == view.help


def test_every_recall_says_of_which_rows_it_is() -> None:
    assert (MAX_SNAPSHOT_ROWS, SHOT_ROWS) == (AT_ONCE, models.SHOT_ROWS)
    many = METADATA | {"rows": {"training": 24, "test": 1200}}
    while_training = Snapshot(1, arrays())
    live, *_ = omniglot._live(recall := omniglot._recall(RECALL))
    live.update(while_training, many)
    assert live.alt.startswith("Recall of 150 of the 1,200 held-out rows: 62.5% on average")
    live.update(while_training, METADATA)
    assert live.alt.startswith("Recall of the 6 held-out rows: 62.5% on average over 2 groups")
    metrics = (Metric("this run", "recall", 2 / 3),)
    ended = Report(metrics, arrays() | {"test_output": np.array([0, 0, 1, 1, 1, 1])})
    table, *_ = omniglot._result(recall)
    table.update(ended, METADATA)
    assert "The scores of all methods are on the 6 held-out rows" in table.panel.object
    # a third of the rows is of Greek: all together, as the table has it
    assert live.alt.startswith("Recall of the 6 held-out rows together: 66.7%; by output, 50.0%")


def test_a_refused_point_ends_the_words_of_work_and_a_newer_one_keeps_its_own(model: Any) -> None:
    view = Shots(model)
    view.open(run())
    view._ask(1)
    refused = model.last
    view._ask(3)
    refused()
    assert view.alt == "Working: training again on 3 examples of each class…"
    model.last()
    assert view.alt == view.help


def test_the_slider_of_groups_offers_to_train_with_so_many(model: Any) -> None:
    view = Groups(model)
    view.open(run())
    assert view.alt == "This run trained on Greek and Latin together."
    assert view.button.rows == [["Train again with Greek alone", ""]]
    view.button._handle_msg({"pick": 0})
    assert model.beside == {"n_outputs": 1}
    view.slider.value = 2
    assert view.button.rows == [["Train again with Greek and Latin", ""]]
    view.button._handle_msg({"pick": 0})
    assert model.beside == {"n_outputs": 2}


def test_one_group_of_numbers_has_no_views_of_images_and_of_several_groups() -> None:
    every = {Draw.title, Examples.title, Patches.title, Groups.title, omniglot.GLOBAL}
    assert not omniglot.hidden(run())
    alone = run({"outputs": ["all"], "classes": [["cat", "dog"]], "size": []})
    assert every <= omniglot.hidden(alone)
    assert names_of(alone.metadata) == ["cat", "dog"]


def test_every_alternative_can_be_trained() -> None:
    message, others = alternatives(run())
    assert message == "This run trained MOGPs-AR on 2 groups together."
    trained = [other.train for other in others]
    assert "Train again with 1 example of each class" in trained
    assert "Train again with the kernel rbf-ard" in trained
    for other in others:
        changed = OmniglotSettings.parse(OmniglotSettings().values() | other.settings)
        assert changed.changed(OmniglotSettings().values()) == other.settings
    _, others = alternatives(run({"outputs": ["Greek"]}, n_outputs=1))
    assert {"n_outputs": 0} in [other.settings for other in others]
