"""Growth of models: few basis functions of one shape first, then more and freer ones.

Several models of the same rows are trained together, each on a different division of them, so that
many rows that a model has not seen score the models. A stage starts from the best models so far,
with one change (`growth_budget.GrowthBudget.after`): a freer shape, freer precisions, or twice as
many basis functions, with new ones where residuals are large and no old one is near. Stages with
tied precisions (nearly a Gaussian process) start from initial values, and so do many diagonal basis
functions, which are tried after a few full ones. A stage is accepted if the gain on unseen rows
exceeds its noise.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import torch
from torch import Tensor

from scant.inference.expectations import log_kernel
from scant.models.gpz.change_of_basis import structure_of
from scant.models.gpz.log_evidence import LogEvidence
from scant.models.gpz.model import GPz
from scant.optim.ascent import Convergence
from scant.studies.protocol import Step, Tensors, part
from scant.studies.redshift.fold import Fold, Place, weighted_mean
from scant.studies.redshift.growth_budget import TIED, GrowthBudget, Stage
from scant.studies.redshift.settings import SHAPES
from scant.studies.redshift.shapes import parameters_of, take, tie

NOISE = 0.5  # standard errors subtracted from a gain
FAILURES = 3  # stages in a row without a gain, after which growth ends
TOLERANCE = 1e-4  # nats a row; smaller gains do not count
FAR = 9.0  # cap on the squared distance of a row from a basis function, to draw centers
LARGE = 25.0  # cap on the squared residual, in units of its variance, likewise
PRIOR = 2.0  # largest logarithm of a new weight's prior precision


class Growth:
    """Training by stages until none gains or the time is used.

    Args:
        folds: The divisions of the rows.
        budget: Limits of growth.
        make: Makes a model of a number of basis functions and a shape.
        seed: Seed of random draws.
        patience: Steps without a better score that end a stage; 0: none do.
        place: Constructor of `RowSums` (see `LogEvidence`).
    """

    def __init__(
        self,
        folds: list[Fold],
        budget: GrowthBudget,
        make: Callable[[int, str], GPz],
        seed: int,
        patience: int,
        place: Place,
    ) -> None:
        self.folds, self.budget, self.make, self.place = folds, budget, make, place
        self.seed, self.patience = seed, patience
        self.omega = torch.cat([f.unseen.omega for f in folds])
        self.best: list[Tensors] = []
        self.best_rows = self.base_rows = self.omega.new_zeros(0)  # log densities of unseen rows
        self.best_score = self.stage_score = self.base_score = -math.inf
        self.elbo, self.used = math.nan, 0.0
        self.steps, self.failures, self.convergence = 0, 0, Convergence()
        self.tried: list[list[float]] = []
        self.notes: list[str] = []  # warnings of the last step
        self.ended = ""  # why, once it has
        self.stage = self.best_stage = budget.first
        self._begin()

    def step(self) -> Step:
        """Take a step of every model, and score each on its unseen rows.

        The score of a stage is the score of its initial models plus the gain since, less half of
        the gain's standard error.
        """
        elbo, total = 0.0, 0.0
        rows: list[Tensor] = []
        notes: list[str] = []
        for fold in self.folds:
            elbo += fold.trainer.step()
            total += fold.trainer.log_evidence.total_omega
            densities, warnings = fold.score()
            rows.append(densities)
            notes += warnings
        self.notes = notes
        self.steps += 1
        self.used += self.budget.step_seconds(self.stage)
        score = self._judge(torch.cat(rows)) if math.isfinite(elbo) else -math.inf
        over = not math.isfinite(elbo) or all(f.trainer.stalled for f in self.folds)
        if not over and self.best:
            over = self.convergence.reached(self.patience)
        if self.best and (over or self.used > self.budget.seconds):
            self._end_stage()
        if math.isfinite(elbo) or not self.best:  # a stage that diverges is a stage without a gain
            self.elbo = elbo / total
        return Step(self.elbo, score)

    def _judge(self, rows: Tensor) -> float:
        """Score log densities, and store the models if they are the best."""
        score = weighted_mean(rows, self.omega)
        if len(self.base_rows):
            gain = rows - self.base_rows
            mean = weighted_mean(gain, self.omega)
            error = math.sqrt(weighted_mean((gain - mean).square(), self.omega) / len(rows))
            score = self.base_score + mean - NOISE * error
        if not math.isfinite(score):
            return -math.inf
        self.stage_score = max(self.stage_score, score)
        if score > self.best_score:
            self.best_score, self.best_rows, self.best_stage = score, rows, self.stage
            self.best = [_copied(parameters_of(f.model)) for f in self.folds]
        self.convergence.gains(score, TOLERANCE)
        return score

    def _end_stage(self) -> None:
        """End a stage and begin the next, if any."""
        self.tried = self.history()
        self.failures = 0 if self.best_stage == self.stage else self.failures + 1
        tried = {(int(m), int(c), int(f)) for m, c, f, *_ in self.tried}
        left = [
            s
            for s in self.budget.after(self.best_stage)
            if (s.n_basis, SHAPES.index(s.shape), s.free) not in tried
        ]
        affordable = [s for s in left if self.budget.fits(s, self.used)]
        if self.failures >= FAILURES or not left:
            self.ended = "larger or freer models do not predict unseen rows better"
        elif not affordable:
            self.ended = f"{left[0]} would not end within the time budget"
        if self.ended:
            return
        self.stage = affordable[0]
        self.base_rows, self.base_score = self.best_rows, self.best_score
        self.stage_score, self.convergence.since_best = -math.inf, 0
        if self.stage.free != TIED and self.budget.anew(self.stage, self.best_stage):
            self.convergence.anchor = -math.inf  # its scores are low at first
        self._begin()

    def history(self) -> list[list[float]]:
        """Stages so far, with the present one, as the report's array `tried`."""
        if self.ended:
            return self.tried
        shape = float(SHAPES.index(self.stage.shape))
        present = [self.stage.n_basis, shape, self.stage.free, self.stage_score, self.used]
        return [*self.tried, present]

    def _begin(self) -> None:
        """Set up the models of a stage."""
        for k, fold in enumerate(self.folds):
            generator = torch.Generator().manual_seed(
                7919 * self.seed + 101 * k + 10_007 * len(self.tried)
            )
            if self.best and not self.budget.anew(self.stage, self.best_stage):
                model = self.made(self.stage.n_basis, self.stage.shape, fold)
                take(model, self._larger(self.best[k], fold, model, generator))
            else:
                model = self.make(self.stage.n_basis, self.stage.shape)
                r, most = fold.train, self.budget.trained(self.stage)
                model.init_from_data(r.X[:most], r.y[:most], generator)
            self._train(fold, model)

    def made(self, n_basis: int, shape: str, fold: Fold) -> GPz:
        """New model that fills missing inputs of its linear mean as the fold's model does."""
        model = self.make(n_basis, shape)
        model.input_mean.copy_(fold.model.input_mean)
        model.input_precision.copy_(fold.model.input_precision)
        return model

    def _train(self, fold: Fold, model: GPz) -> None:
        tie(model, self.stage.free)
        fold.begin(model, self.place, self.budget.trained(self.stage))

    @torch.no_grad()
    def _larger(self, best: Tensors, fold: Fold, model: GPz, generator: torch.Generator) -> Tensors:
        """Extend parameters to the number of basis functions of `model`.

        New centers are rows drawn by squared residual times distance from the nearest old one,
        whose shape they take, somewhat narrower.
        """
        m, d = best["centres"].shape
        n_new = len(model.centres) - m
        if n_new <= 0:
            return best
        old = self.made(m, structure_of(best["gamma"]), fold)
        take(old, best)
        r = fold.train[torch.arange(min(self.budget.trained(self.stage), len(fold.train.y)))]
        old.take_posterior(LogEvidence(old, r.X, r.y, r.omega, r.noise).posterior())
        X = fold.filled(r.X)
        predicted = old.predict(X)
        residual = ((r.y - predicted.mean).square() / predicted.variance).clamp(max=LARGE)
        distances = -2 * log_kernel(X, old.centres, old.precision())
        distance, nearest = distances.min(dim=1)
        draw_weights = (residual * distance.clamp(1e-6, FAR) * r.omega).clamp(min=1e-12).cpu()
        new = torch.multinomial(draw_weights, n_new, generator=generator).to(X.device)
        gamma = best["gamma"][nearest[new]] * (len(model.centres) / m) ** (1 / d)
        log_alpha = best["log_alpha"][:m].median().clamp(max=PRIOR).expand(n_new)
        parameters = {
            **best,
            "centres": torch.cat([best["centres"], X[new]]),
            "gamma": torch.cat([best["gamma"], gamma]),
            "log_alpha": torch.cat([best["log_alpha"][:m], log_alpha, best["log_alpha"][m:]]),
        }
        if "v" in best:
            tau = best["log_tau"].median().clamp(max=PRIOR).expand(n_new)
            parameters["v"] = torch.cat([best["v"], torch.zeros_like(tau)])
            parameters["log_tau"] = torch.cat([best["log_tau"], tau])
        return parameters

    # --- checkpoints ------------------------------------------------------------------------------

    def parameters(self) -> Tensors:
        """Return the parameters of the models being trained, by their number."""
        each = [parameters_of(fold.model) for fold in self.folds]
        return {
            f"{k}.{name}": v for k, parameters in enumerate(each) for name, v in parameters.items()
        }

    def state(self) -> Tensors:
        """Other tensors that the next step needs."""
        stages = [[s.n_basis, SHAPES.index(s.shape), s.free] for s in (self.stage, self.best_stage)]
        c = self.convergence
        scores = [self.best_score, c.anchor, self.base_score, self.stage_score, self.elbo]
        counters = [*scores, self.used, self.steps, self.failures, c.since_best]
        return {
            "stages": torch.tensor(stages),
            "counters": torch.tensor(counters, dtype=torch.float64),
            "tried": torch.tensor(self.tried, dtype=torch.float64).reshape(-1, 5),
            "best_rows": self.best_rows,
            "base_rows": self.base_rows,
            **{f"best.{k}.{n}": v for k, one in enumerate(self.best) for n, v in one.items()},
            **{
                f"trainer.{k}.{n}": v
                for k, fold in enumerate(self.folds)
                for n, v in fold.trainer.state_dict().items()
            },
        }

    def load(self, parameters: Tensors, state: Tensors) -> None:
        """Restore the state of a run."""
        present, best = (Stage(int(m), SHAPES[int(c)], int(f)) for m, c, f in state["stages"])
        self.stage, self.best_stage = present, best
        *scores, self.used, steps, failures, since_best = state["counters"].tolist()
        self.best_score, anchor, self.base_score, self.stage_score, self.elbo = scores
        self.steps, self.failures = int(steps), int(failures)
        self.convergence = Convergence(anchor, int(since_best))
        self.tried = state["tried"].tolist()
        self.best_rows = state["best_rows"].to(self.omega)
        self.base_rows = state["base_rows"].to(self.omega)
        best_parameters = [part(state, f"best.{k}.") for k in range(len(self.folds))]
        self.best = best_parameters if best_parameters[0] else []
        for k, fold in enumerate(self.folds):
            model = self.made(present.n_basis, present.shape, fold)
            take(model, part(parameters, f"{k}."))
            self._train(fold, model)
            fold.trainer.load_state_dict(part(state, f"trainer.{k}."))


def _copied(tensors: Tensors) -> Tensors:
    return {name: value.detach().clone() for name, value in tensors.items()}
