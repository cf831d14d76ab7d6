"""Settings of Yousefi (2021, chapter 3)."""

from __future__ import annotations

from scant.studies.mitosis.settings import LATENT, PIXELS, PRIORS
from scant.studies.published import Stated

SETTINGS: dict[str, Stated] = {
    "model": Stated("sclvm", "section 3.2"),
    "classifier": Stated(LATENT, "section 3.3: the model learns the classification jointly"),
    "features": Stated(PIXELS, "section 3.3"),
    "imbalance": Stated(
        0.0, "section 3.3: all rows; 5,000 to 440 there, as many as the table has here"
    ),
    "rare_rows": Stated(0, "section 3.3: all positive patches that are not held out"),
    "positive_class": Stated("", "section 3.3: mitosis, the rarer class"),
    "n_shared_dims": Stated(5, "section 3.3"),
    "n_private_dims": Stated(5, "section 3.3"),
    "n_inducing": Stated(50, "section 3.3: 100, of which each class has 50"),
    "n_components": Stated(0, "section 3.3: the pixels themselves"),
    "prior": Stated(
        PRIORS[0], "not stated: the decision rule; shares in the training rows are the usual prior"
    ),
    "tempered": Stated(
        False, "not stated: no correction of probabilities is described, so there is none"
    ),
    "test_share": Stated(
        0.2, "section 3.3: 80 % of the positive patches are learned from; at most 1,000 are scored"
    ),
    "size": Stated(30, "section 3.3"),
    "width": Stated(0, "section 3.3: square patches"),
    "height": Stated(0, "section 3.3: square patches"),
    "max_steps": Stated(
        5000, "section 3.3: until convergence, which 'patience' finds before this many steps"
    ),
    "adam_steps": Stated(1000, "not stated: the optimizer; a fifth of all steps, as by default"),
    "patience": Stated(
        40, "section 3.3: until convergence; not stated: how it is judged, so by the default rule"
    ),
    "restarts": Stated(1, "not stated: one start, from principal components"),
}
