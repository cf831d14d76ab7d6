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
from scant.reproduce.tables import at_least_as_good, read
from scant.studies import STUDIES


class Score(NamedTuple):
    """Our mean of a metric and its deviation over repeats (NaN if there is one repeat)."""

    mean: float
    spread: float


class Comparison(NamedTuple):
    """Comparison of two methods.

    Attributes:
        experiment: Name of the experiment.
        metric: Name of the metric.
        relation: What the publication says of `better`: "better" than `worse`, "not worse", "equal"
            or "times" (better by a factor).
        factor: Factor of "times"; NaN for others.
        better: Name of a method.
        worse: Name of the method that it is compared with.
        ours: Our scores of the two; None if one of them was not measured.
    """

    experiment: str
    metric: str
    relation: str
    factor: float
    better: str
    worse: str
    ours: tuple[Score, Score] | None

    @property
    def holds(self) -> bool | None:
        """Whether our scores agree; None if one of them was not measured.

        Scores are equal if they differ by no more than two deviations of their difference over
        repeats, as if the repeats of the two were independent.
        """
        if self.ours is None:
            return None
        one, other = self.ours
        spread = math.hypot(*(0.0 if math.isnan(s.spread) else s.spread for s in self.ours))
        equal = abs(one.mean - other.mean) <= 2 * spread
        if self.relation == "equal":
            return equal
        if self.relation == "times":
            low, high = sorted((one.mean, other.mean))
            ahead = at_least_as_good(self.metric, one.mean, other.mean)
            # As many digits as the publication has: "a sixth" is 5.5 and more, "10%" is 1.05.
            digits = 1 if self.factor < 2 else 0
            return ahead and low > 0 and round(high / low, digits) >= self.factor
        better = at_least_as_good(self.metric, one.mean, other.mean) and one.mean != other.mean
        return better or (self.relation == "not worse" and equal)


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
        """Whether all comparisons agree; None if one was not measured and no other disagrees."""
        verdicts = [one.holds for one in self.comparisons]
        if False in verdicts:
            return False
        return None if None in verdicts else True

    @property
    def against(self) -> tuple[Comparison, ...]:
        """Comparisons that disagree."""
        return tuple(one for one in self.comparisons if one.holds is False)


@cache
def claims(study: str) -> Sequence[Claim]:
    """Return the conclusions on a study, in the order of the publications."""
    rows = read(study)
    scores: dict[tuple[str, str, str], Score] = {}
    if rows is not None:
        measured = rows[rows["ours"].notna()]
        keys = zip(measured["experiment"], measured["method"], measured["metric"])
        scores = dict(zip(keys, map(Score, measured["ours"], measured["spread"])))

    def comparison(row: dict[str, str]) -> Comparison:
        one, other = (
            scores.get((row["experiment"], row[side], row["metric"]))
            for side in ("better", "worse")
        )
        return Comparison(
            row["experiment"],
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
