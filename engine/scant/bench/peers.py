"""Times of programs that are in no package index, for the same work on a similar machine.

Measured once before the start of this project on two cores of a server CPU in double precision,
accurate to a factor of 1.5; fastest first. Programs that can be installed are measured by `stock`
and `programs`.
"""

from __future__ import annotations

from typing import NamedTuple


class Peer(NamedTuple):
    """Milliseconds for the work of a case, and the program."""

    ms: float
    program: str


# By (model, method, n, m, classes) as in the table.
PEERS: dict[tuple[str, str, int, int, int], tuple[Peer, ...]] = {
    ("gpz", "Scant VL", 4000, 25, 0): (Peer(26, "GPz, MATLAB under Octave"),),
    ("gpz", "Scant VD", 4000, 25, 0): (Peer(20, "GPz, MATLAB under Octave"),),
    ("gpz", "Scant VC", 4000, 25, 0): (Peer(32, "GPz, MATLAB under Octave"),),
    ("gpz", "Scant VL", 4000, 100, 0): (Peer(114, "GPz, MATLAB under Octave"),),
    ("gpz", "Scant VD", 4000, 100, 0): (Peer(87, "GPz, MATLAB under Octave"),),
    ("gpz", "Scant VC", 4000, 100, 0): (Peer(175, "GPz, MATLAB under Octave"),),
    ("mogp_ar", "Scant, 3 functions", 200, 100, 3): (
        Peer(11, "GPflow's LMC, robust softmax"),
        Peer(13, "the authors' program on GPflow"),
        Peer(219, "GPyTorch's LMC, softmax"),
    ),
    ("mogp_ar", "Scant", 200, 100, 20): (
        Peer(20, "the authors' program on GPflow"),
        Peer(23, "GPflow's LMC, robust softmax"),
        Peer(51, "GPyTorch's LMC, softmax"),
    ),
    ("mogp_ar, patches", "Scant, a class drawn", 100, 100, 28): (
        Peer(1070, "the authors' program on GPflow"),
        Peer(2840, "GPyTorch with the kernel as written"),
    ),
    ("mtgpa", "Scant", 740, 100, 0): (
        Peer(111, "GPyTorch with the integral kernel"),
        Peer(873, "the authors' program on GPy"),
    ),
    ("hmogp_lv", "Scant, Adam as published", 128, 28, 0): (
        Peer(16.6, "the authors' program, compiled"),
    ),
}


def peers_of(model: str, method: str, n: int, m: int, classes: int) -> tuple[Peer, ...]:
    """Return times of other programs for the same work, fastest first."""
    return PEERS.get((model, method, n, m, classes), ())
