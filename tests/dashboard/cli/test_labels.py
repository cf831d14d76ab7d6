"""`scant export RUN --labels FORMAT`: the labels that people gave, for other programs."""

from __future__ import annotations

from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from scant.store import Store
from scant.studies.clamp.simulate import picture
from scant.tables.annotations.formats import FORMATS, read
from scant_dashboard.cli.main import app

RUN = "demo-clamp"


@pytest.fixture
def data_dir(tmp_path: Path) -> Path:
    """A server's data with the demonstration, on which Ada and Bob have labeled."""
    store = Store.open(f"sqlite:///{tmp_path / 'scant.db'}")
    store.import_shipped(["clamp"])
    store.add_label(RUN, 0, "clamp", "Ada", "browser 1")
    store.add_label(RUN, 25, "clamp", "Ada", "browser 1")
    store.add_label(RUN, 25, "no clamp", "Bob", "browser 2")
    store.add_label(RUN, 40, "clamp", "Bob", "browser 2")
    store.add_label(RUN, 40, "", "Bob", "browser 2")  # taken back
    store.close()
    return tmp_path


def export(*arguments: object) -> Result:
    return CliRunner().invoke(app, ["export", *map(str, arguments)])


@pytest.mark.slow
@pytest.mark.parametrize("form", FORMATS, ids=lambda one: one.name)
def test_labels_are_written_in_every_format(form: object, data_dir: Path, tmp_path: Path) -> None:
    name, out = form.name, tmp_path / form.file  # type: ignore[attr-defined]
    word = name.lower().replace(" ", "-")
    made = export(RUN, "--labels", word, "--out", out, "--data-dir", data_dir)
    assert made.exit_code == 0, made.output
    again = read(out.read_bytes(), out.name)
    assert {(a.picture, a.label) for a in again} == {
        ("trench 01", "clamp"), ("trench 02", "no clamp")
    }  # fmt: skip
    boxes = {a.picture: a.box for a in again}
    assert boxes == {"trench 01": (0, 0, 299, 299), "trench 02": (596, 0, 299, 299)}
    if name in ("CSV", "COCO", "Label Studio"):
        assert {a.labeler for a in again} == {"Ada", "Bob"}
        assert {a.size for a in again} == {picture(0, 0).image.shape[1::-1]}


def test_what_cannot_be_written_ends_in_a_sentence(data_dir: Path) -> None:
    made = export(RUN, "--labels", "voc", "--data-dir", data_dir)
    assert made.exit_code == 2
    assert "There is no format 'voc' of labels; there are CSV" in made.stderr
    made = export(RUN, "--labels", "csv", "--format", "zip", "--data-dir", data_dir)
    assert made.exit_code == 2
    assert "--labels and --format say two things" in made.stderr
    store = Store.open(f"sqlite:///{data_dir / 'scant.db'}")
    store.import_shipped(["mitosis"])
    store.close()
    made = export("demo-mitosis", "--labels", "csv", "--data-dir", data_dir)
    assert made.exit_code == 2
    assert "There are no labels on the run 'demo-mitosis'" in made.stderr
