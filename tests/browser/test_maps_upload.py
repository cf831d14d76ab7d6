"""Tables of averages as offices and instruments write them: a file, its questions, Train."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest
from playwright.sync_api import Page, expect

from tests.browser.visiting import PATIENCE, button, drop, press, until
from tests.paths import REAL_DATA

DROP = """(texts) => {
  const carried = new DataTransfer()
  for (const [name, text] of Object.entries(texts))
    carried.items.add(new File([text], name, {type: 'text/csv'}))
  for (const name of ['dragenter', 'dragover', 'drop']) document.body.dispatchEvent(
    new DragEvent(name, {bubbles: true, cancelable: true, composed: true, dataTransfer: carried}))
}"""
QUICK = "n_inducing=8&max_steps=4&test_share=0.2"
REAL = (
    (REAL_DATA / "fertility" / "asfr_5x5.csv", 104),
    (REAL_DATA / "pm25_kampala" / "makerere_bam_hourly_2020.csv", 1036),
)


def rates() -> str:
    """Rates by year and age, a column for each order, as demographers write them."""
    header = "year_start,year_end,age_start,age_end," + ",".join(f"asfr_order{k}" for k in (1, 2))
    rows = [
        f"{year},{year + 5},{age},{age + 5},{0.01 * (age % 7 + 1)},{0.002 * (year % 9 + age % 5)}"
        for year in range(1944, 1964, 5)
        for age in range(15, 40, 5)
    ]
    return "\n".join([header, *rows])


def hours() -> str:
    """A monitor's hours with its own state beside what it measures, and gaps."""
    header = "start,end,bam_pm25_ugm3,temp_c,rh_pct,pressure_mmhg,flow_lpm,status,valid"
    pm = 20 + 8 * np.sin(np.arange(20) / 2)
    rows = [
        f"2020-07-04 {h:02d}:00,2020-07-04 {h + 1:02d}:00,{'' if h == 7 else round(pm[h], 1)},"
        f"{20 + h % 5}.5,{40 + h},659.{h % 7},14.9,{384 if h % 6 else 0},{int(h % 6 == 0)}"
        for h in range(20)
    ]
    return "\n".join([header, *rows])


def used_and_training(page: Page, kept: str | re.Pattern[str]) -> None:
    """The second and the third click: the table is kept, and a run on it learns."""
    press(page, "Use this table")
    expect(page.get_by_text(kept)).to_be_visible(timeout=PATIENCE)
    press(page, "Train")
    expect(page).to_have_url(re.compile("[?&]run="), timeout=PATIENCE)
    until(page, "running|^converged|^finished|^limit reached")


@pytest.mark.usefixtures("nothing_complains")
def test_rates_by_year_and_age_are_trained_in_three_clicks(page: Page, app_url: str) -> None:
    page.goto(f"{app_url}/aggregation?{QUICK}")
    drop(page, "births.csv", rates().encode())
    question = page.get_by_label("Which column is to be learned?")
    expect(question).to_be_visible(timeout=PATIENCE)
    expect(question.locator("option:checked")).to_have_text(
        "all 2, each a task of its own: asfr_order1, asfr_order2"
    )
    used_and_training(page, "births.csv: 40 rows, 6 columns, kept")


@pytest.mark.usefixtures("nothing_complains")
def test_hours_of_a_monitor_are_trained_in_three_clicks(page: Page, app_url: str) -> None:
    page.goto(f"{app_url}/aggregation?{QUICK}")
    drop(page, "monitor.csv", hours().encode())
    value = page.get_by_role("combobox", name="Use bam_pm25_ugm3 as")
    expect(value).to_have_value("y", timeout=PATIENCE)
    expect(page.get_by_text("Its dates were read as days since 1970-01-01").first).to_be_attached()
    expect(page.get_by_text("1 row without a value in 'y' was left out")).to_be_attached()
    used_and_training(page, "monitor.csv: 19 rows, 4 columns, kept")


def series(step: int) -> str:
    rows = "".join(f"{k * step},{(k + 1) * step},{k % 5 + 0.5}\n" for k in range(12))
    return f"start,end,pm\n{rows}"


@pytest.mark.usefixtures("nothing_complains")
def test_several_files_dropped_at_once_are_tasks(page: Page, app_url: str) -> None:
    page.goto(f"{app_url}/aggregation?{QUICK}")
    expect(button(page, "Use your own data")).to_be_visible(timeout=PATIENCE)
    page.evaluate(DROP, {"hours.csv": series(1), "days.csv": series(2)})
    expect(page.get_by_text("hours + days.zip: 24 rows, 4 columns")).to_be_visible(timeout=PATIENCE)
    expect(page.get_by_label("Which of its tables is to be read?")).to_be_visible()
    press(page, "Use this table")
    expect(page.get_by_text("hours + days.zip: 24 rows, 4 columns, kept")).to_be_visible(
        timeout=PATIENCE
    )
    expect(button(page, "Train")).to_be_enabled()


@pytest.mark.usefixtures("nothing_complains")
def test_several_files_chosen_in_the_field_are_tasks(
    page: Page, app_url: str, tmp_path: Path
) -> None:
    paths = [tmp_path / "hours.csv", tmp_path / "days.csv"]
    for path, step in zip(paths, (1, 2)):
        path.write_text(series(step))
    page.goto(f"{app_url}/aggregation?{QUICK}")
    press(page, "Use your own data")
    page.get_by_text("Drop a file here or anywhere").wait_for(timeout=PATIENCE)
    field = page.locator("input[type=file]")
    for x in range(100):  # the field draws itself anew after the dialog has opened
        page.locator(".filepond--root").hover(position={"x": 20 + x, "y": 20}, timeout=PATIENCE)
        page.wait_for_timeout(200)
        if field.get_attribute("multiple") is not None:
            break
    field.set_input_files(paths)
    expect(page.get_by_text("hours + days.zip: 24 rows, 4 columns")).to_be_visible(timeout=PATIENCE)


@pytest.mark.parametrize(("path", "rows"), REAL, ids=[path.stem for path, _ in REAL])
def test_real_tables_can_be_used_as_they_are(
    page: Page, app_url: str, path: Path, rows: int
) -> None:
    if not path.is_file():
        pytest.skip(f"SCANT_REAL_DATA names no {path.name}")
    page.goto(f"{app_url}/aggregation?{QUICK}")
    drop(page, path.name, path.read_bytes())
    expect(page.get_by_text(f"{path.name}: {rows:,} rows")).to_be_visible(timeout=PATIENCE)
    used_and_training(page, re.compile(f"{path.name}: .* rows, .* columns, kept"))
