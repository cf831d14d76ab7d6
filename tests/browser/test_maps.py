"""A map on the aggregation page: four choropleths, selection, a polygon of one's own, files."""

from __future__ import annotations

import json
import re
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from playwright.sync_api import Browser, Locator, Page, expect

from tests.browser.accessible import assert_accessible
from tests.browser.visiting import PATIENCE, button, come_to, drop, figure, reading, settled, status

shapely = pytest.importorskip("shapely")
pytest.importorskip("pyproj")

SMALL = "n_inducing=30&max_steps=40&patience=0"
MAPS, ASK, CHECK = "Maps", "Ask for a polygon of your own", "Aggregate check"
TOLD = re.compile(r"\(deviation .*\) is the average over the .* km² of the polygon; 95% interval")


def cells() -> list[Any]:
    """Twenty-four cells of half a degree, one with a hole and one of two islands."""
    made = [
        shapely.box(x, y, x + 0.5, y + 0.5)
        for y in 34 + 0.5 * np.arange(4)
        for x in -80 + 0.5 * np.arange(6)
    ]
    made[8] = made[8] - shapely.Point(-78.75, 34.75).buffer(0.12)
    made[3] = made[3] - shapely.box(-78.3, 33.9, -78.2, 34.6)
    return made


def geojson(shapes: list[Any], **columns: list[Any]) -> bytes:
    features = [
        {
            "type": "Feature",
            "properties": {name: values[i] for name, values in columns.items()},
            "geometry": json.loads(shapely.to_geojson(shape)),
        }
        for i, shape in enumerate(shapes)
    ]
    return json.dumps({"type": "FeatureCollection", "features": features}).encode()


def deaths() -> bytes:
    rng, shapes = np.random.default_rng(0), cells()
    births = rng.integers(2000, 9000, len(shapes))
    middle = np.array([[s.centroid.x, s.centroid.y] for s in shapes])
    rate = 0.004 * np.exp(0.5 * np.sin(2 * middle[:, 0]) + 0.5 * np.cos(2.5 * middle[:, 1]))
    return geojson(
        shapes,
        name=[f"Cell {i + 1}" for i in range(len(shapes))],
        y=rng.poisson(births * rate).tolist(),
        exposure=births.tolist(),
    )


@pytest.fixture(scope="module")
def trained(browser: Browser, app_url: str) -> Iterator[Page]:
    """A page whose visitor has uploaded the map and trained on it."""
    page = browser.new_context(viewport={"width": 1280, "height": 1100}).new_page()
    complaints: list[str] = []
    page.on("console", lambda m: complaints.append(m.text) if m.type == "error" else None)
    page.on("pageerror", lambda error: complaints.append(str(error)))
    page.goto(f"{app_url}/aggregation?{SMALL}", timeout=PATIENCE)
    page.get_by_role("heading", level=1).wait_for(timeout=PATIENCE)
    drop(page, "deaths.geojson", deaths())
    button(page, "Use this table").click(timeout=PATIENCE)
    expect(page.get_by_text("deaths.geojson: 24 rows")).to_be_visible(timeout=PATIENCE)
    button(page, "Train").click()
    ended = re.compile("^converged|^finished|^limit reached")
    expect(status(page)).to_contain_text(ended, timeout=4 * PATIENCE)  # with what is compared
    yield page
    page.context.close()
    assert complaints == []


def built(page: Page, title: str) -> Locator:
    """A figure, once it is built."""
    come_to(page, title)
    made = figure(page, title)
    made.get_by_role("img").first.wait_for(timeout=PATIENCE)
    return made


def corners(plot: Locator, *parts: tuple[float, float]) -> list[tuple[float, float]]:
    """Places in a figure, given in parts of its width and height."""
    left, top, width, height = settled(plot)
    return [(left + a * width, top + b * height) for a, b in parts]


def test_four_maps_are_linked_and_read_out(trained: Page) -> None:
    page = trained
    maps = built(page, MAPS)
    expect(maps.get_by_role("img")).to_have_count(4)
    said = reading(page, MAPS)
    expect(said).to_contain_text("24 polygons. Posterior means are between", timeout=PATIENCE)
    expect(said).to_contain_text("Held-out polygons are striped")
    expect(maps.get_by_role("img").first).to_have_attribute(
        "aria-label", re.compile(r"Maps\. 24 polygons"), timeout=PATIENCE
    )
    expect(page.get_by_role("heading", name="Posterior mean and deviation")).to_be_hidden()
    ((x, y),) = corners(maps.get_by_role("img").nth(1), (0.5, 0.3))
    page.mouse.click(x, y)
    told = maps.get_by_role("note")
    expect(told).to_contain_text(
        re.compile(r"Cell \d+: (observed|held-out value) .* 95% interval"), timeout=PATIENCE
    )
    name = told.inner_text().split(":")[0]
    expect(maps.get_by_role("combobox", name="Polygon")).to_contain_text(name, timeout=PATIENCE)
    marked = page.evaluate(
        """() => { for (const doc of Bokeh.documents) for (const m of doc._all_models.values())
        if (m.type == 'MultiPolygons') for (const r of doc._all_models.values())
          if (r.type == 'GlyphRenderer' && r.glyph === m && r.data_source.selected.indices.length)
            return [...doc._all_models.values()].filter((o) => o.type == 'GlyphRenderer'
              && o.data_source === r.data_source).length
        return 0 }"""
    )
    assert marked == 4  # all maps draw from the source in which the polygon is selected
    before = told.inner_text()
    threshold = maps.get_by_label("Threshold of exceedance")
    threshold.fill("0.001")
    threshold.press("Enter")
    expect(told).to_contain_text("more than 0.001 with probability 1.00", timeout=PATIENCE)
    assert told.inner_text() != before
    expect(said).to_contain_text("probability of more than 0.001 is over 95%", timeout=PATIENCE)


def test_a_polygon_is_chosen_by_its_name(trained: Page) -> None:
    maps = built(trained, MAPS)
    corners(maps.get_by_role("img").first)
    maps.get_by_role("combobox", name="Polygon").click(timeout=PATIENCE)
    option = trained.get_by_role("menuitem", name="Cell 9", exact=True)
    option.focus(timeout=PATIENCE)
    option.press("Enter")
    expect(maps.get_by_role("note")).to_contain_text("Cell 9:", timeout=PATIENCE)


def test_a_drawn_and_a_typed_polygon_are_answered(trained: Page) -> None:
    page = trained
    asked = built(page, ASK)
    drawn = asked.get_by_role("img", name="Draw a polygon")
    places = corners(drawn, (0.42, 0.35), (0.58, 0.35), (0.6, 0.6), (0.45, 0.6))
    for place in places[:-1]:
        page.mouse.click(*place)
        page.wait_for_timeout(400)  # Bokeh tells a double click by time alone
    page.mouse.dblclick(*places[-1])
    told = asked.get_by_role("note")
    expect(told).to_contain_text(TOLD, timeout=PATIENCE)
    first = told.inner_text()
    typed = asked.get_by_label("Polygon: west, south, east, north")
    typed.fill("-79, 34.5, -78, 35.5")
    typed.press("Enter")
    expect(told).not_to_have_text(first, timeout=PATIENCE)
    expect(told).to_contain_text(TOLD)
    second = told.inner_text()
    typed.fill("POLYGON ((-79 34.5, -78 34.5, -78.5 35.5, -79 34.5))")
    typed.press("Enter")
    expect(told).not_to_have_text(second, timeout=PATIENCE)
    expect(reading(page, ASK)).to_contain_text("95% interval", timeout=PATIENCE)
    typed.fill("-79, 34.5")
    typed.press("Enter")
    alert = page.get_by_role("alert").filter(has_text="2 numbers where a box needs four")
    expect(alert).to_be_visible(timeout=PATIENCE)


def test_the_aggregate_check_is_of_the_map(trained: Page) -> None:
    expect(come_to(trained, CHECK)).to_contain_text("19 rows", timeout=PATIENCE)


def test_targets_are_predicted_and_add_up_to_the_totals(trained: Page, tmp_path: Path) -> None:
    page = trained
    halves, exposure = [], []
    for shape, births in zip(cells(), json.loads(deaths())["features"]):
        west, south, east, north = shape.bounds
        middle = (south + north) / 2
        for low, high in ((south, middle), (middle, north)):
            halves.append(shape & shapely.box(west, low, east, high))
            exposure.append(births["properties"]["exposure"] / 2)
    come_to(page, "Keep")
    button(page, "Predict a table").click(timeout=PATIENCE)
    page.locator("input[type=file]").last.set_input_files(
        {"name": "halves.geojson", "mimeType": "application/geo+json",
         "buffer": geojson(halves, exposure=exposure)}
    )  # fmt: skip
    expect(page.get_by_text("halves.geojson: 48 rows predicted")).to_be_visible(timeout=PATIENCE)
    expect(page.get_by_text("38 rows make up 19 observed polygons")).to_be_visible()
    page.locator("summary", has_text="Predicted parts against observed totals").click()
    expect(page.get_by_role("columnheader", name="in its 95% interval")).to_be_visible()
    with page.expect_download(timeout=PATIENCE) as download:
        button(page, "Download the predictions").click()
    told = zipfile.ZipFile(download.value.path())
    assert {"predictions.geojson", "predictions.totals.csv", "columns.md"} <= set(told.namelist())
    features = json.loads(told.read("predictions.geojson"))["features"]
    assert len(features) == 48
    assert {"mean", "std", "lo95", "hi95", "exceedance", "exposure"} <= set(
        features[0]["properties"]
    )
    shapes = [shapely.from_geojson(json.dumps(f["geometry"])) for f in features]
    assert all(a.equals_exact(b, 1e-6, normalize=True) for a, b in zip(shapes, halves))


def test_the_run_s_predictions_come_as_maps(trained: Page) -> None:
    with trained.expect_download(timeout=PATIENCE) as download:
        button(trained, "Predictions").click(timeout=PATIENCE)
    told = zipfile.ZipFile(download.value.path())
    features = json.loads(told.read("predictions.geojson"))["features"]
    assert len(features) == 24
    assert features[3]["geometry"]["type"] == "MultiPolygon"
    assert {"exceedance", "role"} <= set(features[0]["properties"])


def test_a_map_is_saved_as_svg(trained: Page) -> None:
    maps = built(trained, MAPS)
    plot = maps.get_by_role("img").first
    plot.scroll_into_view_if_needed(timeout=PATIENCE)
    ((x, y),) = corners(plot, (0.5, 0.4))
    trained.mouse.move(x, y)
    with trained.expect_download(timeout=PATIENCE) as download:
        plot.get_by_title("Save as SVG").click(timeout=PATIENCE)
    saved = Path(download.value.path()).read_text()
    assert saved.startswith("<svg") or "<svg" in saved[:200]
    assert saved.count("<path") > 24


def test_axe_finds_nothing_against_the_maps(trained: Page) -> None:
    assert_accessible(trained, MAPS)


def test_it_fits_a_phone(trained: Page, browser: Browser) -> None:
    trained.set_viewport_size({"width": 390, "height": 844})
    maps = built(trained, MAPS)
    wide = trained.evaluate("document.documentElement.scrollWidth")
    assert wide <= 390
    for plot in maps.get_by_role("img").all():
        box = plot.bounding_box()
        assert box is not None
        assert 250 < box["width"] <= 390
