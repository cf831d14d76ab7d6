"""Gene expression of fruit-fly embryos (Kalinka et al. 2010), in long form.

3,590 genes of *Drosophila melanogaster*, each in the same 56 samples: eight replicas at 4 to 10
times from 2 to 20 hours of development, log expression. The file is the one that the authors of
HMOGP-LV used (Ma 2023, section 5.4.2.1). Each gene is standardized over its 56 values, as there.
The replicas are unequal: 6, 7 and 8 begin at 12 hours and have 4 or 5 points.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd

from scant.errors import BadInput

URL = (
    "https://raw.githubusercontent.com/ChunchaoPeter/HMOGP-LV/"
    "e957371e2068022e14b305786a4951d578bbd972/Gene_data_set/kalinka09_mel.csv"
)
FOUR = ("CG12723", "CG13196", "CG13627", "Osi15")  # the publication's genes
MANY = 200
# Replicate and hours of the 56 columns, from kalinka09_mel_pdata.csv in the same folder.
SAMPLES = [
    (str(replica), float(hours))
    for replica, begin, end in (
        *((r, 2, 16) for r in (1, 2, 3, 4)),
        (5, 2, 20),
        (6, 12, 20),
        (7, 12, 18),
        (8, 12, 20),
    )
    for hours in range(begin, end + 1, 2)
]


def read_four(data: bytes, name: str) -> pd.DataFrame:
    """Read the publication's four genes from the content of `URL` (see `long_form`)."""
    table = _parsed(data, name)
    missing = [gene for gene in FOUR if gene not in table.index]
    if missing:
        raise BadInput(f"The file of {name!r} lacks the gene {missing[0]}; try later.")
    return long_form(table.loc[list(FOUR)])


def read_many(data: bytes, name: str) -> pd.DataFrame:
    """Read the four genes and a fixed random sample of others, 200 in all."""
    table = _parsed(data, name)
    others = sorted(set(table.index) - set(FOUR))
    sample = np.random.default_rng(0).permutation(len(others))[: MANY - len(FOUR)]
    chosen = [gene for gene in FOUR if gene in table.index] + [others[i] for i in sorted(sample)]
    return long_form(table.loc[chosen])


def long_form(table: pd.DataFrame) -> pd.DataFrame:
    """Convert rows of 56 values to `output`, `replica`, `x` (hours), `y` (mean 0, sd 1 per gene).

    Constant genes are left out.
    """
    values = table.to_numpy(np.float64)
    spread = values.std(axis=1)
    genes, values, spread = table.index[spread > 0], values[spread > 0], spread[spread > 0]
    scaled = (values - values.mean(axis=1, keepdims=True)) / spread[:, None]
    return pd.DataFrame(
        {
            "output": np.repeat(genes.to_numpy(object), len(SAMPLES)),
            "replica": np.tile(np.array([r for r, _ in SAMPLES], dtype=object), len(genes)),
            "x": np.tile([hours for _, hours in SAMPLES], len(genes)),
            "y": scaled.ravel(),
        }
    )


def read_folder(folder: Path, file: str = "four_genes_long.csv") -> pd.DataFrame:
    """Read genes from a local long table into the form of `long_form`.

    Args:
        folder: Folder of the file.
        file: CSV or Parquet with `gene`, `replicate`, `time_h`, `expression`.

    Raises:
        BadInput: The file or a column is missing.
    """
    path = folder / file
    if not path.is_file():
        raise BadInput(f"There is no file {file} in that folder; check the path.")
    raw = pd.read_parquet(path) if path.suffix == ".parquet" else pd.read_csv(path)
    for column in ("gene", "replicate", "time_h", "expression"):
        if column not in raw:
            raise BadInput(f"{file} has no column {column!r}; it has {', '.join(map(str, raw))}.")
    grouped = raw.groupby("gene")["expression"]
    y = (raw["expression"] - grouped.transform("mean")) / grouped.transform("std", ddof=0)
    return pd.DataFrame(
        {
            "output": raw["gene"].astype(str).astype(object),
            "replica": raw["replicate"].astype(str).astype(object),
            "x": raw["time_h"].astype(np.float64),
            "y": y.astype(np.float64),
        }
    )


def _parsed(data: bytes, name: str) -> pd.DataFrame:
    """Parse a table of genes (rows) by the 56 samples.

    Raises:
        BadInput: The data are a web page or truncated, or cells are no numbers.
    """
    text = data.decode("utf-8", errors="replace")
    lines = text.splitlines()
    cells = [line.split(",") for line in lines]
    if not lines or text.lstrip().startswith("<") or len(cells[0]) != len(SAMPLES) + 1:
        message = lines[0][:80] if lines else ""
        raise BadInput(f"The server of {name!r} sent no table of genes ({message!r}); try later.")
    if not text.endswith("\n") or any(len(row) != len(cells[0]) for row in cells):
        raise BadInput(f"The table of {name!r} arrived cut short; fetch it again.")
    try:
        values = np.array([row[1:] for row in cells], dtype=np.float64)
    except ValueError as error:
        raise BadInput(
            f"The table of {name!r} holds cells that are no numbers ({error})."
        ) from None
    table = pd.DataFrame(values, index=pd.Index([row[0] for row in cells], dtype=object))
    return table[~table.index.duplicated()]
