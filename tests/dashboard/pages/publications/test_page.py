"""Every table and figure stands on the page, with its status and the reason."""

from __future__ import annotations

import re
from html import escape, unescape

import numpy as np
import pandas as pd
import pytest

from scant.reproduce.claims import every_claim
from scant.reproduce.figure_files import read
from scant.reproduce.figures import (
    GRIDS,
    SCATTER,
    TABLE,
    definitions,
    definitions_of,
    drawn_items,
    figure_rows,
)
from scant.reproduce.items import Item, Status, items, publications
from scant.studies import STUDIES, entry
from scant.studies.figure_data import entries
from scant.studies.published import settings
from scant_dashboard.page_parts.conclusions import place
from scant_dashboard.pages.publications import figure, grids, panels
from scant_dashboard.pages.publications.figure import PublishedFigure
from scant_dashboard.pages.publications.page import publications_page
from scant_dashboard.plots.coregionalization_grid import HintonGrid
from scant_dashboard.plots.hinton import HintonPlot
from scant_dashboard.plots.replicas import ReplicaGrid
from scant_dashboard.static_page.figure_models import figure_model
from scant_dashboard.static_page.publications import Publications
from scant_dashboard.translate import speaking


@pytest.fixture(scope="module")
def markup() -> str:
    """The page's HTML."""
    return str(publications_page()[0].object)


def words(markup: str) -> str:
    """Return the words of a piece of HTML."""
    return re.sub(r"\s+", " ", unescape(re.sub("<[^>]+>", " ", markup)))


def test_every_table_and_figure_has_its_status_and_a_reason(markup: str) -> None:
    for publication in publications():
        start = markup.index(f"<h2>{escape(publication.name)}</h2>")
        part = markup[start : start + 1 + markup[start + 1 :].find("<h2>")]
        own = [one for one in items() if one.publication == publication.key]
        assert part.count("<div class='item'>") == len(own)
        for item in own:
            head = f"<b>{item.name}</b> <span class='quiet'>{item.section}</span>"
            row = part[part.index(head) :]
            row = row[: row.find("<div class='item'>")]
            (status,) = re.findall(r"<span class='status [^']*'>(.*?)</span>", row)
            assert status == item.status, item.name
            assert escape(item.title) in row
            assert escape(item.reason) in row
            if item.claims and item.status != Status.NOT_YET:
                hold = sum(claim.holds is True for claim in item.claims)
                assert f"{hold} of {len(item.claims)} conclusions hold." in row


def test_what_is_not_confirmed_is_said_with_our_scores_and_their_data(markup: str) -> None:
    text = words(markup)
    for verdict in (False, None):
        claims = [c for c in every_claim() if c.holds is verdict and c.measured]
        assert claims
        for claim in claims:
            own = text[text.index(f"{claim.text} {place(claim.where)}") :]
            one = claim.with_verdict(verdict)[0]
            assert one.ours is not None
            first, second = (f"{float(f'{score.mean:.3g}'):,.15g}" for score in one.ours)
            assert re.match(rf".{{0,600}}{re.escape(one.better)} {first}.*?{second}", own)
            assert own.index(f"Data: {one.data}") < 1500


def test_conclusions_on_other_data_are_not_held_against_the_publication(markup: str) -> None:
    parts = re.findall(r"<h3>Did not reproduce</h3><ul class='conclusions'>(.*?)</ul>", markup)
    assert parts
    for claim in every_claim():
        if claim.on_other_data:
            assert not any(escape(claim.text) in part for part in parts)


def test_settings_as_published_stand_beside_the_defaults(markup: str) -> None:
    for study in map(entry, STUDIES):
        heading = f"<summary>{escape(study.title)}: {len(settings(study.name))} settings</summary>"
        part = markup[markup.index(heading) :]
        part = part[: part.index("</details>")]
        for name, stated in settings(study.name).items():
            setting = study.settings.param[name]
            row = part[part.index(f">{escape(str(setting.label))}</th>") :]
            cells = re.findall(r"<td[^>]*>(.*?)</td>", row)[:3]
            assert cells[2] == escape(stated.where)
            for cell, value in zip(cells, (stated.value, setting.default)):
                if isinstance(value, int | float) and not isinstance(value, bool):
                    assert float(cell.replace(",", "")) == value
                elif isinstance(value, str):
                    assert unescape(cell) == (value or "–")


def test_the_page_is_german_where_that_is_spoken() -> None:
    with speaking("de"):
        german = str(publications_page()[0].object)
    for english in (*Status, "Did not reproduce", "Tables and figures"):
        assert f">{english}<" not in german
    for item in items():
        if len(item.title.split()) > 3:
            assert f">{item.title}<" not in german, item.title


def test_figures_have_a_place_for_each_of_their_panels(markup: str) -> None:
    for name, item in drawn_items().items():
        (part,) = re.findall(f"data-figures='{re.escape(name)}'>(.*?)<h4>", markup)
        alts = re.findall("aria-label='(.*?)'", part)
        if definitions_of(item)[0].kind in GRIDS:  # one figure for all
            assert [unescape(alt) for alt in alts] == [figure.plot_of(item).alt]
            continue
        rows = figure_rows(item)
        assert len(alts) == rows["panel"].nunique()
        for alt, (_, panel) in zip(alts, rows.groupby("panel"), strict=True):
            assert unescape(alt).startswith(f"{item.title}: ")
            assert panel["metric"].iloc[0] in unescape(alt)
            has_table = definitions_of(item)[0].kind != SCATTER
            assert unescape(alt).endswith(". The table below has the numbers.") == has_table
        legend = markup[: markup.index(part)].rpartition("<ul class='legend'>")[2]
        if rows["x"].notna().any():
            for series in rows["series"].unique():
                assert escape(series) in legend
        assert bool(re.search("[○◇]", legend)) == rows["printed"].notna().any()
    assert drawn_items()


@pytest.mark.parametrize(
    ("name", "kind"), [("A17 Figure 6.19", "LinearScale"), ("A17 Figure 6.11", "LogScale")]
)
def test_only_uneven_numbers_are_on_a_log_scale(name: str, kind: str) -> None:
    scales = {type(plot.x_scale).__name__ for plot in PublishedFigure(drawn_items()[name]).figures}
    assert scales == {kind}


def test_curves_of_replicas_are_those_stored_with_training_and_held_out_points() -> None:
    rows = read("M23 Figure 5.16")
    points = rows[rows["y"].notna()]
    cells = rows[["output", "replica"]].drop_duplicates()
    with speaking("de"):
        plot = figure.plot_of(drawn_items()["M23 Figure 5.16"])
    assert isinstance(plot, ReplicaGrid)
    assert "CustomJS" not in figure_model(plot.figures[0]).figure  # see panels.py
    assert sum(map(len, plot.replicas)) == len(cells)
    assert len(plot.held.data["u"]) == points["held_out"].sum() > 0
    assert len(plot.points.data["u"]) == (points["held_out"] == 0).sum() > 0
    curves = rows["mean"].notna().sum() + 2 * len(cells)  # an end on each side of a cell
    assert len(plot.curves.data["mean"]) == curves
    names = plot.figures[0].yaxis[1].major_label_overrides
    assert list(names.values()) == list(dict.fromkeys(rows["output"]))


def test_matrices_are_drawn_from_stored_entries(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two matrices of three classes of two outputs, and the matrix of these outputs."""
    B = np.array([[[4.0, -1.0, 0.5], [-1.0, 1.0, 0.0], [0.5, 0.0, 2.0]], -np.eye(3)])
    rows = entries({"B1": B[0], "B2": B[1]}, ["1", "2", "1"], ["a", "a", "b"])
    monkeypatch.setattr(grids, "read", lambda name: rows)
    plot = grids.grid(items_by_name("M23", "Figure 3.6"))
    assert isinstance(plot, HintonGrid)
    assert np.array(plot.cells.data["value"]).reshape(2, 3, 3) == pytest.approx(B)
    assert list(plot.cells.data["i"][:4]) == ["a 1", "a 1", "a 1", "a 2"]
    assert "CustomJS" not in figure_model(plot.figures[0]).figure

    results = pd.DataFrame(
        [("B", "a and a", 3.0), ("B", "a and b", 1.0), ("B", "b and b", 2.0)],
        columns=["experiment", "method", "ours"],
    )
    monkeypatch.setattr(grids, "results_of", lambda item: results)
    plot = grids.grid(items_by_name("M23", "Figure 3.7"))
    assert isinstance(plot, HintonPlot)
    assert plot.names == ["a", "b"]
    assert list(plot.squares.data["value"]) == [3, 1, 1, 2]


def items_by_name(publication: str, name: str) -> Item:
    (item,) = (one for one in items() if (one.publication, one.name) == (publication, name))
    return item


def test_figures_that_are_tables_say_why(markup: str) -> None:
    with_rows = {(item.publication, item.name) for item in items() if item.experiments}
    tables = [
        one
        for one in definitions()
        if one.kind == TABLE and (one.publication, one.item) in with_rows
    ]
    assert tables
    for one in tables:
        assert f"Not drawn as published: {escape(one.reason)}." in markup


def test_axes_say_which_scores_are_better() -> None:
    words = {"RMSE": "RMSE (lower is better)", "deviation of the model": "deviation of the model"}
    for metric, label in words.items():
        assert panels._scored(pd.DataFrame({"metric": [metric]})) == label


@pytest.mark.parametrize("name", ["A17 Figure 6.11", "KH15 Figure 3"])
def test_models_of_a_figure_hold_our_numbers_and_the_printed_ones(name: str) -> None:
    item, rows = drawn_items()[name], figure_rows(drawn_items()[name])
    figure = PublishedFigure(item)
    assert len(figure.figures) == rows["panel"].nunique()
    for plot, (_, panel) in zip(figure.figures, rows.groupby("panel"), strict=True):
        sources = {r.data_source.id: r.data_source.data for r in plot.renderers}
        drawn = [data for data in sources.values() if "tip" in data]
        values = sorted(float(v) for data in drawn for v in data["value"])
        both = pd.concat([panel["value"], panel["printed"]]).dropna()
        assert values == sorted(both)
        value_axis = plot.yaxis[0] if panel["x"].notna().any() else plot.xaxis[0]
        limits = plot.y_range if panel["x"].notna().any() else plot.x_range
        for data in drawn:
            assert all(limits.start <= v <= limits.end for v in (*data["low"], *data["high"]))
        assert len(value_axis.ticker.ticks) >= 3
        assert all(limits.start <= tick <= limits.end for tick in value_axis.ticker.ticks)


def test_points_of_a_scatter_plot_are_colored_by_their_variance() -> None:
    item = drawn_items()["A17 Figure 6.18"]
    rows, figures = figure_rows(item), PublishedFigure(item).figures
    assert len(figures) == rows["panel"].nunique() == 8  # four numbers of bands, two methods
    for plot, (_, panel) in zip(figures, rows.groupby("panel"), strict=True):
        [data] = [r.data_source.data for r in plot.renderers if "tip" in r.data_source.data]
        assert list(data["at"]) == list(panel["x"])
        assert list(data["value"]) == list(panel["value"])
        shade = [panels.DEVIATION.index(color) for color in data["color"]]
        by_variance = np.argsort(panel["spread"], kind="stable")
        assert (np.diff(np.take(shade, by_variance)) >= 0).all()
        assert {min(shade), max(shade)} == {0, len(panels.DEVIATION) - 1}
        assert plot.title.text == panel["experiment"].iloc[0]
        assert (plot.xaxis[0].axis_label, plot.yaxis[0].axis_label) == (
            "true redshift",
            "predicted redshift",
        )


def test_german_figures_have_german_numbers_and_need_no_formatter_in_the_browser() -> None:
    sent = Publications.figures(None, "A17 Figure 6.11", False, "de")  # type: ignore[arg-type]
    assert sent is not None
    assert '"0,06"' in sent
    assert "Basisfunktionen m" in sent
    assert "CustomJS" not in sent
