"""Motion capture (CMU): joint angles of a subject's trials, each trial a replica, in long form.

The publication (Ma 2023, section 5.4.2.2) takes some joints' channels as outputs, standardizes each
and observes a trial at some times only. It keeps channels with a signal-to-noise ratio above 20 dB,
which it does not define; here channels that do not move are left out.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pandas as pd

from scant.errors import BadInput

RUN = ("lowerneck", "upperneck", "head", "rfemur", "rtibia", "rfoot")  # of subject 9
WALK = ("rhumerus", "rradius", "rwrist", "rfemur", "rtibia")  # of subject 8
STILL = 1e-3  # degrees of deviation; channels with less do not move


def read(
    path: Path,
    joints: Sequence[str],
    *,
    frames: int = 100,
    replicas: int | None = None,
    seed: int = 0,
    same: bool = False,
) -> pd.DataFrame:
    """Read some joints of a subject.

    Args:
        path: An .npz of `channels` and either `sequences` (trials, frames, channels) or one array
            `trial_<number>` (frames, channels) for each trial; degrees at 120 frames a second.
        joints: Joints whose channels (`head_0`, `head_1` …) are outputs.
        frames: Number of random frames of each trial; all if it has fewer.
        replicas: Number of trials, from the first one.
        seed: Seed of the draw.
        same: Whether all trials have the same frames, drawn from their common ones.

    Returns:
        `output`, `replica`, `x` (time standardized within its trial, as published), `y` (each
        channel standardized over all trials).

    Raises:
        BadInput: The file is missing, or has none of the joints.
    """
    if not path.is_file():
        raise BadInput(f"There is no file {path.name} in that folder; check the path.")
    with np.load(path, allow_pickle=False) as archive:
        names = [str(name) for name in archive["channels"]]
        if "sequences" in archive:
            trials = dict(enumerate(archive["sequences"], start=1))
        else:
            trials = {key.removeprefix("trial_"): archive[key] for key in archive if "trial" in key}
    columns = [i for i, name in enumerate(names) if name.rpartition("_")[0] in joints]
    if not columns:
        raise BadInput(f"{path.name} has none of the joints {', '.join(joints)}.")
    rng = np.random.default_rng([seed, 3])
    chosen = list(trials.items())[:replicas]
    shared = rng.permutation(min(len(angles) for _, angles in chosen))[:frames] if same else None
    parts = []
    for trial, angles in chosen:
        time = np.arange(len(angles), dtype=np.float64)
        time = (time - time.mean()) / time.std()
        selected = np.sort(rng.permutation(len(angles))[:frames] if shared is None else shared)
        table = pd.DataFrame(
            angles[selected][:, columns].astype(np.float64),
            columns=pd.Index([names[i] for i in columns]),
        )
        parts.append(table.assign(x=time[selected], replica=str(trial)))
    result = pd.concat(parts).melt(["replica", "x"], var_name="output", value_name="y")
    spread = result.groupby("output")["y"].transform("std", ddof=0)
    result["y"] = (result["y"] - result.groupby("output")["y"].transform("mean")) / spread
    return result.loc[spread > STILL, ["output", "replica", "x", "y"]].reset_index(drop=True)
