"""L-BFGS with single steps, cached evaluations and a serializable state."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from contextlib import suppress

import torch
from jaxtyping import Float
from linear_operator.utils.errors import NanError, NotPSDError
from torch import Tensor, nn
from torch.nn.utils import parameters_to_vector, vector_to_parameters

LINE_SEARCH_EVALUATIONS = 25
HISTORY = ("old_dirs", "old_stps", "ro")  # state of torch with the past steps
SCALARS = ("t", "H_diag", "prev_loss", "n_iter", "func_evals")


class LBFGS:
    """Steps of `torch.optim.LBFGS` with strong Wolfe line searches.

    torch repeats the evaluation at the end of the last line search at the start of each step. The
    closure caches evaluations, so that a step costs only its line search. A non-finite value or a
    failed factorization counts as a large value, from which the line search returns.

        optimizer = LBFGS(model.parameters(), lambda: model.objective(X, y))
        while not optimizer.stalled:
            value = optimizer.step()

    Args:
        parameters: Parameters with the same device and dtype.
        objective: Function that computes the value to minimize.
        history: Number of past steps in the approximation of the inverse Hessian.
        scale: Divisor of the objective for gradients and line searches, such as the number of rows;
            `step` returns the objective without it.
    """

    def __init__(
        self,
        parameters: Iterable[nn.Parameter],
        objective: Callable[[], Float[Tensor, ""]],
        history: int = 20,
        scale: float = 1.0,
    ) -> None:
        self.parameters = list(parameters)
        self.objective = objective
        self.history, self.scale = history, scale
        self.evaluations = 0
        self.idle = 0  # consecutive steps without a change of the parameters
        self._evaluations: list[tuple[Tensor, float, Tensor]] = []
        self._inner = self._fresh()

    def _fresh(self) -> torch.optim.LBFGS:
        return torch.optim.LBFGS(
            self.parameters,
            max_iter=1,
            max_eval=LINE_SEARCH_EVALUATIONS + 1,
            tolerance_grad=0.0,
            tolerance_change=0.0,
            history_size=self.history,
            line_search_fn="strong_wolfe",
        )

    @property
    def stalled(self) -> bool:
        """True if even steepest descent finds no lower value."""
        return self.idle >= 2

    def step(self) -> float:
        """Take a step and return the objective after it; NaN if it is not finite.

        If the parameters do not change, the history is dropped, so that the next step is steepest
        descent.
        """
        before, value, gradient = self._evaluate()
        if not math.isfinite(value):
            return math.nan
        self._inner.step(lambda: self._closure(value / self.scale))
        after, value, gradient = self._evaluate()
        self._evaluations = [(after, value, gradient)]
        if torch.equal(before, after):
            self.idle += 1
            self._inner = self._fresh()
        else:
            self.idle = 0
        return value

    def _vector(self) -> Tensor:
        return parameters_to_vector([p.detach() for p in self.parameters])

    def _evaluate(self) -> tuple[Tensor, float, Tensor]:
        """Return parameters, value and gradient at the current point, cached if possible."""
        point = self._vector()
        for evaluation in reversed(self._evaluations):
            if torch.equal(evaluation[0], point):
                return evaluation
        for p in self.parameters:
            p.grad = None
        loss = math.nan
        with torch.enable_grad(), suppress(NanError, NotPSDError, torch.linalg.LinAlgError):
            value = self.objective()
            (value / self.scale).backward()  # type: ignore[no-untyped-call]
            loss = value.item()
        gradient = torch.cat(
            [
                torch.zeros_like(p).ravel() if p.grad is None else p.grad.ravel()
                for p in self.parameters
            ]
        )
        self.evaluations += 1
        if not bool(torch.isfinite(gradient).all()):
            loss = math.nan
        self._evaluations.append((point, loss, gradient))
        return self._evaluations[-1]

    def _closure(self, start: float) -> Tensor:
        _, value, gradient = self._evaluate()
        value /= self.scale
        if not math.isfinite(value):
            value, gradient = start + 1e6 * (1 + abs(start)), torch.zeros_like(gradient)
        for p in self.parameters:
            p.grad = torch.empty_like(p)
        vector_to_parameters(gradient.clone(), [p.grad for p in self.parameters])  # type: ignore[misc]
        return torch.tensor(value, dtype=torch.float64)

    def state_dict(self) -> dict[str, Tensor]:
        """Return the state except the parameters as tensors, to continue with identical results."""
        inner = self._inner.state[self.parameters[0]]
        state = {
            "counts": torch.tensor([self.evaluations, self.idle], dtype=torch.int64),
        }
        if self._evaluations:
            point, value, gradient = self._evaluations[-1]
            state |= {"point": point, "value": torch.tensor(value, dtype=torch.float64)}
            state["gradient"] = gradient
        if inner.get("d") is None:
            return {k: v.clone() for k, v in state.items()}
        for name in SCALARS:
            state[name] = torch.as_tensor(inner[name], dtype=torch.float64)
        state |= {"d": inner["d"], "prev_flat_grad": inner["prev_flat_grad"]}
        if inner["old_dirs"]:
            for name in HISTORY:
                state[name] = torch.stack([torch.as_tensor(v) for v in inner[name]])
        return {k: v.detach().clone() for k, v in state.items()}

    def load_state_dict(self, state: dict[str, Tensor]) -> None:
        """Load the state; parameters must be loaded separately."""
        device = self.parameters[0].device
        state = {k: v.clone().to(device) for k, v in state.items()}
        self.evaluations, self.idle = (int(v) for v in state["counts"])
        self._evaluations = []
        if "point" in state:
            self._evaluations = [(state["point"], state["value"].item(), state["gradient"])]
        self._inner = self._fresh()
        if "d" not in state:
            return
        inner = self._inner.state[self.parameters[0]]
        for name in HISTORY:
            inner[name] = list(state[name]) if name in state else []
        inner |= {"d": state["d"], "prev_flat_grad": state["prev_flat_grad"]}
        inner |= {k: state[k].item() for k in ("t", "prev_loss")}
        inner |= {k: int(state[k]) for k in ("n_iter", "func_evals")}
        inner["H_diag"] = state["H_diag"].to(state["d"].dtype)
