"""Finished English sentences of the engine are translated by the templates of its f-strings."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import param
import pytest

from scant.errors import BadInput
from scant.store import Store
from scant.studies import STUDIES, entry
from scant.tables.read import inspect_table
from scant_dashboard.controls.settings_form import SettingsForm
from scant_dashboard.engine_text import COMMON, LONGEST, Template, translated
from scant_dashboard.translate import speaking
from tests.dashboard.test_translate import catalog

ROWS = [f"{k},{k % 7},{'x5' if k % 10 == 0 else k},4,0.{k}" for k in range(10, 90)]
TABLES = {
    "cut.csv": "u,g,r,i,z\n1,2,3,4,0.1\n2,3",
    "wrong.csv": "\n".join(["u,g,r,i,z", *ROWS]),
    "semicolons.csv": "u;g;z\n" + "\n".join(f"{k},5;{k % 7};0,{k}" for k in range(10, 90)),
    "paper.pdf": "%PDF-1.4",
    "empty.csv": "",
}


def test_a_template_is_found_in_a_sentence() -> None:
    template = Template.parse("{file}, row {row:,}: {got}; {{}}.", "")
    assert template.match("a, row b, row 1,234: x; y; {}.") is None, "no number after the first"
    assert template.match("a.csv, row 1,234: x; y; {}.") == ["a.csv", "1,234", "x; y"]
    assert template.match("a.csv, row 1,234: x; {}") is None
    assert Template.parse("ab{x}ba", "").match("aba") is None, "the ends overlap"


def test_templates_are_collected_from_expressions() -> None:
    code = '''
WHAT = "which is no number"
def f(rows, name):
    """A docstring is no sentence."""
    log.info("nor is this message of the log")
    raise BadInput(
        f"{name!r}: {len(rows):,} row{'s are' if len(rows) > 1 else ' is'} bad, {WHAT}; mend "
        + f"{'them' if len(rows) > 1 else 'it'}."
    )
'''
    assert list(dict.fromkeys(catalog.templates(ast.parse(code)))) == [
        "which is no number",
        "{name}: {rows:,} rows are bad, which is no number; mend them.",
        "{name}: {rows:,} row is bad, which is no number; mend it.",
    ]


def test_english_stays_as_it_is() -> None:
    for text in ("", "Not converged after 1,000 steps; the best step is kept.", "x"):
        assert translated(text) == text


@pytest.mark.usefixtures("german")
def test_phrases_within_sentences_are_translated_and_the_visitors_words_are_not() -> None:
    assert translated(
        "step.csv, column 'all', row 2: got 'x', which is not a number (and 3 more cells of this "
        "column); write finite numbers, without units or separators. (And 1,200 more problems.)"
    ) == (
        "step.csv, Spalte 'all', Zeile 2: gelesen wurde 'x', was keine Zahl ist (und 3 weitere "
        "Zellen dieser Spalte); schreiben Sie endliche Zahlen, ohne Einheiten und Trennzeichen. "
        "(Und 1.200 weitere Probleme.)"
    )
    assert translated("step.csv: not used: all, none.") == "step.csv: nicht verwendet: all, none."
    assert translated("best.csv: its columns are separated by semicolons.") == (
        "best.csv: Die Spalten sind getrennt durch Semikolons."
    )
    unknown = "This is no sentence of the engine, and its rows may be kept; the rest is not."
    assert translated(unknown) == unknown
    german = "Es sind 3.000, 4.000 (5.000)"
    assert translated(german) == german
    long = "a.csv: its columns are separated by " + "x" * LONGEST + "."
    assert translated(long) == long


@pytest.mark.usefixtures("german")
@pytest.mark.parametrize("study", STUDIES)
@pytest.mark.parametrize("name", TABLES)
def test_messages_on_tables_are_translated(name: str, study: str) -> None:
    try:
        table = inspect_table(TABLES[name].encode(), entry(study).table, name=name)
        questions = [question.text for question in table.questions]
        messages = [*table.problems, *table.warnings, *questions, table.refusal]
    except BadInput as error:
        messages = [str(error)]
    for message in filter(None, messages):
        assert english(translated(message)) <= english(message) / 4, translated(message)


@pytest.mark.usefixtures("german")
@pytest.mark.parametrize("study", STUDIES)
def test_recorded_runs_are_told_in_german(study: str, store: Store) -> None:
    run = f"demo-{study}"
    report = store.report(run)
    assert report is not None
    assert report.verdict is not None
    messages = (*store.notes(run), *report.notes, *report.limits, *report.verdict.sentences())
    for message in (store.run(run).reason, *messages):
        assert english(translated(message)) <= english(message) / 4, translated(message)


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Store]:
    folder: Path = tmp_path_factory.mktemp("store")
    opened = Store.open(f"sqlite:///{folder}/runs.db")
    opened.import_shipped()
    yield opened
    opened.close()


def english(text: str) -> int:
    """Common English words in a text, without those that German has, too."""
    return len([word for word in COMMON.findall(text) if word not in ("an", "in", "was")])


@pytest.mark.usefixtures("german")
@pytest.mark.parametrize("study", STUDIES)
def test_a_refused_setting_is_told_in_german(study: str) -> None:
    settings = entry(study).settings
    for name in settings.names():
        if isinstance(settings.param[name], param.Number):
            with pytest.raises(BadInput) as refused:
                settings.parse({name: "many"})
            assert re.match(r"Einstellung '\w+': Erlaubt ist eine", translated(str(refused.value)))


@pytest.mark.parametrize("study", STUDIES)
def test_the_form_shows_german_choices_and_keeps_their_values(study: str) -> None:
    settings, plain = entry(study).settings, SettingsForm(entry(study).settings)
    with speaking("de"):
        form = SettingsForm(settings)
    assert form.raw_values() == plain.raw_values()
    for name, widget in form.widgets.items():
        parameter = settings.param[name]
        assert widget.description != parameter.doc
        if isinstance(parameter, param.Selector):
            assert list(widget.options.values()) == list(parameter.objects)
            assert list(plain.widgets[name].options) == [str(x) for x in parameter.objects]
