"""The simulated country and the experiment's splits; files of the Human Fertility Database."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from scipy.integrate import dblquad

from scant.data_sources.human_fertility import is_rates, read_births, read_rates
from scant.data_sources.open import open_table
from scant.errors import BadInput
from scant.studies import entry
from scant.studies.aggregation.simulate.fertility import (
    N_FINE,
    SEEDS,
    experiment,
    long_form,
    rate,
    simulate,
)
from scant.studies.aggregation.table import TABLE, of
from scant.tables.read import read_frame

FILE = """\
Testland, Period fertility rates by calendar year, age and birth order
Last modified: 01/02/2020, MPv6

   Year    Age     ASFR    ASFR1    ASFR2   ASFR5p
   1944    12-  0.00004  0.00004  0.00000        .
   1944     15  0.00258  0.00253  0.00005  0.00000
   1944     16  0.00843  0.00808  0.00035        .
   1944    55+  0.00000  0.00000  0.00000  0.00000
   1943     15  0.00200  0.00190        .  0.00000
"""


@pytest.fixture(scope="module")
def cells() -> pd.DataFrame:
    return simulate(0)


def mean_age(cells: pd.DataFrame, order: int, cohort: int) -> float:
    """Mean age at birth of a cohort, years."""
    born = cells[cells["year_lo"] - cells["age_lo"] == cohort]
    return float(np.average(born["age_lo"] + 0.5, weights=born[f"order{order}"]))


def test_grid_is_that_of_the_publication(cells: pd.DataFrame) -> None:
    assert len(cells) == 2640
    assert (cells["age_lo"].min(), cells["age_hi"].max()) == (15, 55)
    assert (cells["year_lo"].min(), cells["year_hi"].max()) == (1944, 2010)
    assert not cells.duplicated(["age_lo", "year_lo"]).any()
    assert (cells[["order1", "order2"]] >= 0).all(axis=None)


def test_cells_are_averages_of_the_rate(cells: pd.DataFrame) -> None:
    for row in (6, 900, 2300):
        cell = cells.iloc[row]
        for order in (1, 2):
            expected, _ = dblquad(
                lambda age, year, k=order: rate(k, np.array([age]), np.array([year]))[0],
                cell["year_lo"],
                cell["year_hi"],
                cell["age_lo"],
                cell["age_hi"],
            )
            assert cell[f"order{order}"] == pytest.approx(expected, rel=1e-4)


@pytest.mark.parametrize("seed", SEEDS)
def test_schedule_shifts_and_deepens_over_cohorts(seed: int) -> None:
    country = simulate(seed)
    for order, highest in ((1, 0.13), (2, 0.1)):
        name = f"order{order}"
        assert 0.6 * highest < country[name].max() < highest
        assert mean_age(country, order, 1968) > mean_age(country, order, 1939) + 2
        peak = country.loc[country.groupby("year_lo")[name].idxmax()].set_index("year_lo")[name]
        assert peak[1960] > 1.3 * peak[2005]  # a higher and narrower schedule in the boom
    assert mean_age(country, 2, 1955) > mean_age(country, 1, 1955) + 1.5
    # Two outputs that share much, but not all.
    assert 0.6 < np.corrcoef(country["order1"], country["order2"])[0, 1] < 0.95


def test_noise_depends_on_the_input_only_where_it_should() -> None:
    women = 5_000.0
    wrong = {
        noise: (c["order1"] - c["order1_truth"]).to_numpy()
        for noise in ("births", "constant")
        for c in [simulate(2, noise=noise, women=women)]
    }
    with pytest.raises(BadInput, match="none, births or constant; got 'some'"):
        simulate(2, noise="some")
    truth = simulate(2)["order1"].to_numpy()
    low, high = truth < np.quantile(truth, 0.3), truth > np.quantile(truth, 0.7)
    assert wrong["births"][high].std() > 5 * wrong["births"][low].std()
    assert wrong["constant"][high].std() == pytest.approx(wrong["constant"][low].std(), rel=0.1)
    assert wrong["births"].std() == pytest.approx(wrong["constant"].std(), rel=0.1)
    expected = np.sqrt(truth[high].mean() / women)
    assert wrong["births"][high].std() == pytest.approx(expected, rel=0.1)


@pytest.mark.parametrize(("step", "boxes"), [(5, 104), (2, 660)])
def test_experiment_has_the_publication_s_sizes(cells: pd.DataFrame, step: int, boxes: int) -> None:
    table = experiment(cells, step, 200, seed=1)
    coarse = table[table["task"] == f"first births {step}x{step}"]
    fine = table[table["task"] == "first births"]
    assert len(coarse) == boxes
    assert (coarse["split"] == "train").all()
    assert fine["split"].value_counts().to_dict() == {"test": 1000, "train": 200}
    box = coarse.iloc[17]
    inside = (
        (cells["age_lo"] >= box["age_lo"])
        & (cells["age_hi"] <= box["age_hi"])
        & (cells["year_lo"] >= box["year_lo"])
        & (cells["year_hi"] <= box["year_hi"])
    )
    assert inside.sum() == step**2
    assert box["y"] == pytest.approx(cells.loc[inside, "order1"].mean())


def test_curve_is_nested_and_splits_differ(cells: pd.DataFrame) -> None:
    def rows(table: pd.DataFrame, split: str) -> set[tuple[float, float]]:
        chosen = table[(table["task"] == "first births") & (table["split"] == split)]
        return set(zip(chosen["age_lo"], chosen["year_lo"]))

    tables = [experiment(cells, 5, n, seed=0) for n in N_FINE]
    for small, large in pairwise(tables):
        assert rows(small, "train") < rows(large, "train")
        assert rows(small, "test") == rows(large, "test")
    assert len(rows(tables[-1], "train")) == 1640
    assert not rows(tables[-1], "train") & rows(tables[-1], "test")
    other = experiment(cells, 5, 1640, seed=1)
    shared = len(rows(tables[-1], "test") & rows(other, "test"))
    assert 300 < shared < 460  # 1000² / 2640 = 379 by chance


def test_four_outputs(cells: pd.DataFrame) -> None:
    table = experiment(cells, 5, 80, orders=(1, 2))
    assert table["task"].unique().tolist() == [
        "first births",
        "first births 5x5",
        "second births",
        "second births 5x5",
    ]
    result = of(read_frame(table, TABLE).frame)
    assert len(result) == 2 * (1000 + 80 + 104)
    assert result.test.sum() == 2000
    with pytest.raises(BadInput, match="no births of order 3"):
        long_form(cells, 3)
    with pytest.raises(BadInput, match="1,000 are kept for the test"):
        experiment(cells[:800])


def test_hfd_file(tmp_path: Path) -> None:
    path = tmp_path / "TSTasfrRRbo.txt"
    path.write_text(FILE)
    cells = read_rates(path)
    assert list(cells) == ["age_lo", "age_hi", "year_lo", "year_hi", "order1", "order2"]
    assert cells["year_lo"].tolist() == [1943, 1944, 1944]  # sorted, open ages left out
    assert cells["age_hi"].tolist() == [16, 16, 17]
    assert cells["order1"].tolist() == [0.0019, 0.00253, 0.00808]
    assert np.isnan(cells["order2"][0])
    assert len(long_form(cells, 2)) == 2
    assert len(read_rates(path, years=(1944, 1945))) == 2
    # Without the blank line, with Windows' line ends, from bytes.
    squeezed = FILE.replace("\n\n", "\n").replace("\n", "\r\n").encode()
    pd.testing.assert_frame_equal(read_rates(squeezed), cells)


def test_hfd_file_of_several_countries() -> None:
    lines = FILE.splitlines()
    head, rows = lines[3], lines[4:]
    both = [*lines[:3], "Code " + head, *("AAA " + r for r in rows), *("BBB " + r for r in rows)]
    data = "\n".join(both).encode()
    assert len(read_rates(data, country="BBB")) == 3
    with pytest.raises(BadInput, match=r"2 countries \(AAA, BBB\); name one"):
        read_rates(data)
    with pytest.raises(BadInput, match="there is no 'CCC'"):
        read_rates(data, country="CCC")


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("0.00253", "0.0025x", "column 'ASFR1', row 6: got '0.0025x'"),
        ("0.00253", "-0.1", "column 'ASFR1', row 6: got '-0.1'"),
        ("0.00253", "inf", "column 'ASFR1', row 6: got 'inf'"),
        ("0.00253  ", "", "row 6: 5 words where the header has 6"),
        ("1943     15", "19x3     15", "column 'Year', row 9: got '19x3'"),
        ("     16", "    16y", "column 'Age', row 7: got '16y', which is not an age"),
        ("     16", "     15", "row 7: another row has the same year and age"),
        ("   Year ", "Cohort ", "by cohort, not by year"),
        ("   ASFR1", "   TOTAL", "row 4: there is no column 'ASFR1'"),
        ("   Age ", "   Alter ", "no header with Year and Age"),
    ],
)
def test_hfd_file_that_cannot_be_read(old: str, new: str, said: str) -> None:
    with pytest.raises(BadInput) as caught:
        read_rates(FILE.replace(old, new, 1).encode(), name="mine.txt")
    assert str(caught.value).startswith("mine.txt")
    assert said in str(caught.value)


def test_hfd_file_without_rows_or_range() -> None:
    with pytest.raises(BadInput, match="header but no rows"):
        read_rates("\n".join(FILE.splitlines()[:4]).encode())
    with pytest.raises(BadInput, match="no cell of ages 20 to 29"):
        read_rates(FILE.encode(), ages=(20, 30))
    with pytest.raises(BadInput, match="no cell of ages 15 to 54 and years 1950 to 1959"):
        read_rates(FILE.encode(), years=(1950, 1960))
    with pytest.raises(BadInput, match="There is no file"):
        read_rates(Path("nowhere.txt"))
    with pytest.raises(BadInput, match="is a PDF document"):
        read_rates(b"%PDF-1.7 ...")


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
