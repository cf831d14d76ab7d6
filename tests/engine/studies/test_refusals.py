"""What a study cannot fit is refused before a fit begins, with the sentence of its end."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from scant.data_sources.open import open_table
from scant.errors import BadInput
from scant.runs.limits import check_upload
from scant.store import Store
from scant.studies import STUDIES, entry
from scant.tables.read import inspect_table
from tests.engine.files import csv

N = 60
RNG = np.random.default_rng(0)
INPUTS = {name: RNG.normal(size=N) for name in ("rna.a", "rna.b", "protein.c")}
THREE = pd.DataFrame({**INPUTS, "label": [*"abc"] * (N // 3)})
TWICE = pd.DataFrame({**INPUTS, "patient": ["p"] * N, "time": RNG.uniform(1, 2, N)})
SERIES = pd.DataFrame({"output": ["a"] * N, "replica": ["r", "s"] * (N // 2), "x": INPUTS["rna.a"],
                       "y": INPUTS["rna.b"]})  # fmt: skip
CASES: list[tuple[str, dict[str, Any], pd.DataFrame, str]] = [
    ("multiview", {}, THREE, "own.csv, column 'label': there are 3 classes (a, b, c), and the"),
    ("multiview", {}, TWICE, "patient 'p' has another time or event here than in row 0"),
    ("mitosis", {"positive_class": "d"}, THREE, "Setting 'positive_class' is 'd'"),
    ("mitosis", {}, THREE[:22].assign(label=["a"] * 21 + ["b"]), "Class 'b' has 1 row, too few"),
    ("clamp", {"expert": "simulated"}, THREE.assign(label="a"), "own.csv has only labels 'a'"),
    ("clamp", {"class_names": "a, b"}, THREE, "the table has labels c; name these too"),
    ("omniglot", {"kernel": "patch"}, THREE.assign(output="o"), "The kernel 'patch' cuts images"),
    ("omniglot", {}, THREE.assign(output=THREE["label"]), "Output 'a' has only one class"),
    ("genes", {"hidden": "a/t"}, SERIES, "a has no replica 't'; it has r, s"),
    ("redshift", {"log_target": "yes", "target": "protein.c"}, THREE.drop(columns="label"),
     "own.csv, column 'protein.c', row"),
]  # fmt: skip


@pytest.mark.parametrize(("study", "values", "table", "sentence"), CASES)
def test_it_is_refused_before_a_fit(
    study: str, values: dict[str, Any], table: pd.DataFrame, sentence: str, tmp_path: Path
) -> None:
    own = entry(study)
    settings = own.settings.parse(values)
    store = Store.open(f"sqlite:///{tmp_path / 'runs.db'}")
    upload = store.add_upload(
        table, owner="anna", name="own.csv", study=study, sha256="0", notes=()
    )
    with pytest.raises(BadInput) as refused:
        check_upload(own, settings, f"upload:{upload}", store)
    assert sentence in str(refused.value)


def test_the_wizard_says_it_beside_the_preview() -> None:
    own = entry("multiview")

    def check(frame: pd.DataFrame, name: str) -> None:
        own.check_table(own.settings(), frame, name)

    shown = inspect_table(csv(THREE), own.table, name="own.csv", check=check)
    assert not shown.problems
    assert "there are 3 classes" in shown.refusal
    two = THREE.assign(label=["a", "b"] * (N // 2))
    assert inspect_table(csv(two), own.table, check=check).refusal == ""


@pytest.mark.parametrize("study", [s for s in STUDIES if not entry(s).sources[0].kept])
def test_demonstrations_pass(study: str) -> None:
    own = entry(study)
    assert own.check
    settings = own.settings.parse(own.start())
    own.check_table(settings, open_table(own, None, settings))


def test_checks_need_no_torch() -> None:
    program = (
        "import sys; from importlib import import_module\n"
        "from scant.studies import STUDIES, entry\n"
        "for s in STUDIES: import_module(entry(s).check.partition(':')[0])\n"
        "assert 'torch' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", program], check=True)
