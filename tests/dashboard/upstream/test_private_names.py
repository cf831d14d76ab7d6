"""Outside of `dashboard/scant_dashboard/upstream` no code touches private names of a library."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from tests.paths import ROOT

UPSTREAM = ROOT / "dashboard" / "scant_dashboard" / "upstream"
FILES = [
    path
    for folder in ("engine", "dashboard", "scripts")
    for path in sorted((ROOT / folder).rglob("*.py"))
    if UPSTREAM not in path.parents
]
# In their library's documentation: named tuples, SQLAlchemy's rows, Panel's components of scripts.
PUBLIC = {"_asdict", "_fields", "_replace", "_mapping", "_esm", "_handle_msg", "_send_msg"}

# GPyTorch's variational strategies are extended by these; the issue is of the web's libraries.
PUBLIC |= {"_clear_cache", "_variational_distribution"}
# RAIL's stages are written with these.
PUBLIC |= {"_check_column_names", "_do_chunk_output"}


def private(name: object) -> bool:
    return isinstance(name, str) and name.startswith("_") and not name.startswith("__")


def defined(tree: ast.AST) -> set[str]:
    """The private names that a module gives to its own things."""
    own: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            own.add(node.name)
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            own.add(node.id)
        elif isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store):
            own.add(node.attr)
    return own


def touched(tree: ast.AST) -> dict[str, int]:
    """The private names that a module reads of others or by text, and where."""
    result: dict[str, int] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute):
            result[node.attr] = node.lineno
        elif isinstance(node, ast.Call) and ast.unparse(node.func) in ("getattr", "setattr"):
            name = node.args[1]
            result[str(getattr(name, "value", ""))] = node.lineno
        elif isinstance(node, ast.ImportFrom) and not (node.module or "").startswith("scant"):
            result |= {f"{each.name} of {node.module}": node.lineno for each in node.names}
    return {name: line for name, line in result.items() if private(name)}


def faults(files: list[Path]) -> list[str]:
    trees = {path: ast.parse(path.read_text(encoding="utf-8")) for path in files}
    own = PUBLIC.union(*map(defined, trees.values()))
    return [
        f"{path.relative_to(ROOT)}:{line} {name}"
        for path, tree in trees.items()
        for name, line in touched(tree).items()
        if name not in own
    ]


@pytest.mark.slow
def test_private_names_of_libraries_are_touched_in_upstream_only() -> None:
    assert faults(FILES) == []


@pytest.mark.slow
def test_the_rule_finds_what_upstream_touches() -> None:
    result = faults([*FILES, *sorted(UPSTREAM.glob("*.py"))])
    for name in ("_state of panel.io.state", "_tornado", "_PATCHED_CURDOCS", "_session"):
        assert any(fault.endswith(name) for fault in result), name
