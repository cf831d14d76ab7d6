"""GP with input noise of one unknown variance for each column: NIGP (McHutchon and Rasmussen 2011).

To first order, noise of the inputs is noise of the targets that grows with the slope of the
function: a row has the noise variance sigma^2 + sum_d slope_d^2 psi_d. The slopes are those of the
posterior mean. They are held while the other parameters are learned, and then computed anew. The
publication has a full GP; here it is sparse, by FITC. The inducing inputs are not learned: learned
ones gave means whose slopes follow the noise of the targets.

    model = NIGP.build(X, y, inducing=100)
    model.learn()
    mean, variance = model.predict(X_new)                               # at exact inputs
    psi = model.input_variance
"""

from __future__ import annotations

import math

import torch
from jaxtyping import Float
from torch import Tensor, nn

from scant.models.dfgp.hidden import ViewStack
from scant.models.fitc import FITC
from scant.optim.adam_lbfgs import AdamLBFGS
from scant.optim.ascent import maximize


class NIGP(FITC):
    """Sparse GP regression from noisy inputs; construct it with `build`, train it with `learn`."""

    slopes: Float[Tensor, "n d"]  # at the training rows, of standardized inputs and targets

    def __init__(
        self,
        views: ViewStack,
        x: Float[Tensor, "n d"],
        y: Float[Tensor, " n"],
        inducing: Float[Tensor, "m d"],
        ard: bool,
    ) -> None:
        super().__init__(views, x, y, inducing, ard)
        self.register_buffer("slopes", torch.zeros_like(x))
        # The start of the authors' program: a tenth of the inputs' deviation.
        self.log_psi = nn.Parameter(torch.full(x.shape[1:], math.log(0.01)).to(x))
        self.inducing.requires_grad_(False)

    @property
    def row_noise(self) -> Float[Tensor, " n"]:
        """Noise variance of each training row, in the unit of standardized targets."""
        return self.likelihood.noise + self.slopes.square() @ self.log_psi.exp()

    @property
    def input_variance(self) -> Float[Tensor, " d"]:
        """Variance psi of the noise of each column, in the columns' unit."""
        return self.log_psi.detach().exp() * self.views.scale[0].square()

    def slopes_of_mean(self) -> Float[Tensor, "n d"]:
        """Slopes of the posterior mean at the training rows, inputs and targets standardized."""
        x, weights = self.x.clone().requires_grad_(), self.weights()
        total = (self.covar_module(x, self.inducing.detach()).to_dense() @ weights).sum()
        return torch.autograd.grad(total, x)[0]

    def learn(self, iterations: int = 10, steps: int = 100) -> None:
        """Train without noise of the inputs, then with it; keep the parameters of most density.

        Args:
            iterations: How often, at most, the slopes are computed.
            steps: Most steps of L-BFGS with the same slopes.
        """
        best, state = -math.inf, dict[str, Tensor]()
        for iteration in range(iterations + 1):
            if iteration:
                self.slopes.copy_(self.slopes_of_mean())
            maximize(AdamLBFGS(self, self.log_density, len(self.y), adam=0), steps)
            density = float(self.log_density().detach())
            if not density > best:
                break
            best, state = density, {n: v.clone() for n, v in self.state_dict().items()}
        self.load_state_dict(state)
