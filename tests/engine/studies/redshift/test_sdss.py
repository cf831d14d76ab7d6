"""The query to SDSS, and how its answer is read."""

from __future__ import annotations

from scant.data_sources.fetch import DOWNLOADS
from scant.studies.redshift import sdss
from scant.studies.redshift.simulate import simulate


def test_missing_magnitudes_and_the_query() -> None:
    lines = ["#Table1", *simulate(400, seed=1).to_csv(index=False).splitlines()]
    cells = lines[2].split(",")
    cells[0] = cells[5] = "-9999"
    lines[2] = ",".join(cells)
    frame = sdss.read(("\n".join(lines) + "\n").encode(), "sdss")
    assert frame.loc[0, ["mag_u", "mag_u_err"]].isna().all()
    assert frame.notna().to_numpy().sum() == frame.size - 2
    assert "TOP 500 " in sdss.query(500)
    assert "'PEAKCENTER'" in sdss.query()
    assert DOWNLOADS["sdss"].url.endswith("format=csv")
