"""The page of the first Gaussian process: the same for everybody, in the visitor's theme."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest

from scant.studies import STUDIES, entry
from scant_dashboard.pages.first_gp.page import SCARCE, SLIDERS
from scant_dashboard.pages.gallery import PICTURES, cards
from scant_dashboard.template import assets
from tests.dashboard.standing import Standing, ask, standing


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Standing]:
    with standing(tmp_path_factory.mktemp("gp")) as server:
        yield server


def test_it_leads_to_every_study_and_is_the_first_card() -> None:
    assert SCARCE.keys() == set(STUDIES)
    links = re.findall(r"href='\./(\w+)\?present'", cards("?present").object)
    assert links == ["gp", *STUDIES]
    for page in PICTURES:
        assert (assets() / "cards" / f"{page}.svg").is_file()


def test_it_makes_no_session_and_loads_from_this_server_only(served: Standing) -> None:
    before = served.sessions()
    reply = ask(f"{served.url}/gp")
    assert served.sessions() == before
    page = reply.body.decode()
    for study in map(entry, STUDIES):
        assert f"<a href='./{study.name}'>{study.title}</a>" in page
    loaded = re.findall(r"<(?:script|link|img)[^>]* (?:src|href)='([^']*)'", page)
    assert "./assets/gp/page.js" in loaded
    assert not [address for address in loaded if ":" in address]
    assert "<script>" not in page
    assert not re.search(r"\son\w+=", page)
    modules = {"./assets/gp/page.js"}
    for path in (assets() / "gp").glob("*.js"):
        imported = re.findall(r"from '\./(\w+\.js)'|import '\./(\w+\.js)'", path.read_text())
        modules |= {f"./assets/gp/{first or second}" for first, second in imported}
    for module in modules:
        assert ask(f"{served.url}/{module[2:]}").status == 200, module


@pytest.mark.parametrize(
    ("query", "cookie", "classes"),
    [
        ("", "", ""),
        ("", "scant_theme=dark", "dark"),
        ("?theme=dark&present", "", "dark present"),
        ("?theme=light", "scant_theme=dark", ""),
    ],
)
def test_it_has_the_visitors_theme_and_the_present_mode(
    query: str, cookie: str, classes: str, served: Standing
) -> None:
    page = ask(f"{served.url}/gp{query}", Cookie=cookie).body.decode()
    assert f"<html lang='en' class='{classes}'>" in page
    assert ("href='./redshift?present'" in page) == ("present" in query)


@pytest.mark.parametrize(("query", "cookie"), [("?lang=de", ""), ("", "scant_language=de")])
def test_it_has_the_visitors_language(query: str, cookie: str, served: Standing) -> None:
    page = ask(f"{served.url}/gp{query}", Cookie=cookie).body.decode()
    for part in (
        "<html lang='de'",
        "<meta name='language' content='de'>",
        "<h1>Ein erster Gauß",
        "Längenskala <b>",
        "Klicken Sie in die Abbildung, um einen Punkt zu setzen.",
    ):
        assert part in page
    assert "<h1>A first Gaussian process" in ask(f"{served.url}/gp").body.decode()


def test_sliders_have_the_bounds_of_the_script() -> None:
    script = (assets() / "gp" / "state.js").read_text(encoding="utf-8")
    (bounds,) = re.findall(r"BOUNDS = \{(.*)\}", script)
    written = {name: (float(low), float(high)) for name, low, high in
               re.findall(r"(\w+): \[([\d.]+), ([\d.]+)\]", bounds)}  # fmt: skip
    assert written == {name: (low, high) for name, (_, low, high) in SLIDERS.items()}
