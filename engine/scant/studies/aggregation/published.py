"""Settings of Yousefi (2021), section 5.3: first births with 5 x 5 boxes (Figures 5.2-5.4).

Yousefi, Smith and Álvarez (2019) have the same experiments.
"""

from __future__ import annotations

from scant.studies.aggregation.settings import AVERAGED, CLUSTERS, GRID
from scant.studies.published import Stated

SETTINGS: dict[str, Stated] = {
    "fine_rows": Stated(
        80, "authors' program: 80; Figures 5.2 to 5.5 vary it up to 1,640 (section 5.3)"
    ),
    "test_share": Stated(
        0.2, "not stated: without effect, the table marks 1,000 test cells (section 5.3)"
    ),
    "likelihood": Stated(
        "gaussian", "section 5.3; poisson for the synthetic data, heteroscedastic in Figure 5.5"
    ),
    "likelihoods": Stated("", "section 5.3: both tasks have the same likelihood"),
    "counts": Stated(AVERAGED, "section 5.3: the rate is exp(f), with f averaged as in (5.9)"),
    "rate_per": Stated(0.0, "section 5.3: the fertility rate itself is Gaussian"),
    "known_noise": Stated(False, "section 5.1.3: only one noise variance for each task, learned"),
    "standardize": Stated(
        "each task",
        "authors' program: each task by the mean and deviation of all its cells; ours are of its "
        "training rows. Section 5.3 mentions scaling of the air pollution only",
    ),
    "n_latent": Stated(1, "section 5.3: Q = 1"),
    "rank": Stated(
        2,
        "section 5.1.3: B_q = L_q L_qᵀ, with L_q a Cholesky factor for two tasks. The same section "
        "assumes R_q = 1, and the authors' program has rank 1",
    ),
    "kernel": Stated("eq", "section 5.1.3"),
    "isotropic": Stated(
        False, "authors' program: one lengthscale for each dimension; the publication has no maps"
    ),
    "lengthscale": Stated(
        0.0, "section 5.1.3: learned; fixed at 0.75 hours for the air pollution (section 5.3)"
    ),
    "constant_mean": Stated(False, "section 5.1.2: the latent functions have zero means (5.8)"),
    "noise": Stated(1.0, "authors' program: the noise variance of standardized values starts at 1"),
    "polygon_points": Stated(0, "not stated: the publication has boxes only, averaged exactly"),
    "inference": Stated("variational", "section 5.1.3"),
    "hyperparameters": Stated("point", "section 5.1.3: point estimates of the hyperparameters"),
    "n_inducing": Stated(100, "section 5.3; 200 for the air pollution"),
    "inducing_init": Stated(CLUSTERS, "section 5.3: k-means; evenly spaced for the air pollution"),
    "stack": Stated(False, "section 5.3: the model predicts alone"),
    "learn_inducing": Stated(False, "section 5.3: inducing inputs are fixed"),
    "optimizer": Stated(
        "em",
        "section 5.1.3: variational EM, both steps by Adam (section 5.3), here in turns of 20 "
        "iterations. The authors' program for births updates all parameters at once: 'adam'",
    ),
    "learning_rate": Stated(0.01, "authors' program: 0.01"),
    "halving": Stated(0, "authors' program: a constant rate"),
    "batch_size": Stated(50, "section 5.3"),
    "max_steps": Stated(
        2000,
        "section 5.3, of the air pollution; 600 in the paper of 2019, 1,000 for births in the "
        "authors' program",
    ),
    "patience": Stated(0, "section 5.3: a fixed number of iterations"),
}
AIR = SETTINGS | {  # the air pollution, section 5.3, which states batches for the births alone
    "lengthscale": Stated(0.75, "section 5.3: fixed at 0.75 hours"),
    "n_inducing": Stated(200, "section 5.3"),
    "inducing_init": Stated(GRID, "section 5.3: evenly spaced"),
}
