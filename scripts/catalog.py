"""Bring the catalogs of sentences up to date with the code.

    python scripts/catalog.py

A catalog, dashboard/scant_dashboard/locale/LANGUAGE.po, lists every sentence of the pages: those
that the code passes to `tr`, `ntr` and `later`, and the texts that the studies declare. New ones
are added without a translation, and those that no page has any more are removed.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

from babel.messages.catalog import Catalog
from babel.messages.extract import extract
from babel.messages.pofile import read_po, write_po

from scant.studies import STUDIES, entry
from scant_dashboard.translate import ENGLISH, LANGUAGES

IN_SCRIPTS = {"tr": (1,), "ntr": (1, 2)}
NESTED = {"parse_template_string": True}  # calls within template strings, too
ROOT = Path(__file__).parent.parent
ASSETS = ROOT / "assets"
DASHBOARD = ROOT / "dashboard" / "scant_dashboard"
CALLS = {"tr": 1, "ntr": 2, "later": 1}  # functions, and how many arguments are sentences


def sentences() -> Catalog:
    """Return all sentences, in the order of the files that have them."""
    catalog = Catalog(project="Scant")
    for file in sorted(DASHBOARD.rglob("*.py")):
        name = str(file.relative_to(DASHBOARD))
        for message in passed(ast.parse(file.read_text(encoding="utf-8")), name):
            catalog.add(message, locations=[(name, None)])
    for file in sorted(ASSETS.glob("*.js")):
        with file.open("rb") as source:
            for _, message, *_ in extract("javascript", source, IN_SCRIPTS, options=NESTED):
                catalog.add(message, locations=[(f"assets/{file.name}", None)])
    for study, message in declared():
        catalog.add(message, locations=[(f"studies/{study}", None)])
    return catalog


def passed(module: ast.Module, name: str) -> Iterator[str | tuple[str, ...]]:
    """Yield the literal sentences that a module passes to the functions of `translate`.

    Raises:
        ValueError: A sentence is an f-string, whose values no catalog can have.
    """
    for node in ast.walk(module):
        if not isinstance(node, ast.Call) or getattr(node.func, "id", "") not in CALLS:
            continue
        arguments = node.args[: CALLS[node.func.id]]  # type: ignore[attr-defined]
        if any(isinstance(argument, ast.JoinedStr) for argument in arguments):
            raise ValueError(f"{name}:{node.lineno}: give the values as keywords, not in the text")
        literals = [a.value for a in arguments if isinstance(a, ast.Constant)]
        if literals and all(isinstance(literal, str) for literal in literals):
            yield literals[0] if len(literals) == 1 else tuple(literals)


def declared() -> Iterator[tuple[str, str]]:
    """Yield the texts that the studies declare, each with its study."""
    for study in map(entry, STUDIES):
        yield study.name, study.title
        yield study.name, study.question
        for source in study.sources:
            yield study.name, source.title
            yield study.name, source.doc
        for preset in study.presets:
            yield study.name, preset


def updated(language: str) -> Catalog:
    """Return a language's catalog with today's sentences."""
    file = file_of(language)
    catalog = read_po(file.open("rb"), locale=language) if file.is_file() else Catalog(language)
    catalog.update(sentences(), no_fuzzy_matching=True)
    catalog.obsolete.clear()
    return catalog


def file_of(language: str) -> Path:
    """Return the path of a language's catalog."""
    return DASHBOARD / "locale" / f"{language}.po"


def main() -> None:
    """Update all catalogs."""
    for language in LANGUAGES:
        if language == ENGLISH:
            continue
        catalog = updated(language)
        file_of(language).parent.mkdir(exist_ok=True)
        with file_of(language).open("wb") as file:
            write_po(file, catalog, omit_header=True, width=100)
        missing = [message.id for message in catalog if message.id and not message.string]
        print(f"{language}: {len(catalog)} sentences, {len(missing)} to be translated")


if __name__ == "__main__":
    main()
