"""No function asks for a global name that its module has not.

Neither Ruff nor mypy can say so here: both take the shape strings of array types for names, and
have that check turned off.
"""

from __future__ import annotations

import builtins
import dis
import importlib
from collections.abc import Iterator
from types import CodeType

import pytest

from tests.engine.test_imports import MODULES, OPTIONAL, importable


def functions(code: CodeType) -> Iterator[CodeType]:
    for inner in code.co_consts:
        if isinstance(inner, CodeType):
            yield inner
            yield from functions(inner)


@pytest.mark.parametrize("module", sorted(MODULES))
def test_all_names_are_known(module: str) -> None:
    if not importable(module):
        pytest.skip(f"{OPTIONAL[module]} is not installed")
    path = MODULES[module]
    known = {*vars(importlib.import_module(module)), *vars(builtins)}
    unknown = [
        f"{code.co_name}: {step.argval}"
        for code in functions(compile(path.read_text(), str(path), "exec"))
        for step in dis.get_instructions(code)
        if step.opname == "LOAD_GLOBAL" and step.argval not in known
    ]
    assert unknown == []
