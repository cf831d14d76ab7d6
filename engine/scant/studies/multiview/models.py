"""Common interface of the models of rows in views."""

from __future__ import annotations

import math
from typing import Any

import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn

from scant.models.dfgp.model import DFGP
from scant.models.dfgp.training import DFGPTrainer
from scant.models.laplace import acquisition
from scant.models.student_t import StudentT, StudentTTrainer
from scant.models.svgp import SVGP, SVGPTrainer
from scant.optim.ascent import maximize
from scant.optim.trainer import Trainer
from scant.studies.multiview.settings import LAYERED, PROCESS_STEPS, MultiviewSettings


def rests(s: MultiviewSettings, name: str) -> bool:
    """True if the learning rate decays to the last step; L-BFGS stops by itself."""
    stochastic = name in LAYERED and s.bound == "stochastic"
    return (
        s.rate_falls and name != "student-t" and (stochastic or not s.adam_steps or name == "sgp")
    )


class Learner:
    """A model of one target and its trainer.

    Args:
        s: Settings without `auto` (`splits.settled`).
        name: One of `scant.studies.multiview.settings.MODELS`.
        views: Rows `"n d"` of each view.
        y: Targets on the scale of the model: logarithms if they are learned, classes as 0 and 1.
        classes: True if the target is one of two classes.
        censored: Rows whose target is only known to be above y.
        generator: A CPU generator for the start and the samples of the stochastic bound.
        steps: Number of training steps.

    Raises:
        BadInput: The target does not vary.
    """

    def __init__(
        self,
        s: MultiviewSettings,
        name: str,
        views: list[Tensor],
        y: Float[Tensor, " n"],
        classes: bool,
        censored: Bool[Tensor, " n"],
        generator: torch.Generator,
        steps: int,
    ) -> None:
        self.layered = name.startswith("dfgp")
        self.classes = classes
        self.model: Any
        self.trainer: Trainer
        kind = "bernoulli" if classes else "gaussian"
        if self.layered:
            censored_rows = censored if s.bound == "stochastic" and bool(censored.any()) else None
            self.model = DFGP.build(
                views,
                y,
                kind,  # type: ignore[arg-type]
                "rbf" if name == "dfgp" else "linear",
                s.n_inducing,
                generator,
                neurons=s.neurons,
                bound=s.bound,
                ard=s.ard,
                output_ard=s.output_ard,
                output_scale=s.output_scale,
                output_metric=s.output_metric,
                share_kernel=s.share_kernel,
                move=s.inducing_init == "learned",
                width=s.start_width,
                censored=censored_rows,
            )
            self.trainer = DFGPTrainer(
                self.model,
                s.adam_steps or steps,
                s.learning_rate,
                generator=generator,
                horizon=steps if rests(s, name) else None,
            )
        elif name == "sgp":
            joined = torch.cat(views, 1)
            self.model = SVGP.build(joined, y, kind, s.n_inducing, generator, s.ard)  # type: ignore[arg-type]
            self.trainer = SVGPTrainer(
                self.model, s.learning_rate, steps if rests(s, name) else None
            )
        else:
            df = float(s.neurons) if s.neurons > 2 else None
            self.model = StudentT.build(torch.cat(views, 1), y, df, ard=False)
            self.trainer = StudentTTrainer(self.model)

    def train(self, steps: int) -> None:
        """Train for `steps` steps, or fewer if none improves the bound."""
        if isinstance(self.model, StudentT):
            steps = min(steps, PROCESS_STEPS)
        maximize(self.trainer, steps)

    def state_dict(self) -> dict[str, Tensor]:
        """The model's state."""
        return dict(self.model.state_dict())

    def load_state_dict(self, state: dict[str, Tensor]) -> None:
        """Load the state of another model of the same rows."""
        nn.Module.load_state_dict(self.model, state)

    def ask(self, views: list[Tensor]) -> tuple[Float[Tensor, " n"], Float[Tensor, " n"]]:
        """Mean and variance of the target, including noise, on the scale of the model."""
        inputs = views if self.layered else torch.cat(views, 1)
        prediction = self.model.predict(inputs)
        return prediction[0].detach(), prediction[1].detach()

    @torch.no_grad()
    def removable(self, views: list[Tensor]) -> Float[Tensor, " n"]:
        """Share of the variance of a new value that more data would remove."""
        if self.layered:
            variance = self.model.latent(views)[1]
            return variance / (variance + self.model.noise)
        inputs = torch.cat(views, 1)
        if isinstance(self.model, StudentT):
            return 1 - self.model.noise_variance / self.model.predict(inputs)[1]
        noise = self.model.likelihood.noise * self.model.scale.square()
        return 1 - noise / self.model.predict(inputs)[1]

    def tails(self, views: list[Tensor]) -> float:
        """Degrees of freedom of the distribution of new values; infinite: Gaussian."""
        if not isinstance(self.model, StudentT):
            return math.inf
        return self.model.predict(torch.cat(views, 1))[2]

    def hidden(self, views: list[Tensor]) -> tuple[Float[Tensor, "n r"], Float[Tensor, "n r"]]:
        """Means and standard deviations of the hidden neurons; no columns if there are none."""
        if not self.layered:
            empty = views[0].new_empty((len(views[0]), 0))
            return empty, empty
        mean, variance = self.model.hidden(views)
        return mean, variance.clamp(min=0).sqrt()

    @torch.no_grad()
    def doubt(self, views: list[Tensor]) -> tuple[Float[Tensor, " n"], Float[Tensor, " n"]] | None:
        """Total uncertainty of each row, and the part that more data would remove.

        For classes, entropy and mutual information with f, in nats; for values, variances on the
        standardized scale. None for models that do not separate the two.
        """
        if not self.layered:
            return None
        mean, variance = self.model.latent(views)
        noise = self.model.noise
        if not self.classes:
            return variance + noise, variance
        p, probit_variance = self.model.probability(views), 1 + noise
        pool = acquisition.CandidatePool(
            p, mean / probit_variance.sqrt(), variance / probit_variance
        )
        return acquisition.entropy(p), acquisition.information(pool, "probit")

    def influence(self) -> Float[Tensor, " r"]:
        """Share of each neuron in the output kernel's relevance."""
        if not self.layered:
            return torch.empty(0, dtype=torch.float64)
        result = self.model.relevance()
        return result / result.sum().clamp(min=1e-300)
