"""`scant bench`: every case can be built and stepped, others do our work, and what is written."""

from __future__ import annotations

import math
import mmap
from dataclasses import replace
from importlib import metadata
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode
from typer.testing import CliRunner, Result

from scant.bench import builders, programs, rows, steps, table
from scant.bench.builders import gradient_of
from scant.bench.cases import MODELS, SWEEPS, Sweep, cases
from scant.bench.flops import FLOPS, gemm_rate, min_flops
from scant.bench.peers import measured, peers_of
from scant.bench.rows import On
from scant.bench.timing import Memory, Timing, timed, undisturbed
from scant.errors import NotFound
from scant.models.svgp import SVGP
from scant_dashboard.cli.main import app
from tests.engine.pretended import pretended

CPU = torch.device("cpu")
SMALL = {"n": 160, "m": 4, "classes": 3}  # 160 rows are 4 outputs, or 5 points a replica


def scant(*arguments: object) -> Result:
    return CliRunner().invoke(app, [str(w) for w in arguments])


def tiny(sweep: Sweep) -> dict[str, int]:
    small = SMALL | ({"classes": 4} if "patches" in sweep.model else {})
    return {name: small[name] for name in sweep.base}


@pytest.fixture
def few(monkeypatch: pytest.MonkeyPatch) -> None:
    """All of the command but its sizes."""
    chosen = [s for s in SWEEPS if s.model in ("student_t", "hgp", "dgplvm")]
    small = [replace(s, base=tiny(s), over={"n": (64, 96)}) for s in chosen]
    monkeypatch.setattr("scant.bench.cases.SWEEPS", tuple(small))


def named(sweep: Sweep) -> str:
    return f"{sweep.model}-{sweep.method}"


@pytest.mark.slow
@pytest.mark.parametrize("sweep", SWEEPS, ids=named)
def test_every_method_takes_a_step(sweep: Sweep) -> None:
    if why := sweep.cases()[0].refused():
        pytest.skip(why)
    step = sweep.build(on=On(CPU), **tiny(sweep))
    step()
    step()


OURS = [s for s in SWEEPS if s.cuda and s.method.startswith("Scant")]


@pytest.mark.slow
@pytest.mark.parametrize("sweep", OURS, ids=named)
def test_every_model_takes_a_step_where_its_rows_are(sweep: Sweep) -> None:
    with pretended() as device:
        sweep.build(on=On(device), **tiny(sweep))()


@pytest.mark.slow
def test_a_tensor_that_a_step_makes_elsewhere_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    bound = SVGP.row_elbo
    monkeypatch.setattr(SVGP, "row_elbo", lambda self: (bound(self) + torch.zeros(2)).sum())
    sweep = next(s for s in OURS if s.model == "svgp")
    sweep.build(on=On(CPU), **tiny(sweep))()
    with pretended() as device, pytest.raises(RuntimeError, match="mixes tensors of meta"):
        sweep.build(on=On(device), **tiny(sweep))()


@pytest.mark.cuda
@pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device")
@pytest.mark.parametrize("sweep", [s for s in SWEEPS if s.cuda], ids=named)
def test_every_method_takes_a_step_on_a_gpu(sweep: Sweep) -> None:
    device = torch.device("cuda")
    step = sweep.build(on=On(device), **tiny(sweep))
    torch.cuda.reset_peak_memory_stats(device)
    before = torch.cuda.memory_allocated(device)
    step()
    assert torch.cuda.max_memory_allocated(device) > before


def test_every_model_of_the_engine_is_measured() -> None:
    folder = Path(builders.__file__).parents[1] / "models"
    wanted = "gpz mtgpa hmogp_lv lvmogp hgp mogp_ar sclvm bgplvm dgplvm dfgp student_t laplace svgp"
    homes = {"bgplvm": "gplvm", "dgplvm": "gplvm", "sclvm": "gplvm", "hgp": "replicated"}
    homes |= {"hmogp_lv": "replicated", "lvmogp": "replicated/hmogp_lv"}
    assert all(list((folder / homes.get(m, "")).glob(f"{m}*")) for m in wanted.split())
    assert set(wanted.split()) <= set(MODELS)
    assert set(MODELS) - set(wanted.split()) == {"mogp_ar, patches"}


def test_cases_vary_one_size_at_a_time() -> None:
    for sweep in SWEEPS:
        for case in sweep.cases():
            differ = [k for k in case.sizes if case.sizes[k] != sweep.base[k]]
            assert differ == ([] if case.varies == "base" else [case.varies])


def test_quick_is_a_part_of_the_whole_and_holds_every_method() -> None:
    whole, quick = cases(), cases(quick=True)
    assert {(c.model, c.method) for c in quick} == {(c.model, c.method) for c in whole}
    assert len(quick) < 0.75 * len(whole)
    keys = [(c.model, c.method, c.varies, tuple(c.sizes.items())) for c in whole]
    assert len(set(keys)) == len(keys)
    assert {(c.model, c.method, c.varies, tuple(c.sizes.items())) for c in quick} <= set(keys)


def test_every_citation_is_of_a_case_that_quick_has_too() -> None:
    sizes = [tuple(c.sizes.get(k, 0) for k in table.SIZES) for c in cases(quick=True)]
    known = {(c.model, c.method, *s) for c, s in zip(cases(quick=True), sizes)}
    assert set(measured()) <= known
    assert all(peers[0].ms == min(p.ms for p in peers) for peers in measured().values())
    assert [p.ms for p in peers_of("mogp_ar", "Scant", 200, 100, 20)] == [20, 23, 51]
    assert peers_of("mogp_ar", "Scant", 200, 100, 21) == ()


def test_an_unknown_model_is_named_with_those_there_are() -> None:
    with pytest.raises(NotFound, match=r"'moon'.*gpz"):
        cases("moon")


def test_gpytorch_does_the_work_of_dhgp() -> None:
    """The same evidence per row, so that times compare."""
    model = builders.hierarchy(rows.curves(4, 8, 4), "DHGP")
    ours = builders.gradient_of(model, lambda: -model.elbo())
    theirs = steps.gpytorch_dhgp(128, On(CPU))
    torch.testing.assert_close(theirs(), ours() / 128)


def test_the_loop_leaves_out_the_warm_up_and_counts_rounds() -> None:
    calls: list[int] = []
    took = timed(lambda: calls.append(1), CPU, rounds=7)
    assert took.rounds == 7 == len(calls) - 2
    assert 0 <= took.fastest <= took.ms <= took.slowest
    calls.clear()
    assert timed(lambda: calls.append(1), CPU, rounds=7, seconds=0).rounds == 3


@pytest.mark.slow
def test_memory_sees_what_a_step_took_and_gave_back() -> None:
    memory = Memory(CPU)
    if memory.risen() is None:
        pytest.skip("this system does not say how much memory a process has had")
    # 32 MB, gone at once: pages of the system, since the allocator may reuse ones it has kept.
    with mmap.mmap(-1, 2**25, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS) as block:
        block[:: mmap.PAGESIZE] = bytes(2**25 // mmap.PAGESIZE)
    assert 25 < (memory.risen() or 0) < 60


@pytest.mark.slow
def test_threads_are_as_before_afterwards() -> None:
    before = torch.get_num_threads()
    with undisturbed():
        assert torch.get_num_threads() == 1
    assert torch.get_num_threads() == before


@pytest.mark.slow
@pytest.mark.parametrize("sweep", [s for s in SWEEPS if not s.double], ids=named)
def test_single_precision_is_that_of_the_step(sweep: Sweep) -> None:
    """No result of double precision is wider than the rows; GPyTorch factors in it throughout."""
    step = sweep.build(on=On(CPU, torch.float32), **tiny(sweep))
    with Doubles() as doubles:
        step()
    assert doubles.widest <= max(tiny(sweep).values()) or not sweep.method.startswith("Scant")


class Doubles(TorchDispatchMode):
    """How many numbers the largest double-precision result has of what is computed within."""

    widest = 0

    def __torch_dispatch__(self, op: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        made = op(*args, **(kwargs or {}))
        for value in made if isinstance(made, list | tuple) else (made,):
            if isinstance(value, torch.Tensor) and value.dtype == torch.float64:
                self.widest = max(self.widest, value.numel())
        return made


@pytest.mark.slow
@pytest.mark.parametrize("value", [math.nan, torch.tensor(math.nan)])
def test_a_step_that_comes_to_nothing_has_no_figure(
    monkeypatch: pytest.MonkeyPatch, value: object
) -> None:
    build = lambda n, m, on: lambda: value  # noqa: E731
    lost = Sweep("svgp", "Scant", "step of Adam", build, {"n": 64, "m": 4})
    monkeypatch.setattr("scant.bench.cases.SWEEPS", (lost,))
    read = table.measure("svgp", quick=True, dtype="float32")
    assert list(read["note"]) == ["skipped: no step goes on in float32."]
    assert read["ms"].isna().all()


@pytest.mark.slow
def test_what_cannot_be_measured_here_has_a_row_that_says_why(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(programs, "version", lambda name: metadata.version("no-such-package"))
    read = table.measure("laplace", quick=True, dtype="float32").set_index("method")
    assert read.loc["scikit-learn GPC", "ms"].isna().all()
    assert read.loc["scikit-learn GPC", "note"].str.contains("double precision alone").all()
    assert (read.loc["Scant", "ms"] > 0).all()
    double = [case.refused() for case in cases("laplace") if case.needs]
    assert double
    assert all("pip install 'scant-gp[peers]'" in why for why in double)


def test_a_gradient_step_is_that_of_the_objective() -> None:
    layer = torch.nn.Linear(2, 1, bias=False)
    step = gradient_of(layer, lambda: layer.weight.square().sum())
    assert step() == step() == layer.weight.square().sum()
    assert torch.equal(layer.weight.grad, 2 * layer.weight)  # not a sum over steps


def test_every_case_has_a_formula() -> None:
    known = {(s.model, s.method) for s in SWEEPS}
    assert set(MODELS) <= set(FLOPS)
    assert {k for k in FLOPS if isinstance(k, tuple)} <= known
    for case in cases():
        assert min_flops(case.model, case.method, case.sizes) > 0


def test_the_least_arithmetic_of_an_exact_gp_is_known() -> None:
    """A factor of K takes n^3 / 3, its inverse 2 n^3 / 3; K times 8 columns and back 4 n^2 each."""
    assert min_flops("student_t", "Scant", {"n": 500}) == 500**3 + 4 * 8 * 500**2
    assert min_flops("laplace", "Scant, whole fit", {"n": 500}) == 9 * (500**3 + 4 * 20 * 500**2)


def test_the_rate_of_products_is_counted_by_their_size(monkeypatch: pytest.MonkeyPatch) -> None:
    took = Timing(1.0, 2.0, 1.0, 1.0, 3)
    monkeypatch.setattr("scant.bench.flops.timed", lambda *of, **more: took)
    assert gemm_rate({"n": 50, "m": 10}, CPU, torch.float64) == 2 * 10 * 10 * 50 / 0.002
    monkeypatch.undo()
    assert gemm_rate({"n": 200}, CPU, torch.float64) > 1e7


def test_growth_is_the_power_of_the_size() -> None:
    sizes = pd.DataFrame({"n": [100, 200, 400, 200, 200], "m": [10, 10, 10, 20, 40]})
    sizes["ms"] = 1e-6 * sizes["n"] ** 2 * sizes["m"]
    sizes["varies"] = ["n", "base", "n", "m", "m"]
    sizes["cpu_ms"] = sizes["ms"].where(sizes["varies"] != "n")  # the clock, where it is not known
    named = {"model": "gpz", "method": "Scant", "dtype": "float64"}
    made = sizes.assign(**named, device="cpu", classes=None)
    grown = table.growth(made.astype(dict.fromkeys(table.SIZES, "Int64")))
    assert list(grown["size"]) == ["n", "m"]
    assert list(grown["power"]) == [2.0, 1.0]
    assert list(grown["from"]) == [100, 10]


@pytest.mark.slow
@pytest.mark.usefixtures("few")
def test_the_command_writes_a_table_and_a_page_that_needs_nothing(tmp_path: Path) -> None:
    out = tmp_path / "new" / "folder"
    result = scant("bench", "student_t", "--quick", "--device", "cpu", "--out", out)
    assert result.exit_code == 0, result.output
    assert "student_t" in result.stdout
    assert "power" not in result.stdout  # two sizes say nothing of growth
    read = pd.read_csv(out / "bench.csv", comment="#")
    assert set(read["method"]) == {"Scant", "GPyTorch ExactGP", "scikit-learn GPR"}
    assert sorted(set(read["n"])) == [64, 160]
    assert (read["ms"] > 0).all()
    assert (read["device"] == "cpu").all()
    head = [line for line in (out / "bench.csv").read_text().splitlines() if line[0] == "#"]
    assert "torch" in head[0]
    assert "one thread" in head[1]
    page = (out / "bench.html").read_text()
    assert "scikit-learn GPR" in page
    body = page.partition("</script>")[2]  # after Bokeh's own code
    assert "src=" not in body
    assert "href=" not in body


@pytest.mark.slow
@pytest.mark.usefixtures("few")
@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a CUDA device")
def test_without_cuda_it_says_so(tmp_path: Path) -> None:
    auto = scant("bench", "dgplvm", "--quick")
    assert table.NO_CUDA in auto.stdout
    asked = scant("bench", "dgplvm", "--device", "cuda", "--out", tmp_path / "out")
    assert asked.exit_code == 2
    assert "no CUDA device here" in asked.stderr
    assert not (tmp_path / "out").exists()


@pytest.mark.slow
def test_a_case_that_fails_says_why_and_the_others_go_on(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def broken(n: int, on: On) -> None:
        raise RuntimeError("out of <b>memory</b>\nat line 3")

    base = {"n": 64}
    fine = next(s for s in SWEEPS if s.model == "student_t")
    bad = Sweep("student_t", "broken", "nothing", broken, base)  # type: ignore[arg-type]
    good = Sweep("student_t", "Scant", fine.work, fine.build, base)
    monkeypatch.setattr("scant.bench.cases.SWEEPS", (bad, good))
    result = scant("bench", "--quick", "--device", "cpu", "--out", tmp_path)
    assert result.exit_code == 1
    assert "1 cases failed" in result.stderr
    read = pd.read_csv(tmp_path / "bench.csv", comment="#").set_index("method")
    assert read.loc["broken", "note"] == "failed: RuntimeError: out of <b>memory</b>"
    assert read.loc["Scant", "ms"] > 0
    assert "<b>memory" not in (tmp_path / "bench.html").read_text()


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["moon"], "'moon'"),
        (["moon"], "'gpz'"),
        (["gpz", "--device", "abacus"], "auto, cpu or cuda"),
        (["gpz", "--dtype", "half"], "auto, both, float64 or float32"),
        (["redshift", "--quick"], "'redshift' is a study"),
        (["gpz", "--out", __file__], "is a file"),
    ],
)
def test_what_cannot_be_measured_is_one_sentence(arguments: list[str], sentence: str) -> None:
    result = scant("bench", *arguments)
    assert result.exit_code == 2
    assert sentence in result.stderr
    assert result.stdout == ""
