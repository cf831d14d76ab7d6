"""A model knows the headers of the table that it was fitted to, and is given tables with them."""

from __future__ import annotations

import io
import zipfile
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import scant
from scant.events import Finished, Fitted, Note, Progress, State
from scant.store import Store
from scant.studies import entry
from scant.tables.read import read_table
from scant.training.control import Control
from scant.training.downloads import predict_own
from scant.training.prediction import predict_file

MAPPING = {
    "place": "task",
    "t0": "x_lo",
    "t1": "x_hi",
    "dust [ug]": "y",
    "task": "",  # a word of the schema that means something else here
}


@pytest.mark.slow
@pytest.mark.parametrize("refit", ["no", "everything"])
def test_what_the_wizard_was_told_holds_for_every_later_table(tmp_path: Path, refit: str) -> None:
    at = np.arange(60)
    mine = pd.DataFrame({
        "place": np.where(at % 2, "roof", "yard"), "t0": at, "t1": at + 2,
        "dust [ug]": np.where(at == 7, -99, np.sin(at / 9)), "task": "clean",
    })  # fmt: skip
    codes = {"dust [ug]": [-99.0]}
    spec = entry("aggregation")
    file = mine.to_csv(index=False).encode()
    table = read_table(file, spec.table, mapping=MAPPING, missing_codes=codes)
    assert len(table.frame) == 59
    store = Store.open(f"sqlite:///{tmp_path / 'runs.db'}")
    kept = store.add_upload(table.frame, owner="a", name="x.csv", study="aggregation")

    run = scant.fit(
        "aggregation", store.upload_table(kept), device="cpu", max_steps=2, own=False, refit=refit
    )
    list(run)
    study = run.study
    assert study.metadata["reading"]["missing_codes"] == codes
    new = mine.drop(columns="dust [ug]").sample(9, random_state=0)
    new.to_csv(tmp_path / "new.csv", index=False)
    made = predict_file(study, tmp_path / "new.csv", tmp_path / "out.csv")
    told = pd.read_csv(tmp_path / "out.csv")
    pd.testing.assert_frame_equal(told[list(new)], new.reset_index(drop=True))
    own = scant.predict(study, new)
    pd.testing.assert_frame_equal(own.reset_index(drop=True), told, rtol=1e-6)
    assert own.index.equals(new.index)
    named = new.rename(columns={**MAPPING, "task": "chore"}).drop(columns="chore")
    np.testing.assert_allclose(told["mean"], study.predict(named)["mean"], rtol=1e-6)
    assert "| std | deviation of that average | ug |" in made.dictionary.read_text()

    with zipfile.ZipFile(io.BytesIO(predict_own(study, "", store.upload_parquet(kept)))) as out:
        assert {"place", "t0", "t1", "dust [ug]"} <= set(pd.read_csv(out.open("predictions.csv")))


@pytest.mark.parametrize("fits", [1, 2])
def test_a_stop_in_either_fit_is_a_stop(fits: int) -> None:
    """In that of the split, after which no fit on all rows begins; and in that."""
    control, at = Control(), np.linspace(0, 6, 40)
    table = pd.DataFrame({"task": "a", "x_lo": at, "x_hi": at + 0.1, "y": np.sin(at)})
    events = []
    for event in scant.fit(
        "aggregation", table, control=control, own=False, refit="everything", max_steps=6
    ):
        events.append(event)
        # The steps of the second fit count on from those of the first.
        if isinstance(event, Progress) and (event.step > 6) == (fits == 2):
            control.stop()
    assert isinstance(event, Finished)
    assert (event.state, "as requested" in event.reason) == (State.STOPPED, True)
    said = [e for e in events if isinstance(e, Note) and "fit on everything" in e.text]
    assert len(said) == fits - 1
    assert any(isinstance(e, Fitted) for e in events)
