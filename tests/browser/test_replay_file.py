"""A run as one file, opened from the disk of somebody who has no server."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, expect


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """As the command writes it, where there is no server and no database."""
    folder = tmp_path_factory.mktemp("replay")
    made = folder / "replay.html"
    code = "from scant_dashboard.cli.main import app; app()"
    without = {name: value for name, value in os.environ.items() if name != "DATABASE_URL"}
    subprocess.run(
        [sys.executable, "-c", code, "export", "demo-clamp", "--out", str(made)],
        env=without | {"SCANT_DATA_DIR": str(folder)}, check=True,
    )  # fmt: skip
    (folder / "slide.html").write_text("<iframe src='replay.html' height=700></iframe>")
    return made


STEPS = "() => Bokeh.documents[0].get_model_by_name('curve').data.step.length"


def _drawn(page: Page) -> None:
    page.wait_for_selector(".plot[data-drawn]", state="attached")


def test_a_file_replays_its_run_from_disk_and_asks_nobody(page: Page, file: Path) -> None:
    said: list[str] = []
    asked: list[str] = []
    loud = ("error", "warning")
    page.on("console", lambda m: said.append(m.text) if m.type in loud else None)
    page.on("pageerror", lambda error: said.append(str(error)))
    page.on("request", lambda request: asked.append(request.url))
    page.goto(file.as_uri())
    player = page.get_by_role("group", name="Replay")
    slider = player.get_by_role("slider", name="Step of the recording")
    expect(player).to_contain_text("end of training")
    _drawn(page)
    whole = page.evaluate(STEPS)
    slider.focus()
    page.keyboard.press("Home")
    expect(slider).to_have_attribute("aria-valuetext", re.compile(r"^step \d+ of \d+$"))
    expect(page.get_by_role("status").first).to_contain_text("replaying a recording")
    first = page.evaluate(STEPS)
    assert first < whole
    page.keyboard.press("ArrowRight")
    assert page.evaluate(STEPS) > first
    player.get_by_role("button", name="Play").press("Enter")
    expect(player.get_by_role("button", name="Pause")).to_be_focused()
    expect(player).to_contain_text("end of training")
    expect(player.get_by_role("button", name="Play")).to_be_focused()
    assert page.evaluate(STEPS) == whole
    page.keyboard.press("Enter")  # from the beginning
    player.get_by_role("button", name="Pause").click()
    expect(page.get_by_role("status").first).to_contain_text("replaying a recording")
    page.emulate_media(media="print")
    expect(player).to_be_hidden()
    assert said == []
    assert asked == [file.as_uri()]


def test_who_wants_no_motion_takes_each_step(page: Page, file: Path) -> None:
    page.clock.install()
    page.emulate_media(reduced_motion="reduce")
    page.goto(file.as_uri())
    slider = page.get_by_role("slider")
    on = page.get_by_role("button", name="Next step")
    for moment in ("0", "1"):
        on.click()
        expect(slider).to_have_value(moment)
    page.clock.run_for(3000)
    expect(slider).to_have_value("1")


def test_a_file_stands_in_a_frame_and_is_read_without_scripts(browser: Browser, file: Path) -> None:
    page = browser.new_page(java_script_enabled=False)
    page.goto(file.as_uri())
    expect(page.get_by_role("heading", name="Result")).to_be_visible()
    expect(page.get_by_role("img").first).to_be_visible()
    expect(page.get_by_role("slider")).to_have_count(0)
    page.close()
    page = browser.new_page()
    page.goto((file.parent / "slide.html").as_uri())
    frame = page.frame_locator("iframe")
    frame.get_by_role("button", name="Play").click()
    expect(frame.get_by_role("status").first).to_contain_text("replaying a recording")
    page.close()
