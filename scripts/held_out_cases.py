"""The data of `scripts/held_out.py`: rows held back by a seed, their scores, and baselines.

Scores are of a frame of predictions, whose columns are those of `scant fit --predict`: `mean`,
`std_y`, `lo95` and `hi95` (of a new observation), `label` and `p(class)`. Baselines learn from the
same rows by scikit-learn. Redshifts have a file of their own (`held_out_redshifts.py`).
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd
from scipy.stats import norm
from sklearn.decomposition import PCA
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, WhiteKernel
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import average_precision_score, f1_score
from sklearn.model_selection import TunedThresholdClassifierCV
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, StandardScaler

sys.path.insert(0, str(Path(__file__).parents[1]))
from tests.paths import REAL_DATA

BASELINE = "baseline"  # of a case that has only one
Scores = dict[str, float]


class Held(NamedTuple):
    """One division of a case's rows.

    Attributes:
        study: The study that fits it.
        train: Table to learn from.
        test: Rows to predict, without their target.
        scores: Scores of a frame of predictions, in the order of `test`.
        baselines: By name, each makes its predictions, with columns named as ours; or settings
            with which the study itself is the baseline.
        settings: Settings, as NAME=VALUE.
        densities: Whether predictions have columns of densities.
    """

    study: str
    train: pd.DataFrame
    test: pd.DataFrame
    scores: Callable[[pd.DataFrame], Scores]
    baselines: Mapping[str, Callable[[], pd.DataFrame] | tuple[str, ...]]
    settings: tuple[str, ...] = ()
    densities: bool = False


def gp(x: pd.DataFrame, y: pd.Series, new: pd.DataFrame) -> pd.DataFrame:
    """Predictions of an exact GP with a lengthscale of each input."""
    kernel = ConstantKernel() * RBF(np.ones(x.shape[1])) + WhiteKernel(1e-2)
    model = GaussianProcessRegressor(
        kernel, normalize_y=True, n_restarts_optimizer=3, random_state=0
    )
    mean, std = make_pipeline(StandardScaler(), model).fit(x, y).predict(new, return_std=True)
    interval = {"lo95": mean - 1.96 * std, "hi95": mean + 1.96 * std}
    return pd.DataFrame({"mean": mean, "std_y": std, **interval}, index=new.index)


def births(side: int, seed: int) -> Held:
    """Means over boxes of `side` x `side`, and 100 cells; the other cells are predicted.

    The boxes are plain means in the file of their size. They contain the predicted cells, as in the
    publication.
    """

    def table(step: int) -> pd.DataFrame:
        read = pd.read_csv(REAL_DATA / "fertility" / f"asfr_{step}x{step}.csv")
        read = read.rename(columns=lambda n: n.replace("_start", "_lo").replace("_end", "_hi"))
        return read[["year_lo", "year_hi", "age_lo", "age_hi"]].assign(y=read["asfr_order1"])

    boxes, cells = table(side).assign(task="boxes"), table(1).assign(task="cells")
    cells = cells[cells["year_hi"] <= boxes["year_hi"].max()].sample(frac=1, random_state=seed)
    train = pd.concat([boxes, cells[:100]], ignore_index=True)
    test = cells[100:].reset_index(drop=True)
    y = test.pop("y").to_numpy()

    def scores(prediction: pd.DataFrame) -> Scores:
        covered = prediction["lo95"].le(y) & prediction["hi95"].ge(y)
        error = float(np.mean((prediction["mean"] - y) ** 2) / y.var())
        result = {"SMSE": error, "coverage": 100 * float(covered.mean())}
        if "std" in prediction:  # of the average itself; rates of births have hardly any noise
            within = np.abs(prediction["mean"] - y) <= 1.96 * prediction["std"]
            result["coverage by std"] = 100 * float(within.mean())
        return result

    def centroids(rows: pd.DataFrame) -> pd.DataFrame:
        return pd.DataFrame({of: rows[f"{of}_lo"] + rows[f"{of}_hi"] for of in ("year", "age")})

    rival = partial(gp, centroids(train), train["y"], centroids(test))
    return Held("aggregation", train, test, scores, {BASELINE: rival})


def replicas(table: pd.DataFrame, seed: int) -> Held:
    """One replica of each output is hidden; the baseline is a GP of each output by itself.

    Scores are as the study's report defines them, in units of each output's training rows.
    """
    rng = np.random.default_rng(seed)
    chosen = {o: rng.choice(rows["replica"].unique()) for o, rows in table.groupby("output")}
    hidden = table["replica"] == table["output"].map(chosen)
    train, test = (table[rows].reset_index(drop=True) for rows in (~hidden, hidden))
    values = train.groupby("output")["y"]
    center = test["output"].map(values.mean())
    width = test["output"].map(values.std(ddof=0))
    y = (test.pop("y") - center) / width

    def scores(prediction: pd.DataFrame) -> Scores:
        mean, std = (prediction["mean"] - center) / width, prediction["std_y"] / width
        density = -norm.logpdf(y, mean, std).mean()
        return {"NMSE": float(np.mean((y - mean) ** 2) / y.var(ddof=0)), "NLPD": float(density)}

    def rival() -> pd.DataFrame:
        each = [
            gp(rows[["x"]], rows["y"], test.loc[test["output"] == name, ["x"]])
            for name, rows in train.groupby("output")
        ]
        return pd.concat(each).loc[test.index]

    return Held("genes", train, test, scores, {BASELINE: rival})


def genes(seed: int) -> Held:
    """The four Drosophila genes."""
    read = pd.read_csv(REAL_DATA / "gene_kalinka2010" / "four_genes_long.csv")
    names = {"gene": "output", "replicate": "replica", "time_h": "x", "expression": "y"}
    return replicas(read.rename(columns=names), seed)


def curves(draw: Callable[[int], pd.DataFrame], seed: int) -> Held:
    """A draw of the study's simulator; the baseline is DHGP, a model of the same study."""
    return replicas(draw(seed), seed)._replace(baselines={BASELINE: ("model=dhgp",)})


def alphabets(seed: int) -> Held:
    """Two alphabets; five of the twenty drawers are held out. The baseline is 1-NN.

    All classes have as many images, so that the accuracy is the mean recall of the classes.
    """
    read = np.load(REAL_DATA / "omniglot" / "ojibwe_blackfoot.npz")
    pixels = read["area20"].reshape(len(read["area20"]), -1) / 255
    table = pd.DataFrame(pixels, columns=[f"p{i}" for i in range(pixels.shape[1])])
    table.insert(0, "label", read["character"].astype(str))
    table.insert(0, "output", read["alphabet_names"][read["alphabet"]])
    other = np.isin(read["drawer"], np.random.default_rng(seed).permutation(20)[:5] + 1)
    train, test = (table[rows].reset_index(drop=True) for rows in (~other, other))
    y = test.pop("label").to_numpy()

    def scores(prediction: pd.DataFrame) -> Scores:
        return {"recall": float(np.mean(prediction["label"].astype(str).to_numpy() == y))}

    def rival() -> pd.DataFrame:
        label = pd.Series("", test.index)
        for name, rows in train.groupby("output"):
            new = test["output"] == name
            nearest = KNeighborsClassifier(1).fit(rows.iloc[:, 2:], rows["label"])
            label[new] = nearest.predict(test.loc[new].iloc[:, 1:])
        return label.to_frame("label")

    return Held("omniglot", train, test, scores, {BASELINE: rival})


def mitosis(rare: int, frequent: int, seed: int) -> Held:
    """AMi-Br: mitoses and other nuclei to learn from, and 220 and 1,780 of other slides.

    Those of other slides are two test sets of the publication. The baseline is a logistic
    regression on 60 principal components and their squares, with a threshold for F1.
    """
    read = np.load(REAL_DATA / "mitosis_amibr" / "patches_gray30.npz")
    rng = np.random.default_rng(seed)
    other = np.isin(read["slide"], rng.permutation(len(read["slide_names"]))[::3])

    def table(rows: np.ndarray, rare: int, frequent: int) -> pd.DataFrame:
        by_class = [rng.permutation(np.flatnonzero(rows & (read["label"] == k))) for k in (1, 0)]
        chosen = np.concatenate([by_class[0][:rare], by_class[1][:frequent]])
        chosen = np.random.default_rng([seed, 1]).permutation(chosen)
        pixels = (read["images"][chosen].reshape(len(chosen), -1) / 255).round(4)
        result = pd.DataFrame(pixels, columns=[f"p{i}" for i in range(pixels.shape[1])])
        result.insert(0, "label", np.where(read["label"][chosen] == 1, "mitosis", "other"))
        result.insert(1, "group", read["slide_names"][read["slide"][chosen]])
        return result

    train, test = table(~other, rare, frequent), table(other, 220, 1780)
    y = test.pop("label") == "mitosis"
    test = test.drop(columns="group")

    def scores(prediction: pd.DataFrame) -> Scores:
        return {
            "F1": float(f1_score(y, prediction["label"] == "mitosis")),
            "average precision": float(average_precision_score(y, prediction["p(mitosis)"])),
        }

    def rival() -> pd.DataFrame:
        model = make_pipeline(
            PCA(60, whiten=True, random_state=0),
            FunctionTransformer(lambda x: np.hstack([x, x**2])),
            LogisticRegression(C=0.1, max_iter=1000),
        )
        tuned = TunedThresholdClassifierCV(model, scoring="f1", random_state=0)
        tuned.fit(train[test.columns], train["label"] == "mitosis")
        label = np.where(tuned.predict(test), "mitosis", "other")
        return pd.DataFrame({"label": label, "p(mitosis)": tuned.predict_proba(test)[:, 1]})

    return Held("mitosis", train, test, scores, {BASELINE: rival})
