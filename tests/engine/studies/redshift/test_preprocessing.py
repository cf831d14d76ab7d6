"""Features: the two coordinate systems, missing bands, wild values."""

import numpy as np
import pandas as pd
import pytest
import torch

from scant.studies.redshift.colors import color_matrix
from scant.studies.redshift.components import transformed
from scant.studies.redshift.entry import RedshiftSettings
from scant.studies.redshift.fold import Rows
from scant.studies.redshift.prepared import Prepared
from scant.studies.redshift.preprocessing import TAME, Features
from scant.studies.redshift.problem import problem_of
from scant.studies.redshift.simulate import simulate

BANDS = ["u", "g", "r", "i"]


@pytest.fixture
def table() -> pd.DataFrame:
    generator = np.random.default_rng(0)
    base = generator.normal(20, 1, (500, 1))
    data = pd.DataFrame(base + generator.normal(0, 0.4, (500, 4)), columns=BANDS)
    for band in BANDS:
        data[f"{band}_err"] = np.exp(generator.normal(-3, 0.5, 500))
    return data


def fit(table: pd.DataFrame, **values) -> Features:
    return Features.fit(table, BANDS, RedshiftSettings(**values))


def test_coordinates_are_standardized_and_named(table):
    features = fit(table)
    x = features.inputs(table)
    assert x.shape == (500, 8)
    assert features.names[:5] == ["u", "g", "r", "i", "log u_err"]
    assert x.mean(0).abs().max() < 1e-10
    assert (x.std(0, correction=0) - 1).abs().max() < 1e-10


def test_colors_are_differences_of_neighbors_and_one_reference(table):
    features = fit(table, robust="no", errors="ignore")
    z = features.inputs(table) @ torch.as_tensor(features.T).T
    colors = table[BANDS].to_numpy() @ color_matrix(4).T
    assert np.allclose(colors[:, 1], table["u"] - table["g"])
    assert np.allclose(z, (colors - colors.mean(0)) / colors.std(0), atol=1e-10)


@pytest.mark.parametrize("trained_on", ["colors", "measurements"])
def test_contrasts_are_all_colors_and_sums_and_differences_of_two(table, trained_on):
    features = fit(table.assign(size=1.0), robust="no")
    T = features.T if trained_on == "colors" else np.eye(8)
    x = features.inputs(table)
    made = (x @ torch.as_tensor(T).T).numpy() @ features.contrasts(T).T
    u, g, r, i = table[BANDS].to_numpy().T
    colors = [u - g, u - r, u - i, g - r, g - i, r - i]
    expected = np.column_stack(
        [*colors, u - g + r - i, u - 2 * g + r, u - g - r + i, g - 2 * r + i]
    )
    assert np.allclose(made - made.mean(0), expected - expected.mean(0), atol=1e-9)
    problem = problem_of(features, table.assign(size=1.0, z=1.0), table.assign(z=1.0), "z")
    assert np.allclose(problem.x @ problem.contrasts.T, expected[:, :6])


@pytest.mark.parametrize(("count", "contrasts"), [(2, 1), (8, 64), (9, 36), (12, 66), (13, None)])
def test_many_bands_have_fewer_contrasts(count, contrasts):
    generator = np.random.default_rng(0)
    bands = [f"b{k}" for k in range(count)]
    values = generator.normal(20, 1, (200, 1)) + generator.normal(0, 0.3, (200, count))
    features = Features.fit(
        pd.DataFrame(values, columns=bands), bands, RedshiftSettings(features="colors")
    )
    made = features.contrasts(features.T)
    assert (None if made is None else len(made)) == contrasts


def test_columns_of_other_kinds_have_no_contrasts(table):
    features = fit(table, features="as given")
    assert features.contrasts(features.T) is None
    assert features.colors is None


@pytest.mark.parametrize("column", ["size", "kind = spiral"])
def test_a_column_beside_the_magnitudes_leaves_them_their_colors(table, column):
    generator = np.random.default_rng(1)
    other = {"size": generator.gamma(2.0, 30.0, 500), "kind = spiral": generator.random(500) < 0.5}
    more = table.assign(**{column: np.asarray(other[column], float)})
    features = Features.fit(more, ["u", column, "g", "r", "i"], RedshiftSettings())
    magnitudes = [0, 2, 3, 4]
    assert np.array_equal(features.combine[np.ix_(magnitudes, magnitudes)], color_matrix(4))
    assert np.array_equal(features.combine[1], np.eye(5)[1])
    assert features.chosen.value == "colors"


def test_usual_values_are_left_as_they_are(table):
    usual = table.iloc[:100]
    plain, robust = fit(table, robust="no"), fit(table)
    away = np.abs((robust.combined(robust.measured(usual)) - robust.centre) / robust.width)
    calm = (away < TAME).all(axis=1)
    assert calm.sum() > 60
    assert np.allclose(
        plain.measured(usual[calm]), robust.tamed(robust.measured(usual[calm])), atol=1e-10
    )


def test_a_wild_value_stays_finite_and_extreme(table):
    features = fit(table)
    wild = table.iloc[:1].copy()
    wild["g"] = 35.0
    assert features.inputs(wild).abs().max() < 60
    unruly = fit(table, robust="no").inputs(wild).abs().max()
    assert features.inputs(wild).abs().max() < unruly


def test_a_missing_band_takes_its_error_along_and_nothing_else(table):
    features = fit(table)
    x = features.inputs(table, off=["g"])
    assert x[:, [1, 5]].isnan().all()
    assert not x[:, [0, 2, 3, 4, 6, 7]].isnan().any()
    hollow = table.assign(g=np.nan)
    assert torch.equal(x.isnan(), features.inputs(hollow).isnan())


def test_other_bands_do_not_move_when_one_is_missing(table):
    features = fit(table)
    calm = table.iloc[[i for i in range(50) if features.inputs(table.iloc[[i]]).abs().max() < 2]]
    whole, less = features.inputs(calm), features.inputs(calm, off=["u"])
    observed = ~less.isnan()
    assert torch.allclose(whole[observed], less[observed], atol=1e-8)


def test_a_column_that_is_not_there_is_missing(table):
    features = fit(table)
    assert features.inputs(table.drop(columns=["i", "i_err"]))[:, [3, 7]].isnan().all()


def test_errors_become_noise_in_units_of_the_coordinates(table):
    features = fit(table, errors="as noise", robust="no")
    noise = features.noise(table)
    assert noise.shape == (500, 4)
    expected = (table["u_err"] / table["u"].std(ddof=0)) ** 2
    assert np.allclose(noise[:, 0], expected)


def test_a_constant_column_does_no_harm(table):
    assert torch.isfinite(fit(table.assign(u=20.0)).inputs(table.assign(u=20.0))).all()


def test_the_fingerprint_brings_the_same_features_back(table):
    features = fit(table)
    again = Features.of(features.fingerprint())
    assert torch.equal(features.inputs(table), again.inputs(table))


def test_principal_components_are_uncorrelated_and_of_unit_variance(table):
    features = fit(table, features="principal components", robust="no")
    x = features.inputs(table).numpy()
    assert "log u_err" in features.names
    values, vectors = np.linalg.eigh(np.cov(x.T, ddof=0))
    expected = (vectors / np.sqrt(values))[:, ::-1].T  # the largest first, signs are free
    assert features.T.shape == (8, 8)
    assert not features.reduced
    assert np.allclose(np.abs(features.T), np.abs(expected), atol=1e-8)
    assert np.allclose(np.cov(features.T @ x.T, ddof=0), np.eye(8), atol=1e-8)


def test_principal_components_of_rows_with_gaps_are_those_of_whole_rows_nearly(table):
    holes = table.copy()
    holes.loc[::10, "g"] = np.nan
    features = fit(holes, features="principal components", robust="no")
    z = features.inputs(holes).numpy() @ features.T.T
    whole = z[np.isfinite(z).all(1)]
    assert len(whole) == 450
    assert np.abs(np.cov(whole.T, ddof=0) - np.eye(8)).max() < 0.1


@pytest.mark.slow
@pytest.mark.parametrize("features", ["as given", "colors", "principal components"])
def test_rows_to_learn_from_keep_what_they_have_beside_a_gap(features: str) -> None:
    table = simulate(80, seed=0)
    table.loc[::2, ["mag_u", "mag_u_err"]] = np.nan
    settings = RedshiftSettings(incomplete="use", features=features, test_size=10)
    data = Prepared(settings, table)
    rows = Rows.of(data.learn, data.features, data.T, data.target, settings, torch.device("cpu"))
    lacking = torch.tensor(data.learn["mag_u"].isna().to_numpy())
    assert lacking.any()
    assert (rows.X.isnan().sum(1) == 2 * lacking).all()  # the magnitude and its error
    assert torch.equal(rows.X.nan_to_num(), data.features.inputs(data.learn).nan_to_num())


@pytest.mark.parametrize("kind", ["as given", "colors", "auto"])
def test_a_table_without_a_complete_row_has_inputs(table, kind):
    holes = table.copy()
    for band, start in (("u", 0), ("g", 1)):
        holes.loc[start::2, [band, f"{band}_err"]] = np.nan
    features = fit(holes, features=kind)
    x, whole = features.inputs(holes), fit(table, features=kind).inputs(table)
    assert (x.isnan().sum(1) == 2).all()
    there = ~x.isnan()
    assert (x[there] - whole[there]).abs().mean() < 0.1


def test_coordinates_lack_only_what_depends_on_a_missing_column() -> None:
    x = torch.tensor([[1.0, 2.0, 4.0], [1.0, torch.nan, 4.0], [torch.nan, 2.0, 4.0]])
    T = torch.tensor([[1.0, 0, 0], [1, -1, 0], [0, 0, 3]])
    expected = torch.tensor([[1.0, -1, 12], [1, torch.nan, 12], [torch.nan, torch.nan, 12]])
    torch.testing.assert_close(transformed(x, T), expected, equal_nan=True)
