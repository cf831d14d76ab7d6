"""The Human Fertility Database's own file is taken as it is, on the page and by the command."""

from __future__ import annotations

from pathlib import Path

import pytest

from scant.data_sources.human_fertility import is_rates, read_births
from scant.data_sources.open import open_table
from scant.errors import BadInput
from scant.studies import entry
from scant.studies.aggregation.simulate.fertility import simulate

SCHEMA = entry("aggregation").table


@pytest.fixture(scope="module")
def rates() -> bytes:
    rows = [
        f"{int(r.year_lo)} {int(r.age_lo)} {r.order1 + r.order2:.6f} {r.order1:.6f} {r.order2:.6f}"
        for r in simulate(0).itertuples()
    ]
    head = ["Canada, Period fertility rates", "Last modified: 1-Jan-2025", ""]
    return "\n".join([*head, "Year Age ASFR ASFR1 ASFR2", *rows, ""]).encode()


def test_rates_become_cells_and_boxes_with_a_note(rates: bytes) -> None:
    assert is_rates(rates)
    assert not is_rates(b"task,y,age\na,1,2\n")
    read = read_births(rates, SCHEMA, name="asfrRRbo.txt")
    tasks = read.frame["task"].value_counts()
    assert tasks.to_dict() == {"first births": 2640, "first births 5x5": 104}
    assert "2,640 single cells" in read.notes[0]
    assert "104 averages" in read.notes[0]


def test_the_command_takes_it_as_data(rates: bytes, tmp_path: Path) -> None:
    file = tmp_path / "asfrRRbo.txt"
    file.write_bytes(rates)
    study = entry("aggregation")
    assert len(open_table(study, file, study.settings())) == 2744
    file.write_bytes(rates.replace(b" 0.0", b" x.0"))
    with pytest.raises(BadInput, match=r"asfrRRbo\.txt, column 'ASFR"):
        open_table(study, file, study.settings())
