"""Public tables, and the messy variants of them that analysts have, with what each is for.

Files come from scikit-learn, statsmodels and vega_datasets as they are packed there; the rest are
drawn here with the columns and habits of well-known tables.
"""

from __future__ import annotations

import io
from collections.abc import Iterator
from importlib.resources import files
from typing import NamedTuple

import numpy as np
import pandas as pd
from sklearn import datasets


class Case(NamedTuple):
    """A file and what should be made of it.

    Attributes:
        name: Of the case.
        data: The file.
        study: That suits it.
        target: The header that is learned; "" where the table is turned long.
        left_out: Headers that are no inputs.
    """

    name: str
    data: bytes
    study: str
    target: str
    left_out: tuple[str, ...] = ()


def cases() -> Iterator[Case]:
    """All of them."""
    yield from _scikit_learn()
    yield from _statsmodels()
    yield from _vega()
    yield from _messy()
    yield from _drawn()


def _csv(frame: pd.DataFrame, **how: object) -> bytes:
    text: str = frame.to_csv(index=False, **how)
    return text.encode()


def _sklearn(load: object, target: str = "target", names: bool = False) -> pd.DataFrame:
    bunch = load(as_frame=True)  # type: ignore[operator]
    frame = bunch.frame.rename(columns={"target": target})
    if names:
        frame[target] = [str(bunch.target_names[i]) for i in frame[target]]
    return frame


def _scikit_learn() -> Iterator[Case]:
    iris, wine = _sklearn(datasets.load_iris), _sklearn(datasets.load_wine)
    yield Case("iris", _csv(iris), "mitosis", "target")
    yield Case(
        "iris, words", _csv(_sklearn(datasets.load_iris, "species", True)), "mitosis", "species"
    )
    both = iris.assign(species=_sklearn(datasets.load_iris, "s", True)["s"])
    yield Case("iris, class twice", _csv(both), "mitosis", "target", ("species",))
    yield Case("wine", _csv(wine), "mitosis", "target")
    first = wine.rename(columns={"target": "cultivar"})
    first = first[["cultivar", *first.columns[:-1]]]
    yield Case("wine, class first", _csv(first), "mitosis", "cultivar")
    cancer = _sklearn(datasets.load_breast_cancer, "diagnosis", True)
    yield Case("breast cancer", _csv(cancer), "mitosis", "diagnosis")
    numbered = cancer.assign(uid=np.arange(842_302, 842_302 + 7 * len(cancer), 7))
    yield Case("breast cancer, uid", _csv(numbered), "mitosis", "diagnosis", ("uid",))
    digits = _sklearn(datasets.load_digits)[:300]
    pixels = digits.rename(columns={n: f"p{i}" for i, n in enumerate(digits.columns[:-1])})
    yield Case("digits", _csv(pixels), "omniglot", "target")
    yield Case("diabetes", _csv(_sklearn(datasets.load_diabetes)), "redshift", "target")
    progression = _sklearn(datasets.load_diabetes, "progression").assign(patient_id=range(442))
    yield Case("diabetes, ids", _csv(progression), "redshift", "progression", ("patient_id",))
    linnerud = datasets.load_linnerud(as_frame=True)
    frame = pd.concat([linnerud.data, linnerud.target], axis=1)
    yield Case("linnerud", _csv(frame), "redshift", "Pulse")


def _statsmodels() -> Iterator[Case]:
    folder = files("statsmodels.datasets")
    for name, file, study, target, left_out in (
        ("ccard", "ccard.csv", "redshift", "AVGEXP", ()),
        ("cpunish", "cpunish.csv", "redshift", "EXECUTIONS", ("STATE",)),
        ("engel", "engel.csv", "redshift", "foodexp", ()),
        ("longley", "longley.csv", "redshift", "TOTEMP", ("Obs",)),
        ("spector", "spector.csv", "mitosis", "GRADE", ("OBS",)),
        ("stackloss", "stackloss.csv", "redshift", "STACKLOSS", ()),
        ("statecrime", "statecrime.csv", "redshift", "murder", ("state",)),
        ("sunspots", "sunspots.csv", "aggregation", "SUNACTIVITY", ()),
        ("nile", "nile.csv", "aggregation", "volume", ()),
        ("elec_equip", "elec_equip.csv", "aggregation", "STS.M.I7.W.TOVT.NS0016.4.000", ()),
        ("heart", "heart.csv", "multiview", "survival", ()),
        ("anes96", "anes96.csv", "mitosis", "vote", ()),
        ("interest_inflation", "E6.csv", "aggregation", "R", ()),
        ("star98", "star98.csv", "redshift", "NABOVE", ()),
        ("fair", "fair.csv", "redshift", "affairs", ()),
    ):
        data = (folder / name / file).read_bytes()
        yield Case(f"statsmodels {name}", data, study, target, left_out)


def _vega() -> Iterator[Case]:
    folder = files("vega_datasets") / "_data"
    for file, study, target in (
        ("seattle-temps.csv", "aggregation", "temp"),
        ("sf-temps.csv", "aggregation", "temp"),
        ("stocks.csv", "aggregation", "price"),
        ("iowa-electricity.csv", "aggregation", "net_generation"),
        ("seattle-weather.csv", "mitosis", "weather"),
    ):
        yield Case(
            f"vega {file}",
            (folder / file).read_bytes()[:60_000].rpartition(b"\n")[0],
            study,
            target,
        )
    for file, target in (("iris.json", "species"), ("cars.json", "Origin")):
        frame = pd.read_json(io.BytesIO((folder / file).read_bytes()))
        lines = frame.to_json(orient="records", lines=True, date_format="iso").encode()
        yield Case(f"vega {file} as JSON lines", lines, "mitosis", target)


def _messy() -> Iterator[Case]:
    """The tables above as they arrive by e-mail."""
    diabetes = _sklearn(datasets.load_diabetes, "progression").round(4)
    iris = _sklearn(datasets.load_iris, "species", True)
    german = _csv(diabetes, sep=";", decimal=",")
    yield Case("semicolons, decimal commas", german, "redshift", "progression")
    prices = _houses()
    marks = prices.assign(
        price=[f"{v:,.0f}".replace(",", ".") for v in prices["price"]],
        area=[f"{v:.1f}".replace(".", ",") for v in prices["area"]],
    )
    yield Case("German thousands", _csv(marks, sep=";"), "redshift", "price")
    english = prices.assign(price=[f"{v:,.0f}" for v in prices["price"]])
    yield Case("quoted thousands", _csv(english), "redshift", "price")
    latin = iris.rename(columns={"petal width (cm)": "Blütenbreite (cm)"})
    yield Case("Latin-1", _csv(latin).decode().encode("latin-1"), "mitosis", "species")
    titled = b"Iris flowers\nSource: Fisher 1936\n\n" + _csv(iris)
    yield Case("titles above", titled, "mitosis", "species")
    totals = _csv(prices) + b"Total,99999,88,7777,666\n"
    yield Case("a row of totals", totals, "redshift", "price")
    remarks = _csv(prices) + b"Source: land registry\n(c) the office\n"
    yield Case("footnotes", remarks, "redshift", "price")
    dated = prices.assign(
        sold=pd.date_range("2020-01-01", periods=len(prices)).strftime("%d.%m.%Y")
    )
    yield Case("dates of sale", _csv(dated), "redshift", "price", ("sold",))
    coded = diabetes.copy()
    coded.loc[::9, "bmi"] = -99
    yield Case("-99 for missing", _csv(coded), "redshift", "progression")
    absent = iris.astype(object)
    absent.iloc[::7, 1], absent.iloc[::11, 2] = "(X)", "."
    yield Case("(X) and .", _csv(absent), "mitosis", "species")
    units = "kg,cm,kPa,mg/l\n".join(("mass,height,pressure,target\n", ""))
    rng = np.random.default_rng(0)
    rows = "".join(",".join(f"{v:.2f}" for v in rng.normal(50, 9, 4)) + "\n" for _ in range(80))
    yield Case("a row of units", (units + rows).encode(), "redshift", "target [mg/l]")
    headless = _csv(iris, header=False)
    yield Case("no header", headless, "mitosis", "column 5")
    fixed = diabetes.to_string(index=False).encode()
    yield Case("lined up by spaces", fixed, "redshift", "progression")
    log = prices.assign(log_price=np.log(prices["price"]))
    yield Case("target and its logarithm", _csv(log), "redshift", "price", ("log_price",))
    energy = pd.DataFrame(rng.normal(size=(90, 6)), columns=["X1", "X2", "X3", "X4", "Y1", "Y2"])
    yield Case("two targets", _csv(energy), "redshift", "Y2", ("Y1",))
    indexed = iris.copy()
    indexed.insert(0, "Unnamed: 0", range(len(iris)))
    yield Case("an index from R", _csv(indexed), "mitosis", "species", ("Unnamed: 0",))
    workbook = io.BytesIO()
    with pd.ExcelWriter(workbook) as writer:
        prices.to_excel(writer, sheet_name="houses", index=False, startrow=2)
        writer.book["houses"]["A1"] = "Sales of the year"
    yield Case("a workbook with a title", workbook.getvalue(), "redshift", "price")


def _houses(n: int = 90) -> pd.DataFrame:
    """Like the tables of house prices: a street, areas, ages, and prices above 1000."""
    rng = np.random.default_rng(1)
    area = rng.uniform(40, 240, n).round(1)
    return pd.DataFrame(
        {
            "street": [f"street {i}" for i in range(n)],
            "area": area,
            "rooms": rng.integers(1, 30, n),
            "age": rng.integers(0, 90, n),
            "price": (1500 * area + rng.normal(0, 2e4, n)).clip(9e4).round(),
        }
    )


def _drawn(n: int = 90) -> Iterator[Case]:
    """Tables of other fields, drawn with the columns that theirs have."""
    rng = np.random.default_rng(2)

    def normal(*names: str) -> pd.DataFrame:
        return pd.DataFrame(rng.normal(10, 2, (n, len(names))).round(3), columns=list(names))

    survey = normal("u", "g", "r", "i", "err_u", "err_g", "err_r", "err_i").abs()
    survey = survey.assign(objID=np.arange(n) + 10**9, z_spec=rng.uniform(0.1, 1, n).round(4))
    yield Case("galaxies", _csv(survey), "redshift", "z_spec", ("objID",))
    lung = normal("age", "karno", "wt_loss").assign(
        time=rng.integers(5, 900, n), status=rng.integers(0, 2, n)
    )
    yield Case("lung cancer", _csv(lung), "multiview", "time")
    rossi = normal("fin", "age", "prio").assign(
        week=rng.integers(1, 52, n), arrest=rng.integers(0, 2, n)
    )
    yield Case("recidivism", _csv(rossi), "multiview", "week")
    views = normal("texture.a", "texture.b", "color.a", "color.b").assign(
        label=rng.choice(["fire", "quiet"], n)
    )
    yield Case("views", _csv(views), "multiview", "label")
    boxes = normal("rate").assign(West=range(n), East=range(1, n + 1), South=3.0, North=4.5)
    yield Case("West, East, South, North", _csv(boxes), "aggregation", "rate")
    hours = normal("SO2 [ppb]").assign(start=range(n), end=range(1, n + 1), station="roof")
    hours["station"] = rng.choice(["roof", "street"], n)
    yield Case("hours of a station", _csv(hours), "aggregation", "SO2 [ppb]")
    limits = normal("yield").assign(depth_min=range(n), depth_max=range(2, n + 2))
    yield Case("depths from and to", _csv(limits), "aggregation", "yield")
    places = normal("lat", "lon", "concentration")
    yield Case("points on a map", _csv(places), "aggregation", "concentration")
    genes = pd.DataFrame({"gene": [f"gene{i}" for i in range(20)]})
    for hour in (0, 6, 12, 24):
        for repeat in (1, 2, 3):
            genes[f"{hour}h_rep{repeat}"] = rng.normal(5, 1, 20).round(3)
    yield Case("genes in rows", _csv(genes), "genes", "")
    turned = genes.set_index("gene").T.reset_index(names="sample")
    yield Case("genes in columns", _csv(turned), "genes", "")
    long = pd.DataFrame(
        {
            "gene": np.repeat(["hb", "kr", "gt"], 30),
            "embryo": np.tile(np.repeat(["e1", "e2"], 15), 3),
            "time": np.tile(range(15), 6),
            "expression": rng.normal(size=90).round(3),
        }
    )
    yield Case("genes, long", _csv(long), "genes", "expression")
    pool = normal("f1", "f2", "f3").assign(label=[*["clamp", "none of it"] * 5, *[""] * (n - 10)])
    yield Case("a pool of labels", _csv(pool), "clamp", "label")
    scripts = normal("s1", "s2", "s3").assign(
        alphabet=rng.choice(["Greek", "Anu"], n), character=[f"c{i % 20}" for i in range(n)]
    )
    yield Case("characters", _csv(scripts), "omniglot", "character")
