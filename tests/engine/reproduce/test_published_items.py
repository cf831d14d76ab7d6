"""The lists of `data/published`: every table, figure and claim of the publications, and ours."""

from __future__ import annotations

import re
from functools import cache
from io import StringIO
from pathlib import Path

import pandas as pd

from scant.package_data import package_file
from scant.reproduce.tables import STAND_IN, read
from scant.studies import STUDIES
from scant.studies.published import scores

PAGES = Path(__file__).parents[3] / "dashboard" / "scant_dashboard" / "pages"
# Tables and figures of each chapter (0: the whole paper is numbered through), counted by hand in
# the publications' lists of tables and of figures, or in the papers themselves.
TABLES: dict[str, dict[int, int]] = {
    "A17": {4: 2, 5: 4, 6: 8},
    "Y21": {2: 1, 3: 1, 4: 1},
    "YSA19": {},
    "KH15": {0: 2},
    "M23": {3: 2, 4: 2, 5: 1},
}
FIGURES: dict[str, dict[int, int]] = {
    "A17": {2: 2, 3: 4, 4: 3, 5: 8, 6: 19},
    "Y21": {1: 4, 2: 6, 3: 6, 4: 6, 5: 6},
    "YSA19": {0: 4},
    "KH15": {0: 4},
    "M23": {1: 1, 2: 2, 3: 7, 4: 7, 5: 17},
}
REASONS = ("illustration, no result: ", "not possible here: ", "shown live: ", "not yet: ")
RELATIONS = {
    "better",  # of two methods
    "not worse",
    "equal",
    "times",  # `better` is better than `worse` by `factor` or more
    "about",  # by about `factor`
}


def table(name: str) -> pd.DataFrame:
    text = package_file("published", name).read_text(encoding="utf-8")
    return pd.read_csv(StringIO(text), dtype=str, keep_default_na=False)


@cache
def results(study: str) -> pd.DataFrame:
    rows = read(study)
    assert rows is not None
    return rows


def not_run_yet(study: str) -> set[str]:
    """Experiments that have printed scores and no results so far."""
    known = scores()
    printed = set(known["experiment"][known["study"] == study])
    return printed - set(results(study)["experiment"])


def experiments(item: pd.Series) -> list[str]:
    return item["experiments"].split(" | ") if item["experiments"] else []


def test_every_table_and_figure_of_the_publications_is_listed_once() -> None:
    numbers = {
        (publication, f"{kind} {chapter}.{n}" if chapter else f"{kind} {n}")
        for kind, counts in (("Table", TABLES), ("Figure", FIGURES))
        for publication, chapters in counts.items()
        for chapter, count in chapters.items()
        for n in range(1, count + 1)
    }
    items = table("items.csv")
    pairs = list(zip(items["publication"], items["item"]))
    assert len(pairs) == len(set(pairs))
    assert set(pairs) == numbers


def test_every_item_has_results_or_says_why_not() -> None:
    for _, item in table("items.csv").iterrows():
        what = f"{item['publication']}, {item['item']}"
        assert item["section"], what
        assert 1 <= len(item["title"].split()) <= 12, what
        assert item["study"] in ("", *STUDIES), what
        if names := experiments(item):
            runs = {*results(item["study"])["experiment"], *not_run_yet(item["study"])}
            assert set(names) <= runs, what
            assert not item["reason"].startswith(REASONS), what
            assert item["alike"] in ("", "yes"), what
            assert item["alike"] or item["reason"], what  # how ours differs
        else:
            assert item["reason"].startswith(REASONS), what
            assert not item["alike"], what
        # Only illustrations, which nothing of ours can show, are of no study.
        assert bool(item["study"]) != item["reason"].startswith(REASONS[0]), what


def test_results_on_other_data_are_not_called_alike() -> None:
    for _, item in table("items.csv").iterrows():
        if item["alike"]:
            rows = results(item["study"])
            rows = rows[rows["experiment"].isin(experiments(item))]
            assert not rows["data"].str.contains(STAND_IN).any(), item["item"]


def test_figures_named_as_shown_live_are_on_the_page() -> None:
    items = table("items.csv")
    named = 0
    for _, item in items[items["study"] != ""].iterrows():
        titles = re.findall("“(.+?)”", item["reason"])
        assert titles or not item["reason"].startswith("shown live: "), item["item"]
        code = "".join(file.read_text("utf-8") for file in (PAGES / item["study"]).glob("*.py"))
        for title in titles:
            assert f'later("{title}")' in code, (item["item"], title)
            named += 1
    assert named


def test_claims_name_rows_that_exist() -> None:
    claims = table("claims.csv")
    assert not claims.duplicated(
        ["study", "experiment", "metric", "relation", "better", "worse"]
    ).any()
    for _, claim in claims.iterrows():
        what = tuple(claim)
        assert claim["publication"] in TABLES, what
        assert claim["where"], what
        assert claim["claim"].endswith("."), what
        assert claim["relation"] in RELATIONS, what
        assert (claim["relation"] in ("times", "about")) == bool(claim["factor"]), what
        assert not claim["factor"] or float(claim["factor"]) > 1, what
        assert claim["better"] != claim["worse"], what
        if claim["experiment"] in not_run_yet(claim["study"]):
            continue
        rows = results(claim["study"])
        rows = rows[
            (rows["experiment"] == claim["experiment"]) & (rows["metric"] == claim["metric"])
        ]
        methods = {claim["better"], claim["worse"]}
        assert methods <= set(rows["method"]), what
        # Once both have been run as published, the claim is about those rows.
        measured = set(rows["method"][rows["ours"].notna()])
        assert not {f"{method}, as published" for method in methods} <= measured, what


def test_a_claim_is_of_one_publication_study_and_place() -> None:
    """The page shows the rows of a claim together: they share its sentence."""
    claims = table("claims.csv")
    places = claims.groupby("claim")[["publication", "study", "where"]].nunique()
    assert (places == 1).all(axis=None)


def test_claims_are_about_experiments_of_a_table_or_figure() -> None:
    items, claims = table("items.csv"), table("claims.csv")
    shown = {(item["study"], e) for _, item in items.iterrows() for e in experiments(item)}
    assert {study for study, _ in shown} == set(STUDIES)
    assert set(zip(claims["study"], claims["experiment"])) <= shown
