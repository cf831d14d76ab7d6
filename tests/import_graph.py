"""Which module imports which, read from the sources: for the rules of layers, and for the choice of
tests that a change concerns.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable
from functools import cache
from pathlib import Path

from tests.paths import ROOT


def modules_of(root: str, *package: str) -> dict[str, Path]:
    """Every module below a source root by its dotted name; `package` is the name of the root."""
    names = {}
    for path in sorted((ROOT / root).rglob("*.py")):
        parts = (*package, *path.relative_to(ROOT / root).with_suffix("").parts)
        names[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return names


MODULES = modules_of("engine") | modules_of("dashboard")
# The tests' own modules, `toy` among them, which is imported without a package.
TEST_MODULES = modules_of("tests", "tests") | modules_of("tests/toy", "toy")


@cache
def imports(path: Path, annotated: bool = False) -> frozenset[str]:
    """Names of the modules that a file imports anywhere, also inside functions.

    Args:
        path: A Python file.
        annotated: Include imports under `if TYPE_CHECKING`.
    """
    names = set()
    tree = ast.parse(path.read_text())
    annotations = {
        node
        for branch in ast.walk(tree)
        if isinstance(branch, ast.If) and "TYPE_CHECKING" in ast.unparse(branch.test)
        for part in branch.body
        for node in ast.walk(part)
    }
    for node in ast.walk(tree):
        if node in annotations and not annotated:
            continue
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path.name} imports relatively"
            for alias in node.names:
                inner = f"{node.module}.{alias.name}"
                known = inner in MODULES or inner in TEST_MODULES
                names.add(inner if known else str(node.module))
    return frozenset(names)


@cache
def _importers() -> dict[Path, set[Path]]:
    """For each file, the files that import it; a conftest counts as imported by its folder."""
    known = MODULES | TEST_MODULES
    importers: dict[Path, set[Path]] = {path: set() for path in known.values()}
    for path in known.values():
        for name in imports(path):
            if name in known:
                importers[known[name]].add(path)
    for path in TEST_MODULES.values():
        for folder in path.parents:
            if (folder / "conftest.py") in importers and path.name != "conftest.py":
                importers[folder / "conftest.py"].add(path)
    return importers


def distances(changed: Iterable[Path]) -> dict[Path, int]:
    """The length of the shortest chain of imports from each file to a changed one.

    Files that import no changed file, not even indirectly, are absent.
    """
    importers = _importers()
    frontier = {path for path in changed if path in importers}
    found = dict.fromkeys(frontier, 0)
    length = 0
    while frontier:
        length += 1
        frontier = {up for path in frontier for up in importers[path]} - found.keys()
        found |= dict.fromkeys(frontier, length)
    return found
