"""The output folder of `scant fit --out`, which `scant.load` reads."""

from __future__ import annotations

import hashlib
import json
import math
import os
import shutil
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pandas as pd

from scant import __version__
from scant.errors import BadInput, NotFound
from scant.events import Finished, Progress
from scant.training.model_card import page
from scant.training.output_folder import check_writable, output
from scant.verdict import Verdict

SETTINGS, MODEL, CARD = "settings.json", "model.safetensors", "model_card"
DIGEST = "model_sha256"  # key in settings.json, to detect a damaged model


def settings_record(
    study: str, settings: Mapping[str, Any], data: str | Sequence[str]
) -> dict[str, Any]:
    """Return the content of settings.json, with which the fit can be reproduced.

    `threads` is the number of threads of PyTorch, which affects rounding.
    """
    import torch

    environment = {"data": data, "version": __version__, "threads": torch.get_num_threads()}
    return {"study": study, "settings": dict(settings), **environment}


def metrics_record(end: Finished) -> dict[str, Any]:
    """Return the content of metrics.json, with null for non-finite numbers."""
    return {
        "state": end.state.value,
        "reason": end.reason,
        "metrics": [_finite(asdict(metric)) for metric in end.report.metrics],
        "notes": list(end.report.notes),
        "limits": list(end.report.limits),
        "verdict": verdict_record(end.report.verdict),
    }


def verdict_record(verdict: Verdict | None) -> dict[str, Any] | None:
    """Return the verdict with its sentences; None without a verdict."""
    return None if verdict is None else {**asdict(verdict), "sentences": verdict.sentences()}


def check_folder(out: Path) -> None:
    """Check that a folder is new or has an earlier result, and can be written.

    Raises:
        BadInput: The folder has other files, is a file, or cannot be written.
    """
    with output(out):
        out = out.resolve()
        if out.is_dir() and any(out.iterdir()) and not (out / SETTINGS).exists():
            raise BadInput(f"--out {out} is a folder with other files in it; name a new one.")
        if os.path.ismount(out) or out == Path.cwd():
            raise BadInput(f"--out {out} cannot be replaced as a whole; name a folder in it.")
    check_writable(out)
    check_writable(out.parent)  # location of the temporary folder


def write(
    out: Path,
    settings: Mapping[str, Any],
    end: Finished,
    steps: Sequence[Progress],
    model: bytes | None,
    further: Iterable[Path] = (),
    card: str = "",
) -> None:
    """Write the folder of a fit atomically, replacing an earlier result.

    Args:
        out: Path of the folder.
        settings: Result of `settings_record`.
        end: Last event of the fit.
        steps: Training curve.
        model: Blob of the `Fitted` event; None without a model.
        further: Files to move into the folder, such as predictions.
        card: Model card in Markdown (see `training.model_card`).
    """
    check_folder(out)
    out = out.resolve()
    out.parent.mkdir(parents=True, exist_ok=True)
    temporary = Path(tempfile.mkdtemp(prefix=".scant-", dir=out.parent))
    try:
        temporary.chmod(0o755)
        if model is not None:
            settings = {**settings, DIGEST: hashlib.sha256(model).hexdigest()}
        (temporary / SETTINGS).write_text(json.dumps(settings, indent=2) + "\n")
        (temporary / "metrics.json").write_text(json.dumps(metrics_record(end), indent=2) + "\n")
        rows = [(p.step, p.elbo, p.seconds) for p in steps]
        trace = pd.DataFrame(rows, columns=["step", "elbo", "seconds"])
        trace.to_csv(temporary / "trace.csv", index=False)
        if model is not None:
            (temporary / MODEL).write_bytes(model)
        for file in further:
            shutil.move(file, temporary / file.name)
        if card:
            (temporary / f"{CARD}.md").write_text(card, encoding="utf-8")
            (temporary / f"{CARD}.html").write_text(page(card), encoding="utf-8")
        if out.is_dir():
            shutil.rmtree(out)
        temporary.rename(out)
    except BaseException:
        shutil.rmtree(temporary, ignore_errors=True)
        raise


def _finite(metrics: dict[str, Any]) -> dict[str, Any]:
    return {
        k: None if isinstance(v, float) and not math.isfinite(v) else v for k, v in metrics.items()
    }


def read(folder: Path) -> tuple[str, dict[str, Any], bytes]:
    """Read study, settings and model of a folder from `write`.

    Raises:
        NotFound: There is no result, or it has no model.
        BadInput: A file is damaged.
    """
    for name in (SETTINGS, MODEL):
        if not (folder / name).is_file():
            raise NotFound(f"There is no {name} in {folder}; name a folder of scant fit --out.")
    try:
        record = json.loads((folder / SETTINGS).read_text(encoding="utf-8"))
        study, settings, digest = record["study"], dict(record["settings"]), record.get(DIGEST)
        model = (folder / MODEL).read_bytes()
    except OSError as error:
        raise BadInput(f"{folder} cannot be read: {error.strerror}; check it.") from None
    except (ValueError, KeyError, TypeError, AttributeError):
        raise BadInput(
            f"{folder / SETTINGS} is damaged: it is no JSON object with study and settings; fit it "
            "again."
        ) from None
    if digest is not None and hashlib.sha256(model).hexdigest() != digest:
        raise BadInput(
            f"{folder / MODEL} is damaged: its bytes are not those that were written; fit it again."
        )
    return str(study), settings, model
