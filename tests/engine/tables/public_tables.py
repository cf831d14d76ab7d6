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
        of: The case whose table it has, in another form; "" where its table is its own.
    """

    name: str
    data: bytes
    study: str
    target: str
    left_out: tuple[str, ...] = ()
    of: str = ""


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
    yield Case("iris, class twice", _csv(both), "mitosis", "target", ("species",), of="iris")
    yield Case("wine", _csv(wine), "mitosis", "target")
    first = wine.rename(columns={"target": "cultivar"})
    first = first[["cultivar", *first.columns[:-1]]]
    yield Case("wine, class first", _csv(first), "mitosis", "cultivar", of="wine")
    cancer = _sklearn(datasets.load_breast_cancer, "diagnosis", True)
    yield Case("breast cancer", _csv(cancer), "mitosis", "diagnosis")
    numbered = cancer.assign(uid=np.arange(842_302, 842_302 + 7 * len(cancer), 7))
    yield Case(
        "breast cancer, uid", _csv(numbered), "mitosis", "diagnosis", ("uid",), of="breast cancer"
    )
    digits = _sklearn(datasets.load_digits)[:300]
    pixels = digits.rename(columns={n: f"p{i}" for i, n in enumerate(digits.columns[:-1])})
    yield Case("digits", _csv(pixels), "omniglot", "target")
    yield Case("diabetes", _csv(_sklearn(datasets.load_diabetes)), "redshift", "target")
    progression = _sklearn(datasets.load_diabetes, "progression").assign(patient_id=range(442))
    yield Case(
        "diabetes, ids",
        _csv(progression),
        "redshift",
        "progression",
        ("patient_id",),
        of="diabetes",
    )
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
        ("cancer", "cancer.csv", "redshift", "cancer", ()),
        ("committee", "committee.csv", "redshift", "BILLS104", ()),
        ("scotland", "scotvote.csv", "redshift", "YES", ()),
        ("strikes", "strikes.csv", "redshift", "duration", ()),
        ("grunfeld", "grunfeld.csv", "redshift", "invest", ()),
        ("copper", "copper.csv", "redshift", "WORLDCONSUMPTION", ()),
        ("fair", "fair.csv", "redshift", "affairs", ()),
        ("co2", "co2.csv", "aggregation", "co2", ()),
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
        of = "iris" if file.startswith("iris") else ""
        yield Case(f"vega {file} as JSON lines", lines, "mitosis", target, of=of)


def _messy() -> Iterator[Case]:
    """The tables above as they arrive by e-mail."""
    diabetes = _sklearn(datasets.load_diabetes, "progression").round(4)
    iris = _sklearn(datasets.load_iris, "species", True)
    german = _csv(diabetes, sep=";", decimal=",")
    yield Case("semicolons, decimal commas", german, "redshift", "progression", of="diabetes")
    prices = _houses()
    marks = prices.assign(
        price=[f"{v:,.0f}".replace(",", ".") for v in prices["price"]],
        area=[f"{v:.1f}".replace(".", ",") for v in prices["area"]],
    )
    yield Case("German thousands", _csv(marks, sep=";"), "redshift", "price")
    english = prices.assign(price=[f"{v:,.0f}" for v in prices["price"]])
    yield Case("quoted thousands", _csv(english), "redshift", "price", of="German thousands")
    latin = iris.rename(columns={"petal width (cm)": "Blütenbreite (cm)"})
    yield Case("Latin-1", _csv(latin).decode().encode("latin-1"), "mitosis", "species", of="iris")
    titled = b"Iris flowers\nSource: Fisher 1936\n\n" + _csv(iris)
    yield Case("titles above", titled, "mitosis", "species", of="iris")
    totals = _csv(prices) + b"Total,99999,88,7777,666\n"
    yield Case("a row of totals", totals, "redshift", "price", of="German thousands")
    remarks = _csv(prices) + b"Source: land registry\n(c) the office\n"
    yield Case("footnotes", remarks, "redshift", "price", of="German thousands")
    dated = prices.assign(
        sold=pd.date_range("2020-01-01", periods=len(prices)).strftime("%d.%m.%Y")
    )
    yield Case("dates of sale", _csv(dated), "redshift", "price", ("sold",), of="German thousands")
    coded = diabetes.copy()
    coded.loc[::9, "bmi"] = -99
    yield Case("-99 for missing", _csv(coded), "redshift", "progression", of="diabetes")
    absent = iris.astype(object)
    absent.iloc[::7, 1], absent.iloc[::11, 2] = "(X)", "."
    yield Case("(X) and .", _csv(absent), "mitosis", "species", of="iris")
    units = "kg,cm,kPa,mg/l\n".join(("mass,height,pressure,target\n", ""))
    rng = np.random.default_rng(0)
    measured = rng.normal(50, 9, (80, 4))
    measured[:, 3] += measured[:, 0] - 0.5 * measured[:, 1]
    rows = "".join(",".join(f"{v:.2f}" for v in row) + "\n" for row in measured)
    yield Case("a row of units", (units + rows).encode(), "redshift", "target [mg/l]")
    headless = _csv(iris, header=False)
    yield Case("no header", headless, "mitosis", "column 5", of="iris")
    fixed = diabetes.to_string(index=False).encode()
    yield Case("aligned by spaces", fixed, "redshift", "progression", of="diabetes")
    log = prices.assign(log_price=np.log(prices["price"]))
    yield Case(
        "target and its logarithm",
        _csv(log),
        "redshift",
        "price",
        ("log_price",),
        of="German thousands",
    )
    energy = pd.DataFrame(rng.normal(size=(90, 6)), columns=["X1", "X2", "X3", "X4", "Y1", "Y2"])
    energy["Y1"] += energy["X1"] * energy["X2"]
    energy["Y2"] += np.sin(2 * energy["X1"]) + energy["X3"]
    yield Case("two targets", _csv(energy), "redshift", "Y2", ("Y1",))
    indexed = iris.copy()
    indexed.insert(0, "Unnamed: 0", range(len(iris)))
    yield Case("an index from R", _csv(indexed), "mitosis", "species", ("Unnamed: 0",), of="iris")
    workbook = io.BytesIO()
    with pd.ExcelWriter(workbook) as writer:
        prices.to_excel(writer, sheet_name="houses", index=False, startrow=2)
        writer.book["houses"]["A1"] = "Sales of the year"
    yield Case(
        "a workbook with a title", workbook.getvalue(), "redshift", "price", of="German thousands"
    )


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


def _drawn() -> Iterator[Case]:
    """Tables of other fields, with columns, sizes and strengths of relation as theirs have."""
    yield from _sky()
    yield from _patients()
    yield from _areas()
    yield from _expression()
    yield from _patches()


def _sky(n: int = 300) -> Iterator[Case]:
    """Magnitudes of galaxies: a spectrum's break passes through the bands with redshift."""
    rng = np.random.default_rng(2)
    z, luminosity = rng.beta(2, 3, n) + 0.05, rng.normal(0, 0.8, n)
    survey = pd.DataFrame()
    for i, band in enumerate("ugri"):
        passed = 1.5 / (1 + np.exp(-(z - 0.15 - 0.25 * i) / 0.08))
        error = 0.02 * np.exp(0.3 * rng.normal(size=n)) * 2.0 ** (i == 0)
        shade = 20 - 0.4 * i + passed + 4 * np.log(z) + luminosity
        survey[band], survey[f"err_{band}"] = shade + error * rng.normal(size=n), error
    survey = survey.round(4).assign(objID=np.arange(n) + 10**9, z_spec=z.round(4))
    yield Case("galaxies", _csv(survey), "redshift", "z_spec", ("objID",))


def _patients() -> Iterator[Case]:
    """Times of survival by accelerated failure, some cut off; and a class seen in two views."""
    rng = np.random.default_rng(3)
    n = 200
    lung = pd.DataFrame(
        {
            "age": rng.normal(62, 9, n).round(),
            "karno": rng.choice(range(50, 101, 10), n),
            "wt_loss": rng.normal(10, 12, n).round(),
        }
    )
    mean = 5.8 + 0.03 * (lung["karno"] - 80) - 0.02 * (lung["age"] - 62)
    time, end = np.exp(mean + 0.6 * rng.gumbel(size=n)), rng.uniform(200, 1500, n)
    lung = lung.assign(time=np.minimum(time, end).round() + 1, status=(time < end).astype(int))
    yield Case("lung cancer", _csv(lung), "multiview", "time")
    rossi = pd.DataFrame(
        {
            "fin": rng.integers(0, 2, n),
            "age": rng.integers(17, 45, n),
            "prio": rng.poisson(3, n),
        }
    )
    mean = 4.0 + 0.4 * rossi["fin"] + 0.05 * (rossi["age"] - 25) - 0.12 * rossi["prio"]
    week = np.exp(mean + 0.5 * np.log(rng.exponential(size=n)))
    rossi = rossi.assign(week=week.clip(1, 52).round().astype(int), arrest=(week < 52).astype(int))
    yield Case("recidivism", _csv(rossi), "multiview", "week")
    views = pd.DataFrame(
        rng.normal(10, 2, (n, 4)).round(3), columns=["texture.a", "texture.b", "color.a", "color.b"]
    )
    odds = (views["texture.a"] - 10) * (views["color.b"] - 10) / 2 + views["texture.b"] - 10
    views["label"] = np.where(odds + rng.logistic(size=n) > 0, "fire", "quiet")
    yield Case("views", _csv(views), "multiview", "label")


def _areas(n: int = 90) -> Iterator[Case]:
    """Values that vary smoothly over place, depth and time."""
    rng = np.random.default_rng(4)
    at = np.arange(n)
    smooth = np.sin(at / 7) + 0.5 * np.sin(at / 3 + 1)
    boxes = pd.DataFrame({"rate": (10 + 2 * smooth + rng.normal(0, 0.3, n)).round(3)})
    boxes = boxes.assign(West=at, East=at + 1, South=3.0, North=4.5)
    yield Case("West, East, South, North", _csv(boxes), "aggregation", "rate")
    station = rng.choice(["roof", "street"], n)
    level = 10 + 3 * np.sin(2 * np.pi * at / 24) + 2 * (station == "street")
    hours = pd.DataFrame({"SO2 [ppb]": (level + rng.normal(0, 0.8, n)).round(3)})
    hours = hours.assign(start=at, end=at + 1, station=station)
    yield Case("hours of a station", _csv(hours), "aggregation", "SO2 [ppb]")
    limits = pd.DataFrame({"yield": (5 + smooth + rng.normal(0, 0.2, n)).round(3)})
    limits = limits.assign(depth_min=at, depth_max=at + 2)
    yield Case("depths from and to", _csv(limits), "aggregation", "yield")
    lat, lon = rng.uniform(47, 49, n).round(4), rng.uniform(8, 12, n).round(4)
    field = 20 + 6 * np.exp(-((lat - 48.2) ** 2 + (lon - 9.5) ** 2)) + 2 * np.sin(2 * lon)
    places = pd.DataFrame({"lat": lat, "lon": lon, "concentration": field + rng.normal(0, 0.5, n)})
    yield Case("points on a map", _csv(places.round(4)), "aggregation", "concentration")


def _expression() -> Iterator[Case]:
    """Genes that rise, fall or peak, alike in all replicas but for a shift."""
    rng = np.random.default_rng(5)

    def curve(height: float, peak: float, t: np.ndarray) -> np.ndarray:
        return np.asarray(5 + height * np.exp(-((t - peak) ** 2) / 0.15))

    shapes = list(zip(rng.normal(0, 2, 20), rng.uniform(0, 1, 20)))
    genes = pd.DataFrame({"gene": [f"gene{i}" for i in range(20)]})
    shift = rng.normal(0, 0.2, 3)
    for hour in (0, 6, 12, 24):
        level = np.array([curve(*shape, np.array(hour / 24)) for shape in shapes])
        for repeat in (1, 2, 3):
            noisy = level + shift[repeat - 1] + rng.normal(0, 0.3, 20)
            genes[f"{hour}h_rep{repeat}"] = noisy.round(3)
    yield Case("genes in rows", _csv(genes), "genes", "")
    turned = genes.set_index("gene").T.reset_index(names="sample")
    yield Case("genes in columns", _csv(turned), "genes", "", of="genes in rows")
    time, t = np.tile(range(15), 6), np.arange(15) / 14
    curves = [
        curve(*shape, t) + rng.normal(0, 0.3) + rng.normal(0, 0.2, 15)
        for shape in ((2.0, 0.3), (-1.5, 0.6), (1.0, 0.9))
        for _ in range(2)
    ]
    long = pd.DataFrame(
        {
            "gene": np.repeat(["hb", "kr", "gt"], 30),
            "embryo": np.tile(np.repeat(["e1", "e2"], 15), 3),
            "time": time,
            "expression": np.concatenate(curves).round(3),
        }
    )
    yield Case("genes, long", _csv(long), "genes", "expression")


def _patches(n: int = 90) -> Iterator[Case]:
    """Features of pictures: a few labels, and many classes of few drawings."""
    rng = np.random.default_rng(6)
    features = rng.normal(10, 2, (n, 3)).round(3)
    found = np.where(features.sum(1) + rng.normal(0, 1.5, n) > 30, "clamp", "none of it")
    found[np.arange(n) % 6 > 0] = ""
    pool = pd.DataFrame(features, columns=["f1", "f2", "f3"]).assign(label=found)
    yield Case("a pool of labels", _csv(pool), "clamp", "label")
    character = np.arange(5 * 20) % 20
    centers = rng.normal(0, 2, (20, 8))
    drawn = centers[character] + rng.normal(0, 1, (len(character), 8))
    scripts = pd.DataFrame(drawn.round(3), columns=[f"s{i}" for i in range(1, 9)]).assign(
        alphabet=np.where(character < 10, "Greek", "Anu"), character=[f"c{i}" for i in character]
    )
    yield Case("characters", _csv(scripts), "omniglot", "character")
