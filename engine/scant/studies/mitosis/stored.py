"""Conversion of a fitted model to tensors and metadata, and back."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import torch

from scant.learners.calibrated import CalibratedClassifier, weighted_svm
from scant.models.averaged_softmax import AveragedSoftmax
from scant.models.softmax_mixture import SoftmaxMixture
from scant.studies.mitosis import models
from scant.studies.mitosis.classifier import Classifier
from scant.studies.mitosis.fitted import FittedMitosis
from scant.studies.mitosis.prepared import Prepared
from scant.studies.mitosis.preprocessing import Columns
from scant.studies.mitosis.settings import MitosisSettings
from scant.studies.mitosis.sight import Sight
from scant.studies.mitosis.splits import SHADES, Split
from scant.studies.protocol import Tensors, arrays, part, to_numpy


def to_tensors(fitted: FittedMitosis) -> tuple[Tensors, dict[str, Any]]:
    """Return tensors and JSON-ready metadata for `from_tensors`."""
    data, mixture = fitted.data, fitted.chances
    assert mixture is not None, "a model is stored once it is finalized"
    stored: dict[str, np.ndarray] = {
        "z": data.z.astype(np.float32),
        "label": data.label.astype(np.int16),
        "places": data.places,
        "pictured": data.pictured,
        "images": np.round(data.images * SHADES).astype(np.uint8),
        "shares": data.shares,
        **{f"split.{k}": v for k, v in vars(data.split).items() if v is not None},
        **{f"chances.{k}": np.asarray(v) for k, v in mixture.latent._asdict().items()},
    }
    if mixture.gp is not None:
        stored |= {f"gp.{k}": v for k, v in mixture.gp.arrays().items()}
        mixture_fields = {
            k: v for k, v in vars(mixture).items() if k not in ("latent", "gp", "shift")
        }
        stored |= {f"mixed.{k}": np.asarray(v) for k, v in mixture_fields.items()}
    if mixture.shift is not None:
        stored |= {"shift": mixture.shift, "threshold": np.array(mixture.threshold)}
    stored |= {f"columns.{k}": np.asarray(v) for k, v in vars(data.columns).items()}
    stored["columns.axes"] = stored["columns.axes"].astype(np.float32)
    if data.sight is not None and data.network is not None:
        stored |= {f"sight.{k}": np.asarray(v) for k, v in vars(data.sight.columns).items()}
        stored |= {"usual": data.sight.usual, "network": data.network}
        stored |= {"factor": np.array(data.sight.factor), "joined": np.array(data.joined)}
    tensors = {f"rows.{k}": torch.as_tensor(v) for k, v in stored.items()}
    tensors |= {f"model.{k}": v for k, v in fitted.model.state_dict().items()}
    return tensors, {"words": data.metadata, "how": list(fitted.how)}


def from_tensors(
    settings: MitosisSettings, tensors: Tensors, meta: dict[str, Any], device: torch.device
) -> FittedMitosis:
    """Inverse of `to_tensors`."""
    rows = arrays(tensors, "rows.")
    data = _data(settings, rows, tensors, meta["words"], device)
    model = data.build(0)
    model.load_state_dict(part(tensors, "model."))
    how, label = tuple(meta["how"]), data.label[data.train]
    reader = models.Reader(model, label, data.n_classes)
    if reader.machine is not None:
        reader.machine = weighted_svm(to_numpy(model.latent()[0]), label, how)
    calibration = arrays(tensors, "rows.chances.")
    calibration["threshold"] = float(calibration["threshold"])
    latent = CalibratedClassifier(**calibration)
    mixture = Classifier.of_latent(latent)
    gp, mixture_fields = (arrays(tensors, f"rows.{name}.") for name in ("gp", "mixed"))
    if gp:
        numbers: dict[str, Any] = {
            k: v if k == "prior" else float(v) for k, v in mixture_fields.items()
        }
        kind = AveragedSoftmax if "widths" in gp else SoftmaxMixture
        mixture = Classifier(latent, kind.from_arrays(gp), **numbers)
    if "shift" in rows:
        mixture = replace(mixture, shift=rows["shift"], threshold=float(rows["threshold"]))
    return FittedMitosis(data, model, reader, mixture, how)


def _data(
    settings: MitosisSettings,
    rows: dict[str, Any],
    tensors: Tensors,
    metadata: dict[str, Any],
    device: torch.device,
) -> Prepared:
    split, columns, of_network = (
        arrays(tensors, f"rows.{name}.") for name in ("split", "columns", "sight")
    )
    image = tuple(metadata["size"]) or None
    columns |= {"left": float(columns["left"]), "axes": columns["axes"].astype(np.float64)}
    sight = None
    if of_network and image:
        of_network["left"] = float(of_network["left"])
        sight = Sight(Columns(**of_network), image, rows["usual"], float(rows["factor"]))
    return Prepared(
        settings=settings,
        metadata=metadata,
        label=rows["label"].astype(np.int64),
        z=rows["z"].astype(np.float64),
        split=Split(**split),
        columns=Columns(**columns),
        image=image,
        places=rows["places"],
        pictured=rows["pictured"],
        images=rows["images"] / SHADES,
        shares=rows["shares"],
        device=device,
        sight=sight,
        network=rows.get("network"),
        joined=int(rows.get("joined", 0)),
    )
