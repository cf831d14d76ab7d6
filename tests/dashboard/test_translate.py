"""The catalogs have every sentence of the code, translated, with the same values in it."""

from __future__ import annotations

import importlib.util
import re
from pathlib import Path
from string import Formatter

import pytest
from babel.messages.pofile import read_po

from scant_dashboard.translate import (
    ENGLISH,
    LANGUAGES,
    as_number,
    chosen,
    enumerated,
    moment,
    ntr,
    tr,
)
from tests.paths import ROOT

spec = importlib.util.spec_from_file_location("catalog", ROOT / "scripts" / "catalog.py")
assert spec is not None
assert spec.loader is not None
catalog = importlib.util.module_from_spec(spec)
spec.loader.exec_module(catalog)
PROSE = sorted(
    file
    for name in ("story", "equations")
    for file in (catalog.DASHBOARD / "pages").glob(f"*/{name}.md")
)
OTHERS = [language for language in LANGUAGES if language != ENGLISH]


@pytest.mark.parametrize("language", OTHERS)
def test_a_catalog_has_the_sentences_of_the_code(language: str) -> None:
    file = catalog.file_of(language)
    stored = read_po(file.open("rb"), locale=language)
    ids = {message.id for message in stored if message.id}
    assert ids == {m.id for m in catalog.sentences() if m.id}, "run scripts/catalog.py"


@pytest.mark.parametrize("language", OTHERS)
def test_every_sentence_is_translated_with_its_values(language: str) -> None:
    for message in catalog.updated(language):
        if not message.id:
            continue
        english = message.id if isinstance(message.id, tuple) else (message.id,)
        own = message.string if isinstance(message.string, tuple) else (message.string,)
        assert all(own), f"{message.id!r} has no translation"
        for sentence in own:
            assert _fields(sentence) == _fields(english[-1]), sentence


@pytest.mark.parametrize("language", OTHERS)
@pytest.mark.parametrize("file", PROSE, ids=lambda file: f"{file.parent.name}/{file.name}")
def test_prose_is_translated_with_its_paragraphs_formulas_and_links(
    file: Path, language: str
) -> None:
    english = file.read_text(encoding="utf-8")
    own = file.with_suffix(f".{language}.md").read_text(encoding="utf-8")
    assert own != english
    assert own.count("\n\n") == english.count("\n\n")
    assert _formulas(own) == _formulas(english)
    assert re.findall(r"\]\((.*?)\)", own) == re.findall(r"\]\((.*?)\)", english)


def _formulas(prose: str) -> list[str]:
    """Formulas in their order, without the words in them; letters between asterisks, too."""
    found = re.findall(r"\$\$.+?\$\$|\$.+?\$|(?<!\*)\*.\*(?!\*)", prose, re.DOTALL)
    return [re.sub(r"\\text\{.*?\}", "", " ".join(formula.split())) for formula in found]


def _fields(sentence: str) -> list[tuple[str, str | None]]:
    """Names and formats of the values in a sentence."""
    return sorted((name, spec) for _, name, spec, _ in Formatter().parse(sentence) if name)


def test_a_session_speaks_its_language_and_writes_its_numbers(german: None) -> None:
    assert tr("Train") == "Trainieren"
    assert tr("{step:,} of {total:,}", step=1234, total=20000) == "1.234 von 20.000"
    assert tr("{n:.1f} s", n=2.5) == "2,5 s"
    assert ntr("{device}, {n} thread", "{device}, {n} threads", 1, device="cpu") == "cpu, 1 Thread"
    assert ntr("{device}, {n} thread", "{device}, {n} threads", 2, device="cpu") == "cpu, 2 Threads"
    assert tr("{state} (recorded run)", state="v1.5") == "v1.5 (aufgezeichneter Lauf)"
    assert tr("no catalog has this: {x}", x=0.5) == "no catalog has this: 0,5"
    assert tr("") == ""
    assert enumerated(["a", "b", "c"]) == "a, b und c"
    assert as_number("-1,234.5") == "-1.234,5"
    assert tr("{share:.0%}", share=0.5) == "50\N{NO-BREAK SPACE}%"
    assert moment(0.0).split(",")[0] in ("1. Jan. 1970", "31. Dez. 1969")


def test_other_sessions_stay_english() -> None:
    assert tr("{step:,} of {total:,}", step=1234, total=20000) == "1,234 of 20,000"
    assert as_number("-1,234.5") == "-1,234.5"
    assert [enumerated(names) for names in ([], ["a"], ["a", "b"])] == ["", "a", "a and b"]


def test_an_address_chooses_the_language_else_the_cookie() -> None:
    assert chosen({"lang": "de"}, "en") == "de"
    assert chosen({}, "de") == "de"
    assert chosen({"lang": "xx"}, "<b>") == ENGLISH
