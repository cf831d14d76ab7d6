"""Scant inside RAIL, the photometric redshift pipelines of the LSST DESC (extra `astro`).

`ScantInformer` fits the redshift study to a table of RAIL, and `ScantEstimator` gives p(z) of
another as a qp ensemble of a few Gaussians a galaxy, with `zmode`, `zmean` and `zmedian`. The model
is a file of tensors and JSON (safetensors); no code is pickled.

A band observed without a detection is an empty cell with a limit beside it, as in the tables of the
study: magnitude `nondetect_val`, limit in the error column as RAIL's own tables have it, else
`mag_limits`. A band never observed (`nonobserved_val`, or no finite number) is an empty cell.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd
import qp
from ceci.config import StageParameter
from jaxtyping import Bool, Float
from rail.core.common_params import SharedParams
from rail.core.data import ModelHandle, QPHandle, TableHandle
from rail.core.enums import DistributionType
from rail.estimation.estimator import CatEstimator
from rail.estimation.informer import CatInformer

from scant.errors import BadInput
from scant.events import Fitted
from scant.studies import entry
from scant.studies.densities import MOST, HasDensities
from scant.tables.limits import undetected
from scant.training.api import fit, restore

TARGET = "z"
_SHARED = ("bands", "err_bands", "nondetect_val", "nonobserved_val", "mag_limits", "redshift_col")


class ScantModelHandle(ModelHandle):
    """A fitted model on disk: the bytes themselves, where RAIL would pickle an object."""

    suffix = "scant"

    @classmethod
    def _read(cls, path: str, **kwargs: Any) -> bytes:
        with open(path, "rb") as file:
            return file.read()

    @classmethod
    def _open(cls, path: str, **kwargs: Any) -> Any:
        return open(path, "wb") if kwargs.get("mode") == "w" else cls._read(path)

    @classmethod
    def _write(cls, data: Any, path: str, **kwargs: Any) -> None:
        with open(path, "wb") as file:
            file.write(data)


class ScantInformer(CatInformer):
    """Fits GPz (the redshift study) to galaxies with known redshifts."""

    name = "ScantInformer"
    entrypoint_function = "inform"
    interactive_function = "scant_informer"
    config_options = CatInformer.config_options.copy()
    config_options.update(
        **{name: SharedParams.copy_param(name) for name in _SHARED},
        seed=StageParameter(int, 0, msg="Seed of every random choice."),
        time_budget=StageParameter(float, 60.0, msg="Seconds that training may take."),
        n_basis=StageParameter(str, "auto", msg="Number of basis functions, or auto."),
        test_share=StageParameter(
            float, 0.05, msg="Share of galaxies held out for the scores of the fit's own report."
        ),
        settings=StageParameter(
            dict, {}, msg="Further settings of the redshift study, as `scant studies` lists them."
        ),
        device=StageParameter(str, "auto", msg="auto, cpu or cuda."),
    )
    outputs = [("model", ScantModelHandle)]  # noqa: RUF012  (as RAIL reads it)

    def validate(self) -> None:
        """Whether the table has the columns.

        Raises:
            KeyError: It lacks one (RAIL's own sentence).
        """
        self._get_stage_columns()
        data = self.get_handle("input", allow_missing=True)
        self._check_column_names(data, self.stage_columns)

    def _get_stage_columns(self) -> None:
        self.stage_columns = [*self.config.bands, self.config.redshift_col]

    def run(self) -> None:
        """Fit, and leave the model.

        Raises:
            BadInput: The table or a setting cannot be used.
        """
        group = self.config.hdf5_groupname
        data = self.get_data("input")[group] if group else self.get_data("input")
        table = photometry(data, self.config)
        table[TARGET] = np.asarray(data[self.config.redshift_col], dtype=float)
        values = {
            "target": TARGET,
            "seed": self.config.seed,
            "time_budget": self.config.time_budget,
            "n_basis": self.config.n_basis,
            "test_share": self.config.test_share,
            **self.config.settings,
        }
        spec = entry("redshift")
        settings = spec.parse(table, {name: str(value) for name, value in values.items()})
        run = fit("redshift", table, device=self.config.device, settings=settings, own=False)
        blob = next((event.blob for event in run if isinstance(event, Fitted)), None)
        if blob is None:
            raise BadInput(f"Training left no model: {run.report and run.report.notes}")
        self.model = packed(run.study.settings.values(), blob)
        self.add_data("model", self.model)


class ScantEstimator(CatEstimator):
    """p(z) of galaxies, as a mixture of a few Gaussians each, by a model of `ScantInformer`."""

    name = "ScantEstimator"
    entrypoint_function = "estimate"
    interactive_function = "scant_estimator"
    config_options = CatEstimator.config_options.copy()
    config_options.update(
        **{name: SharedParams.copy_param(name) for name in _SHARED},
        components=StageParameter(int, MOST, msg="Gaussians of a galaxy, at most."),
        device=StageParameter(str, "auto", msg="auto, cpu or cuda."),
    )
    inputs = [("model", ScantModelHandle), ("input", TableHandle)]  # noqa: RUF012
    outputs = [("output", QPHandle)]  # noqa: RUF012

    @classmethod
    def default_distribution_type(cls) -> DistributionType:
        """What these densities are: posteriors."""
        return DistributionType.posterior

    def open_model(self, tag: str = "model", **kwargs: Any) -> Any:
        """The fitted study.

        Raises:
            BadInput: These bytes are no model.
        """
        content = super().open_model(tag, **kwargs)
        self.model: Any = None if content is None else unpacked(content, self.config.device)
        return self.model

    def _process_chunk(self, start: int, end: int, data: Mapping[str, Any], first: bool) -> None:
        assert isinstance(self.model, HasDensities)
        p = self.model.densities(photometry(data, self.config), self.config.components)
        made = qp.Ensemble(qp.mixmod, data=p.parameters())
        made.set_ancil({"zmode": p.mode(), "zmean": p.mean, "zmedian": p.median()})
        self._do_chunk_output(made, start, end, first, data=data)


def photometry(data: Mapping[str, Any], config: Any) -> pd.DataFrame:
    """The bands of a table of RAIL as the redshift study takes them.

    Args:
        data: Columns by name.
        config: `bands`, `err_bands`, `nondetect_val`, `nonobserved_val` and `mag_limits`.

    Returns:
        `<band>`, and where there are such columns `<band>_err` and, where any row was not
        detected, `<band>_lim`.
    """
    made: dict[str, Float[np.ndarray, " n"]] = {}
    errors = dict(zip(config.bands, config.err_bands))
    for band in config.bands:
        values = np.asarray(data[band], dtype=float)
        away = ~np.isfinite(values) | (values == config.nonobserved_val)
        hidden = _is(values, config.nondetect_val)
        gone = away | hidden
        made[band] = np.where(gone, np.nan, values)
        limit = np.full(len(values), float(config.mag_limits.get(band, np.nan)))
        if errors.get(band) in data:
            error = np.asarray(data[errors[band]], dtype=float)
            told = undetected(np.where(hidden, 99.0, values), error)
            limit = np.where(told, error, limit)
            made[f"{band}_err"] = np.where(gone | ~(error > 0), np.nan, error)
        if hidden.any():
            made[f"{band}_lim"] = np.where(hidden, limit, np.nan)
    return pd.DataFrame(made)


def packed(settings: Mapping[str, Any], model: bytes) -> bytes:
    """Settings and model as one file: a line of JSON, then safetensors."""
    return json.dumps({"study": "redshift", "settings": settings}).encode() + b"\n" + model


def unpacked(content: bytes, device: str) -> Any:
    """The fitted study of `packed`.

    Raises:
        BadInput: These bytes are no such file.
    """
    try:
        head, _, model = content.partition(b"\n")
        record = json.loads(head)
        return restore(record["study"], record["settings"], model, device)
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise BadInput(
            "The model is no file of ScantInformer, or damaged; inform again."
        ) from error


def _is(values: Float[np.ndarray, " n"], code: float) -> Bool[np.ndarray, " n"]:
    return np.isnan(values) if np.isnan(code) else values == code
