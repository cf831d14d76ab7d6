"""Runs are named by study, data and the rows that they learn from."""

from __future__ import annotations

from pathlib import Path

import pandas as pd

from scant.runs.naming import run_name
from scant.store import Store
from scant.studies import entry

FRAME = pd.DataFrame({"z": [0.1] * 1000, "u": [1.0] * 1000})


def named(store: Store, data: str, **values: object) -> str:
    settings = entry("redshift").parse(data, values).values()
    return run_name(store.run(store.add_run("redshift", settings, data, "anna")), store)


def test_a_run_is_named_by_its_data_and_rows(tmp_path: Path) -> None:
    store = Store.open(f"sqlite:///{tmp_path / 'runs.db'}")
    upload = store.add_upload(FRAME, owner="anna", name="galaxies.csv", study="redshift")
    own = f"upload:{upload}"
    assert named(store, own, test_share=0.2) == "redshift · galaxies.csv · n = 700"
    assert named(store, own, training_size=50) == "redshift · galaxies.csv · n = 50"
    assert (
        named(store, "demo", training_size=200) == "redshift · Simulated survey · n = 282"
    )  # and validation
    marked = FRAME.assign(split=["test", "train"] * 500)
    divided = store.add_upload(marked, owner="anna", name="halves.csv", study="redshift")
    assert named(store, f"upload:{divided}") == "redshift · halves.csv"
    assert named(store, "upload:nothing") == "redshift · a deleted table"
    multiview = store.add_run("multiview", {}, "demo", "anna")
    assert run_name(store.run(multiview), store).startswith("many views · Cell events on film · n")
