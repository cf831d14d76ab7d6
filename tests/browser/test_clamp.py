"""The clamp page end to end: labels by keys, a reload, a second window, a killed server."""

from __future__ import annotations

import base64
import io
import json
import re
from collections.abc import Callable
from urllib.parse import parse_qs, urlsplit

import numpy as np
import pandas as pd
import pytest
from PIL import Image
from playwright.sync_api import Browser, Locator, Page, expect

from scant.store import Store
from scant.store.label_agreement import standing
from scant.store.records import ADJUDICATOR
from tests.browser.accessible import assert_accessible
from tests.browser.conftest import Served
from tests.browser.visiting import (
    PATIENCE,
    button,
    come_to,
    drop,
    figure,
    settled,
    status,
    use_and_train,
)

YOURS = "expert=you&n_components=4"


def pool(n: int = 48) -> bytes:
    """Patches of noise, every fourth with a bright square, six of a picture; none is labeled."""
    rng = np.random.default_rng(0)
    rows = []
    for i in range(n):
        pixels = rng.integers(0, 120, (64, 64, 3)).astype(np.uint8)
        if i % 4 == 0:
            pixels[16:48, 16:48] = 230
        file = io.BytesIO()
        Image.fromarray(pixels).save(file, "JPEG")
        place = {"left": 64 * (i % 3), "top": 64 * (i % 6 // 3), "size": 64}
        image = base64.b64encode(file.getvalue()).decode()
        rows.append({"label": "", "picture": f"photo {i // 6}", **place, "image": image})
    return pd.DataFrame(rows).to_csv(index=False).encode()


def bench(page: Page) -> Locator:
    return page.locator(".bench")


def shown(page: Page) -> int:
    """The row of the patch on show, once there is one; keys count while the desk is in sight."""
    expect(bench(page)).to_have_attribute("data-row", re.compile(r"\d"), timeout=PATIENCE)
    bench(page).scroll_into_view_if_needed()
    return int(bench(page).get_attribute("data-row") or -1)


def places(page: Page) -> list[float]:
    """Where the two buttons are on the desk, which may have been scrolled, and their sizes."""
    found = []
    desk = bench(page).bounding_box()
    assert desk is not None
    for key in (1, 2):
        box = page.get_by_role("button", name=re.compile(f"^{key}")).bounding_box()
        assert box is not None
        found += [box["x"] - desk["x"], box["y"] - desk["y"], box["width"], box["height"]]
    return found


def press(page: Page, key: str) -> None:
    """Press a key, again where the desk took none: while it is scrolled out of sight or built."""
    taken = str(int(bench(page).get_attribute("data-turn") or 0) + 1)
    for patience in (2_000, 5_000, PATIENCE):
        shown(page)
        if bench(page).get_attribute("data-turn") != taken:
            page.keyboard.press(key)
        try:
            return expect(bench(page)).to_have_attribute("data-turn", taken, timeout=patience)
        except AssertionError:
            if patience == PATIENCE:
                raise


def ask_about(page: Page, kind: str) -> None:
    page.get_by_role("combobox", name="Ask me about").click()
    page.get_by_role("menuitem", name=kind).click()


def begin(page: Page, url: str) -> str:
    """Bring a pool, begin a session on it, and return the run."""
    page.goto(f"{url}/clamp?{YOURS}")
    drop(page, "pool.csv", pool())
    use_and_train(page, "pool.csv: 48 rows")
    shown(page)
    return parse_qs(urlsplit(page.url).query)["run"][0]


@pytest.mark.usefixtures("nothing_complains")
def test_it_opens_alive_and_invites_to_label(visit: Callable[[str], Page]) -> None:
    page = visit("/clamp")
    expect(status(page)).to_contain_text("recorded", timeout=PATIENCE)
    expect(come_to(page, "What a label is worth")).to_contain_text("GP, active", timeout=PATIENCE)
    expect(come_to(page, "The pool and its queries")).to_contain_text("rows are labeled")
    expect(come_to(page, "A whole picture")).to_contain_text("This picture shows", timeout=PATIENCE)
    expect(button(page, "Label these rows yourself")).to_be_enabled()


def test_axe_finds_nothing_against_it(visit: Callable[[str], Page]) -> None:
    assert_accessible(visit("/clamp"), "What if the acquisition were different?")


@pytest.mark.usefixtures("nothing_complains")
def test_labels_by_keys_are_taken_back_changed_and_agreed_on_in_a_second_window(
    page: Page, browser: Browser, served: Served
) -> None:
    run = begin(page, served.url)
    store = Store.open(f"sqlite:///{served.data / 'scant.db'}")
    boxes = places(page)
    rows = []
    for _ in range(12):
        rows.append(shown(page))
        press(page, "2" if rows[-1] % 4 == 0 else "1")
        assert [v.item for v in store.labels(run)] == rows  # before the next patch showed
    assert boxes == places(page)  # the buttons never move
    skipped = shown(page)
    press(page, "s")
    assert shown(page) != skipped
    press(page, "z")
    assert shown(page) == skipped
    press(page, "z")
    assert shown(page) == rows[-1]
    assert rows[-1] not in standing(store.labels(run))
    press(page, "1")
    page.get_by_role("button", name=re.compile(f"^Change row {rows[0]}:")).click()
    expect(bench(page)).to_have_attribute("data-row", str(rows[0]), timeout=PATIENCE)
    press(page, "2")
    stand = standing(store.labels(run))
    assert len(stand) == 12
    assert stand[rows[0]].label == "of interest"
    assert_accessible(page, "Label")

    page.reload()
    shown(page)
    expect(page.get_by_role("button", name=re.compile("^Change row"))).to_have_count(12)

    other = browser.new_context()
    try:
        window = other.new_page()
        window.goto(f"{served.url}/clamp?run={run}")
        shown(window)
        window.get_by_label("Your name").fill("bo")
        window.get_by_label("Your name").press("Enter")
        ask_about(window, "what others labeled")
        expect(bench(window)).to_have_attribute(
            "data-row", re.compile("^(" + "|".join(map(str, rows)) + ")$"), timeout=PATIENCE
        )
        for _ in range(3):
            press(window, "1")
        said = "bo both labeled 3 rows and agree on"
        expect(come_to(window, "The labels")).to_contain_text(said, timeout=PATIENCE)
        expect(come_to(page, "The labels")).to_contain_text(said, timeout=PATIENCE)
    finally:
        other.close()
    store.close()


@pytest.mark.usefixtures("nothing_complains")
def test_a_session_goes_on_elsewhere_by_its_link_and_two_people_are_decided_between(
    page: Page, browser: Browser, served: Served
) -> None:
    run = begin(page, served.url)
    store = Store.open(f"sqlite:///{served.data / 'scant.db'}")
    page.get_by_label("Your name").fill("ada")
    page.get_by_label("Your name").press("Enter")
    rows = []
    for _ in range(4):
        rows.append(shown(page))
        press(page, "2")
    doubtful = shown(page)
    press(page, "u")
    expect(page.get_by_role("button", name=f"Look again at row {doubtful}:")).to_be_visible()

    elsewhere = browser.new_context()  # another machine, another visitor
    try:
        window = elsewhere.new_page()
        window.goto(f"{served.url}/clamp?run={run}")
        assert shown(window) not in {*rows, doubtful}
        expect(window.get_by_role("button", name=re.compile("^Change row"))).to_have_count(4)
        expect(bench(window).locator(".progress")).to_contain_text(
            "Labels given: 4 of a budget of 230"
        )
        window.get_by_label("Your name").fill("bo")
        window.get_by_label("Your name").press("Enter")
        press(window, "1")
        ask_about(window, "unsure rows")
        expect(bench(window)).to_have_attribute("data-row", str(doubtful), timeout=PATIENCE)
        press(window, "1")
        ask_about(window, "what others labeled")
        expect(bench(window)).to_have_attribute(
            "data-row", re.compile("^(" + "|".join(map(str, rows)) + ")$"), timeout=PATIENCE
        )
        disputed = shown(window)
        press(window, "1")
        given = store.labels(run)
        assert len({v.visitor for v in given}) == 2
        assert [v.labeler for v in given] == ["ada"] * 5 + ["bo"] * 3
        assert standing(given)[doubtful].label == "not of interest"
        assert_accessible(window, "Label")
    finally:
        elsewhere.close()

    page.get_by_role("button", name=re.compile(f"^Decide row {disputed}: ada says")).click()
    expect(page.locator(".why")).to_contain_text("Your decision overrides both labels")
    press(page, "2")
    expect(page.get_by_role("button", name=re.compile("decided: of interest$"))).to_be_visible()
    stand = standing(store.labels(run))
    assert (stand[disputed].label, stand[disputed].role) == ("of interest", ADJUDICATOR)
    press(page, "z")
    assert standing(store.labels(run))[disputed].label == "not of interest"
    store.close()


@pytest.mark.usefixtures("nothing_complains")
def test_labels_go_out_and_in_and_a_patch_is_labeled_from_its_picture(
    page: Page, served: Served
) -> None:
    run = begin(page, served.url)
    store = Store.open(f"sqlite:///{served.data / 'scant.db'}")
    for key in "1221":
        press(page, key)
    come_to(page, "The labels")
    page.get_by_role("combobox", name="Format of the labels").click()
    page.get_by_role("menuitem", name="COCO").click()
    with page.expect_download(timeout=PATIENCE) as held:
        button(page, "Download labels").click()
    assert held.value.suggested_filename == "labels.coco.json"
    content = json.loads(held.value.path().read_text())
    assert len(content["annotations"]) == 4
    kept = {v.item: v.label for v in standing(store.labels(run)).values()}

    for one in content["annotations"]:  # as if another program had given them to another person
        one["attributes"]["labeler"] = "robot"
    swapped = {c["id"]: c["name"] for c in content["categories"]}
    for category, name in zip(content["categories"], reversed(swapped.values())):
        category["name"] = name
    button(page, "Load labels").click()
    field = page.locator("input[type=file]")
    field.set_input_files(
        {
            "name": "robot.json",
            "mimeType": "application/json",
            "buffer": json.dumps(content).encode(),
        }
    )
    said = page.get_by_text("robot.json: 4 labels of 4 rows loaded")
    expect(said).to_be_visible(timeout=PATIENCE)
    stand = standing(store.labels(run))
    assert {row: v.label for row, v in stand.items()} == kept  # a person's answer counts more
    expect(page.get_by_role("button", name=re.compile("^Decide row"))).to_have_count(4)

    come_to(page, "A whole picture")
    page.get_by_role("combobox", name="Picture").click()
    page.get_by_role("menuitem", name="photo 3").click()
    expect(come_to(page, "A whole picture")).to_contain_text("Click any place", timeout=PATIENCE)
    picture = figure(page, "A whole picture").get_by_role("img").first
    _, _, width, height = settled(picture)
    picture.click(position={"x": width * 5 / 6, "y": height * 3 / 4})
    expect(bench(page)).to_have_attribute("data-row", "23", timeout=PATIENCE)  # 3 x 6 + 5
    press(page, "2")
    assert standing(store.labels(run))[23].label == "of interest"

    picture = figure(page, "A whole picture").get_by_role("img").first
    _, _, width, height = settled(picture)
    picture.click(position={"x": width / 2, "y": height / 2})  # where two patches meet
    expect(bench(page)).to_have_attribute("data-row", re.compile(r"\d{3,}"), timeout=PATIENCE)
    placed = shown(page)
    expect(page.get_by_text(re.compile(r"^Patch at \d+, \d+ of photo 3"))).to_be_visible()
    press(page, "2")
    assert standing(store.labels(run))[placed].label == "of interest"
    expect(come_to(page, "A whole picture")).to_contain_text("its 7 patches", timeout=PATIENCE)
    page.reload()
    shown(page)
    change = page.get_by_role("button", name=re.compile(r"^Change patch at \d+, \d+ of photo 3:"))
    expect(change).to_be_visible(timeout=PATIENCE)
    store.close()
