"""Gaussian processes for scarce data: models, studies and runs. Knows nothing of the web.

>>> import scant
>>> run = scant.fit("redshift", data="demo", n_basis=25, seed=1)
>>> for event in run:
...     print(event)
>>> table = scant.predict(run.study, new_galaxies)
>>> run.plot()  # the study's figures, in a notebook
"""

from importlib import import_module
from typing import Any

__version__ = "0.1.0"
__all__ = ["fit", "load", "plot", "predict"]

# Imported at first use, so that `import scant` stays light: the server never loads torch.
_LAZY = {
    "fit": "scant.training.api",
    "load": "scant.training.api",
    "plot": "scant.training.figures",
    "predict": "scant.training.prediction",
}


def __getattr__(name: str) -> Any:
    if name in _LAZY:
        return getattr(import_module(_LAZY[name]), name)
    raise AttributeError(f"module 'scant' has no attribute {name!r}")
