"""The first Gaussian process: its algebra beside GPyTorch's; the page by mouse, finger and keys."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import gpytorch
import numpy as np
import pytest
import torch
from playwright.sync_api import Browser, Page, expect
from scipy.optimize import minimize

from tests.browser.accessible import assert_accessible
from tests.browser.visiting import button

KERNELS: dict[str, Callable[[], Any]] = {
    "rbf": gpytorch.kernels.RBFKernel,
    "matern52": lambda: gpytorch.kernels.MaternKernel(nu=2.5),
    "matern32": lambda: gpytorch.kernels.MaternKernel(nu=1.5),
    "periodic": gpytorch.kernels.PeriodicKernel,
}
PARAMS = {"lengthscale": 0.8, "noise": 0.15, "outputscale": 1.3, "period": 3.7}
BOUNDS = {"lengthscale": [0.1, 10], "noise": [0.01, 1], "outputscale": [0.2, 3]}
MODULE = "const gp = await import('/assets/gp/algebra.js')"
FITTED = f"""async ([points, params, inputs]) => {{
  {MODULE}
  const model = gp.fit(points, params), {{mean, deviation}} = gp.predict(model, inputs)
  const {{evidence, dataFit, complexity}} = model
  return {{mean: [...mean], deviation: [...deviation], evidence, dataFit, complexity}}
}}"""
# Curves are linear in their normal numbers, so unit vectors give the root of their covariance.
SPREAD = f"""async ([points, params, grid]) => {{
  {MODULE}
  const model = gp.fit(points, params), root = gp.priorRoot(params, grid)
  const n = points.length, m = grid.length, total = m + 2 * n
  const draws = [-1, ...Array(total).keys()].map((k) => {{
    const z = Float64Array.from({{length: total}}, (_, j) => Number(j === k))
    return {{grid: z.slice(0, m), points: z.slice(m, m + n), noise: z.slice(m + n)}}
  }})
  const curves = gp.pathwise(model, root, grid, draws)
  return curves.map(({{prior, posterior}}) => [[...prior], [...posterior]])
}}"""
BEST = f"""async ([points, params, bounds]) => {{
  {MODULE}
  return gp.maximize(points, params, bounds)
}}"""


class ExactGP(gpytorch.models.ExactGP):
    """GPyTorch's exact GP with mean zero and the page's parameters."""

    def __init__(self, kernel: str, params: dict[str, float], x: torch.Tensor, y: torch.Tensor):
        super().__init__(x, y, gpytorch.likelihoods.GaussianLikelihood())
        self.mean_module = gpytorch.means.ZeroMean()
        self.covar_module = gpytorch.kernels.ScaleKernel(KERNELS[kernel]())
        self.double()
        base = self.covar_module.base_kernel
        # As tensors: GPyTorch takes numbers in single precision.
        at = {name: torch.tensor(value, dtype=torch.float64) for name, value in params.items()}
        # GPyTorch's periodic kernel divides by the lengthscale, not by its square.
        base.lengthscale = at["lengthscale"] ** (2 if kernel == "periodic" else 1)
        if kernel == "periodic":
            base.period_length = at["period"]
        self.covar_module.outputscale = at["outputscale"] ** 2
        self.likelihood.noise = at["noise"] ** 2

    def forward(self, x: torch.Tensor) -> Any:
        return gpytorch.distributions.MultivariateNormal(self.mean_module(x), self.covar_module(x))


def data(n: int = 12) -> tuple[torch.Tensor, torch.Tensor, list[dict[str, float]]]:
    generator = np.random.default_rng(0)
    x = np.sort(generator.uniform(0, 10, n))
    y = np.sin(x) + 0.2 * generator.standard_normal(n)
    points = [{"x": float(a), "y": float(b), "slot": k} for k, (a, b) in enumerate(zip(x, y))]
    return torch.tensor(x), torch.tensor(y), points


@pytest.fixture
def first_gp(page: Page, app_url: str) -> Page:
    page.goto(f"{app_url}/gp")
    expect(page.locator(".evidence-value")).not_to_have_text("–")
    return page


@pytest.mark.parametrize("kernel", KERNELS)
def test_posterior_and_evidence_are_gpytorchs(kernel: str, first_gp: Page) -> None:
    x, y, points = data()
    inputs = torch.linspace(0, 10, 60, dtype=torch.float64)
    model = ExactGP(kernel, PARAMS, x, y)
    result = first_gp.evaluate(FITTED, [points, {"kernel": kernel, **PARAMS}, inputs.tolist()])
    exact = gpytorch.settings.fast_computations(False, False, False)
    with torch.no_grad(), exact, gpytorch.settings.fast_pred_var(False):
        mll = gpytorch.mlls.ExactMarginalLogLikelihood(model.likelihood, model)
        evidence = float(mll(model(x), y)) * len(x)
        model.eval()
        posterior = model(inputs)
        np.testing.assert_allclose(result["mean"], posterior.mean, rtol=0, atol=1e-8)
        variance = np.square(result["deviation"])
        np.testing.assert_allclose(variance, posterior.variance, rtol=0, atol=1e-8)
        K = model.likelihood(model.forward(x)).covariance_matrix.numpy()
    assert result["evidence"] == pytest.approx(evidence, abs=1e-8)
    fit = -0.5 * y.numpy() @ np.linalg.solve(K, y.numpy())
    assert result["dataFit"] == pytest.approx(fit, abs=1e-8)
    complexity = 0.5 * np.linalg.slogdet(2 * np.pi * K)[1]
    assert result["complexity"] == pytest.approx(complexity, abs=1e-8)


@pytest.mark.parametrize("kernel", KERNELS)
def test_samples_have_mean_and_covariance_of_prior_and_posterior(
    kernel: str, first_gp: Page
) -> None:
    x, y, points = data(7)
    grid = torch.linspace(0, 10, 40, dtype=torch.float64)
    model = ExactGP(kernel, PARAMS, x, y)
    curves = np.array(
        first_gp.evaluate(SPREAD, [points, {"kernel": kernel, **PARAMS}, grid.tolist()])
    )
    center, roots = curves[0], curves[1:] - curves[0]
    with torch.no_grad(), gpytorch.settings.fast_pred_var(False):
        prior = model.covar_module(grid).to_dense()
        posterior = model.eval()(grid)
    jitter = 1e-5  # that of the grid's Cholesky factor is 1e-8, and is the square of an error
    np.testing.assert_allclose(center[0], 0, atol=1e-12)
    np.testing.assert_allclose(roots[:, 0].T @ roots[:, 0], prior, atol=jitter)
    np.testing.assert_allclose(center[1], posterior.mean, atol=jitter)
    np.testing.assert_allclose(
        roots[:, 1].T @ roots[:, 1], posterior.covariance_matrix, atol=jitter
    )


def test_best_by_evidence_is_no_worse_than_lbfgs_from_many_starts(first_gp: Page) -> None:
    x, y, points = data(15)
    best = first_gp.evaluate(BEST, [points, {"kernel": "rbf", **PARAMS}, BOUNDS])
    distance = np.subtract.outer(x.numpy(), x.numpy())

    def negative(logs: np.ndarray) -> float:
        length, noise, scale = np.exp(logs)
        K = scale**2 * np.exp(-0.5 * (distance / length) ** 2) + noise**2 * np.eye(len(x))
        return float(
            0.5 * y.numpy() @ np.linalg.solve(K, y.numpy())
            + 0.5 * np.linalg.slogdet(2 * np.pi * K)[1]
        )

    box = np.log(list(BOUNDS.values()))
    generator = np.random.default_rng(1)
    starts = generator.uniform(box[:, 0], box[:, 1], (20, 3))
    reached = min(minimize(negative, s, bounds=box, method="L-BFGS-B").fun for s in starts)
    assert negative(np.log([best[name] for name in BOUNDS])) <= reached + 1e-6


def evidence(page: Page) -> float:
    return float(page.locator(".evidence-value").inner_text().replace("\N{MINUS SIGN}", "-"))


def pixel(page: Page, x: float, y: float) -> tuple[float, float]:
    """Pixels of a point of the plot in the window."""
    box = page.locator(".field").bounding_box()
    assert box is not None
    return box["x"] + box["width"] * x / 10, box["y"] + box["height"] * (3 - y) / 6


@pytest.mark.usefixtures("nothing_complains")
def test_points_are_clicked_dragged_and_removed(first_gp: Page) -> None:
    page, status = first_gp, first_gp.locator(".gp [role=status]")
    points = page.locator(".points i")
    expect(points).to_have_count(9)
    button(page, "Clear").click()
    expect(points).to_have_count(0)
    expect(page.locator(".reading")).to_contain_text("this is the prior")
    expect(button(page, "Best by evidence")).to_be_disabled()
    for x, y in ((2, 1), (4, -1), (7, 0.5)):
        page.mouse.click(*pixel(page, x, y))
    expect(points).to_have_count(3)
    expect(status).to_contain_text("Point added at x 7.0, y 0.5; 3 points, log evidence")
    before = evidence(page)
    page.mouse.move(*pixel(page, 4, -1))
    page.mouse.down()
    page.mouse.move(*pixel(page, 5, 2), steps=5)
    page.mouse.up()
    expect(status).to_contain_text("Point moved to x 5.0, y 2.0; 3 points")
    assert evidence(page) != before
    page.mouse.click(*pixel(page, 5, 2))
    expect(points).to_have_count(2)
    pair = r"[\d.]+,[\d.]+"
    assert re.search(rf"#kernel=rbf&lengthscale=0\.5&.*&points={pair};{pair}$", page.url)
    page.reload()
    expect(points).to_have_count(2)


@pytest.mark.usefixtures("nothing_complains")
def test_a_slider_changes_the_evidence_and_the_best_has_most(first_gp: Page) -> None:
    page = first_gp
    before = evidence(page)
    slider = page.get_by_role("slider", name="Lengthscale")
    slider.press("Home")
    expect(slider).to_have_attribute("aria-valuetext", "0.100")
    shortest = evidence(page)
    assert shortest != before
    expect(page.locator(".reading")).to_contain_text("The lengthscale is too short")
    button(page, "Best by evidence").click()
    expect(page.locator(".gp [role=status]")).to_contain_text("Best by evidence: 9 points")
    assert evidence(page) > max(before, shortest)
    expect(page.locator(".reading")).to_contain_text("no other lengthscale has clearly more")
    expect(page.get_by_role("slider", name="Period")).to_be_disabled()
    page.get_by_label("Kernel").select_option("Periodic")
    expect(page.get_by_role("slider", name="Period")).to_be_enabled()
    page.get_by_label("Posterior samples").check()
    button(page, "Example").click()
    assert evidence(page) == before


def test_keys_add_carry_and_remove_a_point(first_gp: Page) -> None:
    page, status = first_gp, first_gp.locator(".gp [role=status]")
    button(page, "Clear").click()
    page.locator(".field").focus()
    page.keyboard.press("Shift+ArrowRight")
    page.keyboard.press("ArrowUp")
    expect(status).to_have_text("x 5.5, y 0.1; prediction 0.0 ± 2.0.")
    page.keyboard.press("Enter")
    expect(status).to_contain_text("Point added at x 5.5, y 0.1; 1 point,")
    page.keyboard.press("Space")
    expect(status).to_contain_text("picked up")
    page.keyboard.press("ArrowLeft")
    expect(status).to_contain_text("x 5.4, y 0.1, carries a point; prediction")
    page.keyboard.press("Space")
    expect(status).to_contain_text("Point moved to x 5.4, y 0.1")
    page.keyboard.press("Enter")
    expect(status).to_contain_text("Point removed at x 5.4, y 0.1; no points")


def test_a_question_hides_the_evidence_until_it_is_revealed(first_gp: Page) -> None:
    page = first_gp
    before = evidence(page)
    page.get_by_role("switch", name="Guess first").check()
    expect(page.locator(".points i")).to_have_count(12)
    expect(page.locator(".question")).to_contain_text("Which lengthscale")
    expect(page.locator(".evidence-value")).to_be_hidden()
    expect(button(page, "Best by evidence")).to_be_disabled()
    page.mouse.click(*pixel(page, 5, -2.5))  # the points of a question stay
    expect(page.locator(".points i")).to_have_count(12)
    page.get_by_role("slider", name="Lengthscale").press("End")
    button(page, "Reveal").click()
    expect(page.locator(".answer")).to_contain_text(
        re.compile(r"drawn with lengthscale [\d.]+\. You guessed 10\.0: [\d.]+ times too long\.")
    )
    expect(page.locator(".evidence-value")).to_be_visible()
    address = page.url
    assert address.endswith("#guess=1")
    button(page, "Another curve").click()
    expect(page.locator(".answer")).to_be_empty()
    page.get_by_role("switch", name="Guess first").uncheck()
    assert evidence(page) == before
    page.goto(address)
    expect(page.get_by_role("switch", name="Guess first")).to_be_checked()


@pytest.mark.parametrize(
    ("address", "fault"),
    [
        ("lengthscale=99", "lengthscale must be a number from 0.1 to 10"),
        ("kernel=constructor", "kernel must be one of rbf, matern52"),
        ("points=1,1;2", "each point must be two numbers"),
        ("points=1,<b>", "y must be a number from -3 to 3"),
        ("colour=red", 'it has no part "colour"'),
        ("guess=0.5", "guess must be"),
    ],
)
def test_a_broken_link_shows_the_example_and_says_why(
    address: str, fault: str, page: Page, app_url: str
) -> None:
    page.goto(f"{app_url}/gp#{address}")
    expect(page.get_by_role("alert")).to_contain_text(f"This link is broken: {fault}")
    expect(page.locator(".points i")).to_have_count(9)


def test_a_link_holds_kernel_parameters_and_points(page: Page, app_url: str) -> None:
    page.goto(f"{app_url}/gp#kernel=matern32&lengthscale=2&noise=0.3&points=1,1;3,-2.5")
    expect(page.locator(".points i")).to_have_count(2)
    expect(page.get_by_label("Kernel")).to_have_value("matern32")
    expect(page.get_by_role("slider", name="Noise")).to_have_attribute("aria-valuetext", "0.300")
    page.evaluate("location.hash = '#points=1,1'")  # another link, in the same window
    expect(page.locator(".points i")).to_have_count(1)
    expect(page.get_by_label("Kernel")).to_have_value("rbf")


def test_a_finger_adds_and_removes_on_a_phone(browser: Browser, app_url: str) -> None:
    context = browser.new_context(
        viewport={"width": 390, "height": 844}, has_touch=True, reduced_motion="reduce"
    )
    page = context.new_page()
    page.goto(f"{app_url}/gp#points=2,1")
    points = page.locator(".points i")
    expect(points).to_have_count(1)
    page.touchscreen.tap(*pixel(page, 6, -1))
    expect(points).to_have_count(2)
    page.touchscreen.tap(*pixel(page, 2, 1))
    expect(points).to_have_count(1)
    assert not page.evaluate("document.documentElement.scrollWidth > innerWidth")
    context.close()


@pytest.mark.parametrize(("width", "height"), [(1280, 800), (1920, 1080)])
def test_plot_and_controls_are_whole_on_the_first_screen(
    width: int, height: int, first_gp: Page
) -> None:
    first_gp.set_viewport_size({"width": width, "height": height})
    for guess in (False, True):
        if guess:
            first_gp.get_by_role("switch", name="Guess first").check()
            button(first_gp, "Reveal").click()
        for part in (".view", ".panel"):
            box = first_gp.locator(part).bounding_box()
            assert box is not None
            assert box["y"] + box["height"] <= height


@pytest.mark.slow("assets", "dashboard/scant_dashboard/pages")
def test_axe_finds_nothing_against_it_and_its_equations_open(first_gp: Page) -> None:
    assert_accessible(first_gp, "Now the same with scarce …")
    first_gp.get_by_text("Read on").click()
    expect(first_gp.locator(".katex").first).to_be_visible()
