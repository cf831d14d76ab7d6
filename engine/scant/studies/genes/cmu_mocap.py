"""Motion capture (CMU): joint angles of a subject's trials, each trial a replica, in long form.

The publication (Ma 2023, section 5.4.2.2) takes some joints' channels as outputs, standardizes each
and observes a trial at some times only. It keeps channels of a signal-to-noise ratio above 20 dB,
which it does not define; here those that never move are left out.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pandas as pd

from scant.errors import BadInput

RUN = ("lowerneck", "upperneck", "head", "rfemur", "rtibia", "rfoot")  # of subject 9
WALK = ("rhumerus", "rradius", "rwrist", "rfemur", "rtibia")  # of subject 8
STILL = 1e-3  # degrees of deviation, below which a channel does not move


def read(
    path: Path,
    joints: Sequence[str],
    *,
    frames: int = 100,
    replicas: int | None = None,
    seed: int = 0,
    same: bool = False,
) -> pd.DataFrame:
    """Some joints of a subject.

    Args:
        path: An .npz of `channels` and either `sequences` (trials, frames, channels) or one array
            `trial_<number>` (frames, channels) for each trial; degrees at 120 frames a second.
        joints: Whose channels (`head_0`, `head_1` …) are outputs.
        frames: Of each trial, drawn at random; all where it has fewer.
        replicas: Only the first so many trials.
        seed: Of the draw.
        same: True for the same frames of all trials, drawn from those that all have.

    Returns:
        `output`, `replica`, `x` (time standardized within its trial, as published), `y` (each
        channel standardized over all trials).

    Raises:
        BadInput: No file, or none of those joints in it.
    """
    if not path.is_file():
        raise BadInput(f"There is no file {path.name} in that folder; check the path.")
    with np.load(path, allow_pickle=False) as held:
        names = [str(name) for name in held["channels"]]
        if "sequences" in held:
            trials = dict(enumerate(held["sequences"], start=1))
        else:
            trials = {key.removeprefix("trial_"): held[key] for key in held if "trial" in key}
    wanted = [i for i, name in enumerate(names) if name.rpartition("_")[0] in joints]
    if not wanted:
        raise BadInput(f"{path.name} has none of the joints {', '.join(joints)}.")
    rng = np.random.default_rng([seed, 3])
    chosen = list(trials.items())[:replicas]
    shared = rng.permutation(min(len(angles) for _, angles in chosen))[:frames] if same else None
    parts = []
    for trial, angles in chosen:
        time = np.arange(len(angles), dtype=np.float64)
        time = (time - time.mean()) / time.std()
        kept = np.sort(rng.permutation(len(angles))[:frames] if shared is None else shared)
        wide = pd.DataFrame(
            angles[kept][:, wanted].astype(np.float64), columns=pd.Index([names[i] for i in wanted])
        )
        parts.append(wide.assign(x=time[kept], replica=str(trial)))
    whole = pd.concat(parts).melt(["replica", "x"], var_name="output", value_name="y")
    spread = whole.groupby("output")["y"].transform("std", ddof=0)
    whole["y"] = (whole["y"] - whole.groupby("output")["y"].transform("mean")) / spread
    return whole.loc[spread > STILL, ["output", "replica", "x", "y"]].reset_index(drop=True)
