"""Where a study's table comes from, and how tables leave."""

from __future__ import annotations

import io
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from scant.data_dir import data_dir, fetched_path
from scant.data_sources.open import open_table, prefetch_demo, sample
from scant.errors import BadInput
from scant.studies import entry
from scant.studies.multiview.simulate import cell_events
from scant.studies.redshift.simulate import simulate
from scant.tables.csv_safety import safe_for_spreadsheet
from scant.tables.read import read_table
from tests.paths import ROOT

ENTRY = entry("redshift")
SETTINGS = ENTRY.settings(training_size=100, validation_size=20, test_size=30, data_seed=4)


@pytest.mark.parametrize("data", [None, "demo"])
def test_the_demonstration_is_as_large_as_the_settings_ask(data: str | None) -> None:
    pd.testing.assert_frame_equal(open_table(ENTRY, data, SETTINGS), simulate(150, seed=4))


def test_files_and_frames(tmp_path: Path) -> None:
    survey = simulate(90)
    survey.to_csv(tmp_path / "a.csv", index=False)
    survey.to_parquet(tmp_path / "a.parquet")
    for data in (survey, tmp_path / "a.csv", str(tmp_path / "a.parquet")):
        pd.testing.assert_frame_equal(open_table(ENTRY, data, SETTINGS), survey)
    (tmp_path / "b.parquet").write_bytes(b"PAR1 not really")
    with pytest.raises(BadInput, match="cannot be read as Parquet"):
        open_table(ENTRY, tmp_path / "b.parquet", SETTINGS)
    with pytest.raises(BadInput, match=r"no file absent\.csv"):
        open_table(ENTRY, tmp_path / "absent.csv", SETTINGS)
    with pytest.raises(BadInput, match=r"no data set 'moon'.*demo, sdss"):
        open_table(ENTRY, "moon", SETTINGS)
    with pytest.raises(BadInput, match="no column 'mass'"):
        open_table(ENTRY, None, ENTRY.settings(target="mass"))


def test_fetched_data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SCANT_DATA_DIR", str(tmp_path))
    assert data_dir() == tmp_path
    with pytest.raises(BadInput, match="scant data fetch sdss"):
        open_table(ENTRY, "sdss", SETTINGS)
    fetched_path("sdss").parent.mkdir()
    simulate(70).to_parquet(fetched_path("sdss"))
    assert len(open_table(ENTRY, "sdss", SETTINGS)) == 70


@pytest.mark.parametrize("kept", [True, False])
def test_what_its_generator_keeps_is_made_ahead(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kept: bool
) -> None:
    monkeypatch.setenv("SCANT_DATA_DIR", str(tmp_path))
    events = entry("multiview")
    monkeypatch.setattr(cell_events, "candidates", lambda seed: simulate(60, seed=seed))
    prefetch_demo(replace(events, sources=(replace(events.sources[0], kept=kept),)))
    assert [p.name for p in tmp_path.glob("generated/*")] == kept * ["films-1-0.parquet"]
    monkeypatch.setattr(cell_events, "candidates", lambda seed: pytest.fail("drawn again"))
    if kept:
        pd.testing.assert_frame_equal(cell_events.demo(events.settings()), simulate(60, seed=0))


def test_samples() -> None:
    pd.testing.assert_frame_equal(sample(ENTRY, "demo", 12, seed=9), simulate(12, seed=9))
    with pytest.raises(BadInput, match="generates no data set 'sdss'; it generates demo"):
        sample(ENTRY, "sdss", 12)


def test_the_template_can_be_fitted() -> None:
    path = ROOT / "data" / "templates" / "redshift.csv"
    table = read_table(path, ENTRY.table)
    assert len(table.frame) == 200
    assert table.notes == ()
    assert 0 < table.frame.isna().to_numpy().mean() < 0.1


def test_real_galaxies_read_like_simulated_ones() -> None:
    real = Path(os.environ.get("SCANT_REAL_DATA", ROOT.parent / "shared" / "data"))
    path = real / "photoz_sdss" / "galaxies.parquet"
    if not path.is_file():
        pytest.skip("no real galaxies: set SCANT_REAL_DATA")
    frame = pd.read_parquet(path)[:3000]
    csv = frame.to_csv(index=False).encode()
    by_itself = read_table(csv, ENTRY.table, levels={})
    assert by_itself.features == ("u", "g", "r", "i", "z_band")
    assert any("'z', which looks like a magnitude" in note for note in by_itself.notes)
    np.testing.assert_allclose(by_itself.frame["z"], frame["z_spec"], rtol=1e-6)
    table = read_table(csv, ENTRY.table, target="z_spec", levels={})  # as a data set of ours
    assert table.features == ("u", "g", "r", "i", "z")
    assert {"u_err", "z_err", "z_spec"} <= set(table.frame)
    np.testing.assert_allclose(table.frame["g"], frame["g"], rtol=1e-6)


def test_exports_hold_no_formulas() -> None:
    frame = pd.DataFrame(
        {"=name": ["=cmd|' /C calc'!A0", "+1.5", " @x", "plain", None], "v": [-1.0, 2, 3, 4, 5]}
    )
    safe = safe_for_spreadsheet(frame)
    assert safe.iloc[:4, 0].tolist() == ["'=cmd|' /C calc'!A0", "+1.5", "' @x", "plain"]
    assert safe.columns.tolist() == ["'=name", "v"]
    pd.testing.assert_series_equal(safe["v"], frame["v"])
    assert frame.columns[0] == "=name"
    back = pd.read_csv(io.StringIO(safe.to_csv(index=False)))
    assert not back.iloc[0, 0].startswith("=")


@pytest.mark.slow
def test_no_torch_comes_along() -> None:
    code = (
        "import sys, scant.tables.read, scant.tables.images.archives, scant.data_sources.open as d;"
        "from scant.studies import entry; e = entry('redshift');"
        "d.open_table(e, None, e.settings(training_size=60));"
        "sys.exit(any(m in sys.modules for m in ('torch', 'panel', 'bokeh')))"
    )
    subprocess.run([sys.executable, "-c", code], check=True, cwd=ROOT)
