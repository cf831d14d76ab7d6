"""The redshift page end to end, as a visitor lives through it, in a real browser."""

from __future__ import annotations

import io
import re
from collections.abc import Callable
from pathlib import Path
from zipfile import ZipFile

import numpy as np
import pandas as pd
import pytest
from playwright.sync_api import Browser, Page, expect

from scant.tables.encoding import LIMIT_BYTES
from scant_dashboard.page_parts.guess_first import HIDDEN_TEXT
from tests.browser.accessible import assert_accessible
from tests.browser.visiting import (
    PATIENCE,
    button,
    come_to,
    drop,
    figure,
    reading,
    select_rows,
    status,
    use_and_train,
)
from tests.paths import TEMPLATES

SMALL = "training_size=200&validation_size=80&test_size=120&n_basis=4&max_steps=25&restarts=1"
LONG = "training_size=1500&n_basis=100&max_steps=5000&patience=0&restarts=1&test_size=120"


pytestmark = pytest.mark.usefixtures("nothing_complains")


@pytest.fixture
def redshift(visit: Callable[[str], Page]) -> Page:
    """The page with the recorded run on it, where the last test left it."""
    page = visit("/redshift")
    expect(status(page)).to_contain_text("recorded", timeout=PATIENCE)
    expect(reading(page, "Objective")).to_contain_text(re.compile("step"), timeout=PATIENCE)
    return page


def test_it_opens_alive_and_every_figure_says_what_it_shows(redshift: Page) -> None:
    expect(status(redshift)).to_contain_text(re.compile("^converged|^finished|^limit reached"))
    for title in (
        "Where the uncertainty comes from", "Features that matter", "Probability integral",
        "Coverage of intervals", "What more data", "Inputs missing", "Bin by bin", "Scores by bin",
        "What if an input", "Keep only",
    ):  # fmt: skip
        expect(come_to(redshift, title)).to_contain_text(re.compile(r"\d"), timeout=PATIENCE)
    expect(reading(redshift, "What if an input")).to_contain_text("Most likely", timeout=PATIENCE)
    verdict = redshift.locator("[data-part=verdict]")
    expect(verdict).to_contain_text(re.compile("RMSE: this run .* random forest .*"))
    labels = [f.get_attribute("aria-label") or "" for f in redshift.get_by_role("img").all()]
    plots = [label for label in labels if ". " in label]
    assert len(plots) >= 15
    assert [p for p in plots if "Nothing to show" in p] == []


def test_rows_selected_in_one_figure_have_metrics_of_their_own(redshift: Page) -> None:
    (rows, value), (fewer, other) = select_rows(redshift, "RMSE")
    assert 0 < fewer < rows
    assert value != other


def test_axe_finds_nothing_against_it(redshift: Page) -> None:
    come_to(redshift, "Keep only")
    kept = redshift.get_by_role("slider", name=re.compile("Share of rows kept"))
    expect(kept).to_be_visible(timeout=PATIENCE)
    expect(redshift.get_by_role("checkbox", name="mag_u")).to_be_attached(timeout=PATIENCE)
    assert_accessible(redshift, "Keep only what it is sure of")


def test_training_is_seen_from_the_first_step_to_the_result(page: Page, app_url: str) -> None:
    page.goto(f"{app_url}/redshift?{SMALL}")
    button(page, "Train").click()
    expect(page).to_have_url(re.compile("[?&]run="), timeout=PATIENCE)
    expect(status(page)).not_to_contain_text("recorded")
    expect(status(page)).to_contain_text(
        re.compile("^converged|^finished|^limit reached"), timeout=PATIENCE
    )
    expect(reading(page, "Objective")).to_contain_text(re.compile(r"[Ss]tep \d+:"))
    expect(reading(page, "Prediction against truth")).to_contain_text("120 held-out rows")
    expect(page.get_by_role("row", name="this run")).to_be_visible(timeout=PATIENCE)


def test_pause_resume_and_stop_answer_and_leave_a_usable_result(page: Page, app_url: str) -> None:
    page.goto(f"{app_url}/redshift?{LONG}")
    button(page, "Train").click()
    expect(status(page)).to_contain_text(re.compile("^running"), timeout=PATIENCE)
    button(page, "Pause").click(timeout=PATIENCE)
    expect(status(page)).to_contain_text(re.compile("^paus"))
    expect(status(page)).to_contain_text(re.compile("^paused"), timeout=PATIENCE)
    button(page, "Resume").click(timeout=PATIENCE)
    expect(status(page)).to_contain_text(re.compile("^running"), timeout=PATIENCE)
    button(page, "Stop").click(timeout=PATIENCE)
    expect(status(page)).to_contain_text(re.compile("^stopp"))
    expect(status(page)).to_contain_text(re.compile("^stopped"), timeout=PATIENCE)
    expect(page.get_by_role("heading", name="Explore")).to_be_visible(timeout=PATIENCE)


def test_a_band_switched_off_moves_metrics_and_density(redshift: Page) -> None:
    what_if = come_to(redshift, "What if an input")
    expect(what_if).to_contain_text("Most likely", timeout=PATIENCE)
    before = what_if.inner_text()
    box = redshift.get_by_role("checkbox", name="mag_u")
    box.uncheck()
    grown = redshift.get_by_text(re.compile(r"RMSE grows by a factor of \d"))
    expect(grown).to_be_visible(timeout=PATIENCE)
    assert what_if.inner_text() != before
    box.check()
    expect(grown).to_be_hidden(timeout=PATIENCE)
    expect(what_if).to_have_text(before, timeout=PATIENCE)


def test_a_guess_is_asked_for_before_the_answer_is_shown(redshift: Page) -> None:
    come_to(redshift, "What if an input")
    asked = figure(redshift, "What if an input")
    asked.get_by_label("Guess first").check(timeout=PATIENCE)
    box = redshift.get_by_role("checkbox", name="mag_g")
    box.press("Space")  # a click may miss it while the page moves
    expect(box).not_to_be_checked()
    expect(redshift.get_by_text("by what factor will the RMSE grow?")).to_be_visible(
        timeout=PATIENCE
    )
    grown = redshift.get_by_text("RMSE grows by a factor of")
    expect(grown).to_be_hidden()
    expect(redshift.get_by_text("Asking the model")).to_be_hidden(timeout=PATIENCE)
    expect(grown).to_be_hidden()
    expect(come_to(redshift, "Inputs missing")).to_have_text(HIDDEN_TEXT, timeout=PATIENCE)
    asked.get_by_role("button", name="Reveal").click()
    expect(grown).to_be_visible(timeout=PATIENCE)
    expect(redshift.get_by_text("You guessed 2.0: ")).to_be_visible()
    expect(reading(redshift, "Inputs missing")).to_contain_text("1 missing")


def test_a_galaxy_is_chosen_by_number_or_by_a_click(redshift: Page) -> None:
    what_if = come_to(redshift, "What if an input")
    expect(what_if).to_contain_text("The true value, ", timeout=PATIENCE)
    before = what_if.inner_text()
    number = redshift.get_by_label("Row of the test set")
    number.press("ControlOrMeta+a")
    number.press_sequentially("7")
    number.press("Enter")
    expect(what_if).not_to_have_text(before, timeout=PATIENCE)
    before = what_if.inner_text()
    plot = figure(redshift, "What if an input").get_by_role("img").first
    plot.scroll_into_view_if_needed()
    frame = plot.bounding_box()
    assert frame is not None
    for place in np.linspace(0.25, 0.6, 30):  # along the diagonal, until one is hit
        x = frame["x"] + 60 + place * (frame["width"] - 130)
        y = frame["y"] + (0.85 - 0.75 * place) * frame["height"]
        redshift.mouse.click(x, y)
        redshift.wait_for_timeout(100)
        if number.input_value() != "7":
            break
    assert number.input_value() != "7"
    expect(what_if).not_to_have_text(before, timeout=PATIENCE)


def test_the_slider_of_the_share_kept_reads_the_metrics(redshift: Page) -> None:
    kept = come_to(redshift, "Keep only")
    expect(kept).to_contain_text("All rows:", timeout=PATIENCE)
    redshift.get_by_role("slider", name=re.compile("Share of rows kept")).press("ArrowLeft")
    expect(kept).to_contain_text("The 95% most confident rows", timeout=PATIENCE)


def test_zooming_holds_the_curve_until_follow(redshift: Page) -> None:
    curve = redshift.locator(".figure").first
    expect(button(redshift, "Follow")).to_be_hidden()
    curve.get_by_role("img").hover()
    curve.locator(".bk-tool-icon-wheel-zoom").click()
    curve.get_by_role("img").hover()
    redshift.mouse.wheel(0, -300)
    expect(button(redshift, "Follow")).to_be_visible(timeout=PATIENCE)
    button(redshift, "Follow").click()
    expect(button(redshift, "Follow")).to_be_hidden(timeout=PATIENCE)


def test_a_table_is_predicted_without_training_as_often_as_one_likes(
    redshift: Page, tmp_path: Path
) -> None:
    button(redshift, "Predict a table").click()
    said = f"A file of at most {LIMIT_BYTES // 10**6} MB, of any kind that can be uploaded"
    expect(redshift.get_by_text(said)).to_be_visible(timeout=PATIENCE)
    chosen = redshift.locator("input[type=file]").last
    bad = b"height,width\n1,2\n3,4\n"
    chosen.set_input_files({"name": "bad.csv", "mimeType": "text/csv", "buffer": bad})
    alert = redshift.locator("p.error[role=alert]")
    expect(alert).to_contain_text("bad.csv lacks the column", timeout=PATIENCE)
    rows = pd.read_csv(TEMPLATES / "redshift.csv").drop(columns="z").head(30)
    rows.insert(0, "objid", range(30))
    for count in (30, 12):
        table = rows.head(count).to_csv(index=False).encode()
        file = {"name": "mine.csv", "mimeType": "text/csv", "buffer": table}
        redshift.locator("input[type=file]").last.set_input_files(file)
        expect(redshift.get_by_text(f"mine.csv: {count} rows predicted.")).to_be_visible(
            timeout=PATIENCE
        )
        with redshift.expect_download(timeout=PATIENCE) as waiting:
            button(redshift, "Download the predictions").click()
        assert waiting.value.suggested_filename == "mine.predictions.zip"
        waiting.value.save_as(tmp_path / "mine.zip")
        with ZipFile(tmp_path / "mine.zip") as made:
            told = pd.read_csv(made.open("predictions.csv"))
        assert list(told)[:2] == ["objid", "mag_u"]
        assert len(told) == count
        assert told["lo95"].lt(told["mean"]).all()
    button(redshift, "Predict a table").click()


def test_downloads_hold_the_run_and_figures_open_alone_and_offline(
    redshift: Page, browser: Browser, tmp_path: Path
) -> None:
    for name, word in (
        ("Script", "scant.fit("),
        ("All figures", "Bokeh"),
    ):
        with redshift.expect_download(timeout=PATIENCE) as waiting:
            button(redshift, name).click()
        waiting.value.save_as(tmp_path / f"{name}.html")
        assert word in (tmp_path / f"{name}.html").read_text(encoding="utf-8")
    with redshift.expect_download(timeout=PATIENCE) as waiting:
        button(redshift, "Predictions").click()
    waiting.value.save_as(tmp_path / "predictions.zip")
    with ZipFile(tmp_path / "predictions.zip") as made:
        told = pd.read_csv(made.open("predictions.csv"), keep_default_na=False)
        words = made.read("columns.md").decode()
    assert (told["role"] == "test").sum() == 2000  # though the page shows a thousand
    assert set(told["role"]) >= {"train", "validation"}
    assert {"mag_u", "z", "mean", "lo95", "hi95", "outside"} <= set(told)
    assert "| std_model |" in words
    offline = browser.new_context(offline=True)
    try:
        page = offline.new_page()
        errors: list[str] = []
        page.on("pageerror", lambda error: errors.append(str(error)))
        page.goto((tmp_path / "All figures.html").as_uri())
        expect(page.locator("canvas").first).to_be_visible(timeout=PATIENCE)
        assert errors == []
    finally:
        offline.close()


def survey(header: str, rows: int = 450, spoilt: dict[int, str] | None = None) -> bytes:
    """A table whose last column depends on the others; `spoilt` lines stand in for its own."""
    random = np.random.default_rng(0)
    values = random.uniform(17, 22, (rows, header.count(",")))
    target = 0.2 * (values[:, 0] - 17) + random.normal(0, 0.02, rows)
    lines = [",".join(f"{v:.4f}" for v in row) for row in np.column_stack([values, target])]
    for line, text in (spoilt or {}).items():
        lines[line] = text
    return "\n".join([header, *lines, ""]).encode()


def test_an_own_table_is_mapped_trained_on_and_deleted(page: Page, app_url: str) -> None:
    page.goto(f"{app_url}/redshift?{SMALL}")
    expect(status(page)).to_contain_text("recorded", timeout=PATIENCE)
    drop(page, "mine.csv", survey("blue,green,red,distance"))
    unsure = page.get_by_role("combobox", name="Which column is to be learned")
    expect(unsure.locator("option:checked")).to_have_text("distance", timeout=PATIENCE)
    expect(page.get_by_label("Use distance as")).to_have_value("z")
    use_and_train(page, "mine.csv: 450 rows, 4 columns")
    come_to(page, "What if an input")
    expect(page.get_by_role("checkbox", name="green")).to_be_visible(timeout=PATIENCE)
    come_to(page, "Features that matter")
    expect(reading(page, "Features that matter")).to_contain_text(
        "Most sensitive to", timeout=PATIENCE
    )
    button(page, "Delete this table").click()
    expect(page.get_by_role("combobox", name="Source")).to_have_text(
        "Simulated survey", timeout=PATIENCE
    )


def photometry(rows: int = 300) -> bytes:
    """A file as RAIL has them: a group of columns, 99 and the limit where nothing was detected."""
    h5py = pytest.importorskip("h5py")
    random = np.random.default_rng(1)
    z, color = random.uniform(0.1, 1.5, rows), random.normal(0, 0.1, rows)
    content = io.BytesIO()
    with h5py.File(content, "w") as file:
        group = file.create_group("photometry")
        group["redshift"] = z
        for k, band in enumerate("griz"):
            magnitude = 24 - 0.6 * k * (1 + z) + color + random.normal(0, 0.05, rows)
            error = np.full(rows, 0.05)
            if band == "g":
                magnitude[::25], error[::25] = 99.0, 25.0
            group[f"mag_{band}_lsst"], group[f"mag_err_{band}_lsst"] = magnitude, error
    return content.getvalue()


OWN = "time_budget=1&gap_seconds=1&restarts=1&log_target=no&robust=yes"


def test_an_own_file_of_the_field_is_trained_on_judged_and_its_densities_taken_home(
    page: Page, app_url: str, tmp_path: Path
) -> None:
    h5py = pytest.importorskip("h5py")
    page.goto(f"{app_url}/redshift?{OWN}")
    expect(status(page)).to_contain_text("recorded", timeout=PATIENCE)
    expect(page.get_by_label("Time budget (s)").first).to_be_visible()
    expect(page.get_by_label("Time for gaps (s)").first).to_be_visible()
    drop(page, "mine.hdf5", photometry())
    expect(page.get_by_text("99 in 12 cells was read as 'not detected'")).to_be_visible(
        timeout=PATIENCE
    )
    use_and_train(page, "mine.hdf5: 300 rows")
    expect(page.locator("[data-part=verdict]")).to_contain_text("RMSE", timeout=PATIENCE)
    card = page.locator("[data-part=take-another]")
    expect(card).to_contain_text("Take another tool when …", timeout=PATIENCE)
    expect(card).to_contain_text(re.compile(r"\d+ scores on \d+ parts? of the held-out rows"))
    expect(come_to(page, "Models tried")).to_contain_text(
        re.compile(r"The search began with \d+ G"), timeout=PATIENCE
    )
    expect(come_to(page, "Bands missing")).to_contain_text(
        "against the best rival", timeout=PATIENCE
    )
    with page.expect_download(timeout=PATIENCE) as waiting:
        button(page, "Predictions").click()
    waiting.value.save_as(tmp_path / "predictions.zip")
    with ZipFile(tmp_path / "predictions.zip") as made:
        rows = len(pd.read_csv(made.open("predictions.csv")))
        with h5py.File(io.BytesIO(made.read("predictions.densities.hdf5"))) as file:
            weights = file["data/weights"][:]
    assert len(weights) == rows == 300
    np.testing.assert_allclose(weights.sum(1), 1, atol=1e-3)


WIDE = ",".join(f"c{i}" for i in range(30_000))
BROKEN = {
    "empty.csv": (b"", "is empty; give a CSV file with a header and rows"),
    "header.csv": (b"u,g,r,z\n", "has a header but no rows"),
    "picture.csv": (b"\x89PNG\r\n\x1a\n" + bytes(range(256)), "is a PNG image, not a table"),
    "text.csv": (survey("u,g,r,z", 900, {729: "18,faint,17,0.4"}), "row 731: got 'faint'"),
    "formula.csv": (survey("u,g,r,z", 90, {5: "18,=cmd|'/c calc'!A1,17,0.4"}), 'got "=cmd|'),
    "wide.csv": (f"{WIDE}\n{WIDE}\n".encode(), "has 30,000 columns and the limit is"),
    "blank.csv": (b"\n", "is empty; give a CSV file with a header and rows"),
    "nothing.csv": (b"", "is empty; give a CSV file with a header and rows"),
}


def test_a_broken_table_ends_in_one_sentence_and_the_server_serves_on(redshift: Page) -> None:
    for name, (content, sentence) in BROKEN.items():
        drop(redshift, name, content)
        alert = redshift.locator("p.error[role=alert]")
        expect(alert).to_contain_text(sentence, timeout=PATIENCE)
        expect(alert).to_contain_text(name, timeout=PATIENCE)
        expect(alert).to_have_count(1)
        expect(button(redshift, "Use this table")).to_be_hidden()
    assert redshift.evaluate("async () => (await fetch('./healthz')).status") == 200
    expect(status(redshift)).to_contain_text("recorded")
