"""Whether the conclusions of the publications hold in our results.

`data/published/claims.csv` lists the conclusions that our results can test. Each has one or several
comparisons of two methods by a metric; a conclusion holds if all of them do.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import cache
from typing import NamedTuple

from scant.package_data import package_rows
from scant.reproduce.tables import STAND_IN, at_least_as_good, differ, read
from scant.studies import STUDIES


class MeanScore(NamedTuple):
    """Our mean of a metric.

    Attributes:
        mean: Mean over repeats.
        spread: Deviation over repeats; NaN if there is one repeat.
        repeats: Number of repeats.
    """

    mean: float
    spread: float
    repeats: int

    @property
    def error(self) -> float:
        """Deviation of the mean; NaN if there is one repeat."""
        return self.spread / math.sqrt(max(self.repeats - 1, 1))


class Comparison(NamedTuple):
    """Comparison of two methods.

    Attributes:
        experiment: Name of the experiment.
        data: Whose rows.
        metric: Name of the metric.
        relation: What the publication says of `better`: "better" than `worse`, "not worse",
            "equal", "times" (better by a factor or more) or "about" (better by about a factor).
        factor: Factor of "times" and "about"; NaN for others.
        better: Name of a method.
        worse: Name of the method that it is compared with.
        ours: Our scores of the two; None if one of them was not measured.
    """

    experiment: str
    data: str
    metric: str
    relation: str
    factor: float
    better: str
    worse: str
    ours: tuple[MeanScore, MeanScore] | None

    @property
    def holds(self) -> bool | None:
        """Whether our scores agree; None if they do not tell, or if one was not measured twice.

        Of two methods, one is better if their means differ clearly. They are equal unless single
        repeats differ clearly: with many repeats, small differences of means are clear.
        """
        if self.ours is None or any(math.isnan(score.spread) for score in self.ours):
            return None
        one, other = self.ours
        ahead = at_least_as_good(self.metric, one.mean, other.mean)
        difference = one.mean - other.mean
        if self.relation == "equal":
            return not differ(difference, one.spread, other.spread)
        if self.relation in ("times", "about"):
            low, high = sorted((one.mean, other.mean))
            # As many digits as the publication has: "a sixth" is 5.5 and more, "10%" is 1.05.
            ratio = round(high / low, 1 if self.factor < 2 else 0) if low > 0 else math.inf
            return ahead and (
                ratio == self.factor if self.relation == "about" else ratio >= self.factor
            )
        if differ(difference, one.error, other.error):
            return ahead
        return True if self.relation == "not worse" else None


class Claim(NamedTuple):
    """A conclusion of a publication.

    Attributes:
        publication: Key of the publication.
        study: Study that tests it.
        text: The conclusion.
        where: Section, table and figure.
        comparisons: Comparisons that test it.
    """

    publication: str
    study: str
    text: str
    where: str
    comparisons: tuple[Comparison, ...]

    @property
    def holds(self) -> bool | None:
        """Whether all comparisons agree; None if one does not tell and no other disagrees."""
        verdicts = [one.holds for one in self.comparisons]
        if False in verdicts:
            return False
        return None if None in verdicts else True

    @property
    def measured(self) -> bool:
        """Whether the scores of all comparisons were measured."""
        return all(one.ours is not None for one in self.comparisons)

    def with_verdict(self, holds: bool | None) -> tuple[Comparison, ...]:
        """Return the measured comparisons with a verdict."""
        return tuple(c for c in self.comparisons if c.ours is not None and c.holds is holds)

    @property
    def on_other_data(self) -> bool:
        """Whether the data stand in for the publication's."""
        return any(STAND_IN in one.data for one in self.comparisons)


@cache
def claims(study: str) -> Sequence[Claim]:
    """Return the conclusions on a study, in the order of the publications."""
    rows = read(study)
    scores: dict[tuple[str, str, str], MeanScore] = {}
    data: dict[str, str] = {}
    if rows is not None:
        data = dict(zip(rows["experiment"], rows["data"]))
        measured = rows[rows["ours"].notna()]
        keys = zip(measured["experiment"], measured["method"], measured["metric"])
        means = zip(measured["ours"], measured["spread"], measured["repeats"])
        scores = {key: MeanScore(*mean) for key, mean in zip(keys, means)}

    def comparison(row: dict[str, str]) -> Comparison:
        one, other = (
            scores.get((row["experiment"], row[side], row["metric"]))
            for side in ("better", "worse")
        )
        return Comparison(
            row["experiment"],
            data.get(row["experiment"], ""),
            row["metric"],
            row["relation"],
            float(row["factor"] or math.nan),
            row["better"],
            row["worse"],
            None if one is None or other is None else (one, other),
        )

    result: dict[tuple[str, str, str, str], list[Comparison]] = {}
    for row in package_rows("published", "claims.csv"):
        if row["study"] == study:
            key = row["publication"], study, row["claim"], row["where"]
            result.setdefault(key, []).append(comparison(row))
    return [Claim(*key, tuple(comparisons)) for key, comparisons in result.items()]


def every_claim() -> list[Claim]:
    """Return the conclusions on all studies."""
    return [claim for study in STUDIES for claim in claims(study)]
