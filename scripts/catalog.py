"""Bring the catalogs of sentences up to date with the code.

    python scripts/catalog.py

A catalog, dashboard/scant_dashboard/locale/LANGUAGE.po, lists every sentence of the pages: those
that the code passes to `tr`, `ntr` and `later`, the texts that the studies declare, and the
engine's sentences, whose f-strings become templates (`scant_dashboard.engine_text`). New ones are
added without a translation, and those that no page has any more are removed.
"""

from __future__ import annotations

import ast
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path

import param
from babel.messages.catalog import Catalog
from babel.messages.extract import extract
from babel.messages.pofile import read_po, write_po

from scant.reproduce.claims import every_claim
from scant.reproduce.figures import SCATTER, definitions
from scant.reproduce.items import Status, items
from scant.studies import STUDIES, entry
from scant.studies.published import settings
from scant.tables.csv_parser import DELIMITERS
from scant_dashboard.engine_text import ENGINE
from scant_dashboard.translate import ENGLISH, LANGUAGES

IN_SCRIPTS = {"tr": (1,), "ntr": (1, 2)}
NESTED = {"parse_template_string": True}  # calls within template strings, too
ROOT = Path(__file__).parent.parent
ASSETS = ROOT / "assets"
DASHBOARD = ROOT / "dashboard" / "scant_dashboard"
SCANT = ROOT / "engine" / "scant"
CALLS = {"tr": 1, "ntr": 2, "later": 1}  # functions, and how many arguments are sentences
# Modules of the engine whose sentences pages show.
SPOKEN = (
    "verdict.py", "events.py", "tables/**/*.py", "studies/*.py", "studies/*/*.py",
    "runs/*.py", "runs/dispatch/*.py", "runs/workers/task.py", "runs/workers/client.py",
    "store/*.py", "training/*.py", "evaluate/compare.py", "evaluate/fitting.py",
    "ensemble/ensemble.py", "learners/learner.py", "data_sources/ranking.py",
    "data_sources/human_fertility.py", "models/laplace/acquisition.py",
    "models/laplace/stopping.py",
)  # fmt: skip
# Modules among them for the command line and notebooks, and those whose texts the studies declare.
SILENT = {
    "api", "bands", "clock", "cmu_mocap", "density_file", "downloads", "drosophila", "entry",
    "figures", "memory", "model_card", "opening", "output_folder", "plots", "prediction",
    "public_alphabets", "published", "published_data", "reproduce", "result_folder", "sdss",
    "simulate",
}  # fmt: skip
MIN_WORDS = 3  # of the engine's sentences; shorter texts are keys and names
CODE = re.compile(r"[\n|]|\(\?i|^[#+^]|^{{|;POINT")  # Markdown, patterns, map projections
# Values of the engine's sentences that are shorter than these.
SHORT = (*DELIMITERS.values(), "a number", "Predictions", "this run")
MIN_LETTERS = 4  # besides the fields; fewer match other sentences, too
UNSEEN = frozenset({"ValueError", "TypeError", "RuntimeError", "KeyError", "log", "re", "read_csv"})
FIELD = r"\{.*?\}"
WORD = r"\b[a-z]{3,}"  # in a choice that is no mere name, such as "eq" or "VD"
MOST_FORMS = 16  # of one f-string, by its conditions
Parts = list[str | tuple[str, str]]  # text, and fields with a name and a format


def sentences() -> Catalog:
    """Return all sentences, in the order of the files that have them."""
    catalog = Catalog(project="Scant")
    for file in sorted(DASHBOARD.rglob("*.py")):
        name = str(file.relative_to(DASHBOARD))
        for message in passed(ast.parse(file.read_text(encoding="utf-8")), name):
            catalog.add(message, locations=[(name, None)])
    for file in sorted((*ASSETS.glob("*.js"), *ASSETS.glob("gp/*.js"))):
        with file.open("rb") as source:
            for _, message, *_ in extract("javascript", source, IN_SCRIPTS, options=NESTED):
                catalog.add(message, locations=[(f"assets/{file.relative_to(ASSETS)}", None)])
    for study, message in declared():
        catalog.add(message, locations=[(f"studies/{study}", None)])
    for name, message in published():
        catalog.add(message, locations=[(f"data/published/{name}", None)])
    for file in spoken_modules():
        for message in templates(ast.parse(file.read_text(encoding="utf-8"))):
            name = "/".join(file.relative_to(ROOT).parts[2:])
            catalog.add(message, locations=[(f"{ENGINE}{name}", None)])
    for words in SHORT:
        catalog.add(words, locations=[(f"{ENGINE}tables", None)])
    return catalog


def spoken_modules() -> list[Path]:
    """Return the modules whose finished sentences pages show, and the limits of the server."""
    files = {file for pattern in SPOKEN for file in SCANT.glob(pattern)}
    files |= set((DASHBOARD / "limits").glob("*.py"))
    return sorted(file for file in files if file.stem not in SILENT)


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
        yield study.name, study.objective
        yield study.name, study.score
        for source in study.sources:
            yield study.name, source.title
            yield study.name, source.doc
        for preset in study.presets:
            yield study.name, preset
        for name in study.settings.names():
            setting = study.settings.param[name]
            yield study.name, str(setting.label)
            yield study.name, setting.doc
            if isinstance(setting, param.Selector):
                words = (str(choice) for choice in setting.objects)
                yield from ((study.name, word) for word in words if re.search(WORD, word))
        for column in study.table.columns:
            yield study.name, column.doc
            if column.required:  # asked for where a table lacks it
                yield study.name, column.question
        for limit in study.limits:
            yield study.name, limit
        for stated in settings(study.name).values():
            yield study.name, stated.where


def published() -> Iterator[tuple[str, str]]:
    """Yield the sentences on the publications, each with its file, and the statuses."""
    for status in Status:
        yield "items.csv", status.value
    for item in items():
        yield "items.csv", item.title
        if item.reason:
            yield "items.csv", item.reason
    for figure in definitions():
        labels = figure.metrics if figure.kind == SCATTER else ()  # others are names of scores
        for message in filter(None, (figure.axis, figure.reason, *labels)):
            yield "figures.csv", message
    for claim in every_claim():
        yield "claims.csv", claim.text


def templates(module: ast.Module) -> Iterator[str]:
    """Yield the sentences that a module of the engine writes, its f-strings with named fields.

    Docstrings, error messages for programmers and texts of few words are left out.
    """

    def visit(node: ast.AST) -> Iterator[str]:
        match node:
            case ast.Expr(value=ast.Constant()):  # a docstring
                return
            case ast.Subscript(value=value):  # such as a shape in an annotation
                yield from visit(value)
                return
            case ast.Call(func=function) if UNSEEN & {*_names(function)}:
                return
            case ast.JoinedStr() | ast.BinOp() | ast.IfExp() | ast.Constant():
                forms = [_template(parts) for parts, _ in islice(_forms(node, {}), MOST_FORMS)]
                phrases = [form for form in forms if _speaks(form)]
                yield from phrases
                if phrases:  # and the phrases in its fields
                    fields = [n.value for n in ast.walk(node) if isinstance(n, ast.FormattedValue)]
                    for field in fields:
                        if not isinstance(field, ast.IfExp | ast.BinOp):
                            yield from visit(field)
                    return
        for child in ast.iter_child_nodes(node):
            yield from visit(child)

    constants = _constants(module)
    for node in ast.walk(module):
        if isinstance(node, ast.FormattedValue) and isinstance(node.value, ast.Name):
            node.value = constants.get(node.value.id, node.value)
    yield from visit(module)


def _constants(module: ast.Module) -> dict[str, ast.Constant]:
    """Return the texts that a module names."""
    pairs: list[tuple[ast.expr, ast.expr]] = []
    for node in module.body:
        if isinstance(node, ast.Assign):
            target, value = node.targets[0], node.value
            both = isinstance(target, ast.Tuple) and isinstance(value, ast.Tuple)
            pairs += zip(target.elts, value.elts) if both else [(target, value)]  # type: ignore[attr-defined]
    return {
        target.id: value
        for target, value in pairs
        if isinstance(target, ast.Name)
        and isinstance(value, ast.Constant)
        and isinstance(value.value, str)
    }


def _speaks(template: str) -> bool:
    """Whether a text is a sentence or a phrase: of words rather than symbols."""
    words = re.sub(FIELD, "{}", template)
    enough = len(words.split()) >= MIN_WORDS and sum(map(str.isalpha, words)) >= MIN_LETTERS
    return enough and bool(re.search(r"\b[a-z]{2,}\b", words)) and not CODE.search(template)


def _forms(node: ast.AST, chosen: Mapping[str, bool]) -> Iterator[tuple[Parts, Mapping[str, bool]]]:
    """Yield the texts that an expression may have, with the conditions of each."""
    match node:
        case ast.Constant(value=str(text)):
            yield [text], chosen
        case ast.JoinedStr(values=nodes):
            yield from _joined(nodes, chosen)
        case ast.BinOp(left=left, op=ast.Add(), right=right):
            yield from _joined([left, right], chosen)
        case ast.FormattedValue(value=value, format_spec=spec):
            for parts, conditions in _forms(value, chosen):
                if isinstance(spec, ast.JoinedStr) and len(parts) == 1 and parts[0][0]:
                    texts = (n.value for n in spec.values if isinstance(n, ast.Constant))
                    parts = [(parts[0][0], "".join(map(str, texts)))]
                yield parts, conditions
        case ast.IfExp(test=test, body=body, orelse=other):
            for holds, branch in ((True, body), (False, other)):
                if chosen.get(ast.unparse(test), holds) is holds:
                    yield from _forms(branch, {**chosen, ast.unparse(test): holds})
        case ast.BinOp(left=ast.Constant(value=str(text)), op=ast.Mult(), right=test):
            for holds in (True, False):
                if chosen.get(ast.unparse(test), holds) is holds:
                    yield [text] if holds else [], {**chosen, ast.unparse(test): holds}
        case ast.BoolOp(op=ast.Or(), values=values):
            for value in values:
                yield from _forms(value, chosen)
        case _:
            yield [(next(iter(_names(node)), "value").strip("_").lower(), "")], chosen


def _joined(
    nodes: Sequence[ast.AST], chosen: Mapping[str, bool]
) -> Iterator[tuple[Parts, Mapping[str, bool]]]:
    if not nodes:
        yield [], chosen
        return
    for parts, conditions in _forms(nodes[0], chosen):
        for rest, all_conditions in _joined(nodes[1:], conditions):
            yield parts + rest, all_conditions


def _names(node: ast.AST) -> Iterator[str]:
    """Yield the names in an expression, the most telling first."""
    match node:
        case ast.Call(func=function, args=arguments):
            for argument in arguments[:1]:
                yield from _names(argument)
            yield from _names(function)
        case ast.Attribute(value=value, attr=name):
            yield name
            yield from _names(value)
        case ast.Name(id=name):
            yield name
        case _:
            for child in ast.iter_child_nodes(node):
                yield from _names(child)


def _template(parts: Parts) -> str:
    """Return a template as of `str.format`, whose fields have different names."""
    template, used = "", Counter[str]()
    for part in parts:
        if isinstance(part, str):
            template += part.replace("{", "{{").replace("}", "}}")
            continue
        name, spec = part
        used[name] += 1
        number = f"_{used[name]}" if used[name] > 1 else ""
        template += f"{{{name}{number}{':' * bool(spec)}{spec}}}"
    return template


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
