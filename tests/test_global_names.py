"""No function asks for a global name that its module has not.

Neither Ruff nor mypy can say so here: both take the shape strings of array types for names, and
have that check turned off.
"""

from __future__ import annotations

import builtins
import dis
import importlib
from collections.abc import Iterator
from pathlib import Path
from types import CodeType

import pytest

ROOT = Path(__file__).parent.parent


def functions(code: CodeType) -> Iterator[CodeType]:
    for inner in code.co_consts:
        if isinstance(inner, CodeType):
            yield inner
            yield from functions(inner)


@pytest.mark.parametrize("top", ["engine", "dashboard"])
def test_all_names_are_known(top: str) -> None:
    unknown = []
    for path in sorted((ROOT / top).rglob("*.py")):
        place = path.relative_to(ROOT)
        name = ".".join(place.with_suffix("").parts).removesuffix(".__init__")
        known = {*vars(importlib.import_module(name)), *vars(builtins)}
        for code in functions(compile(path.read_text(), str(place), "exec")):
            for step in dis.get_instructions(code):
                if step.opname == "LOAD_GLOBAL" and step.argval not in known:
                    unknown.append(f"{place}: {code.co_name}: {step.argval}")
    assert unknown == []
