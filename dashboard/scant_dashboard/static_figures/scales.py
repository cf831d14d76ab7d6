"""Axes of a figure: positions of values between 0 and 1, tick values, and tick labels."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from jaxtyping import Float
from numpy import ndarray

from scant_dashboard.plots.theme import models

TICKS = 6  # Bokeh's desired number of ticks
MANTISSAS = (1.0, 2.0, 5.0)  # of tick intervals
PADDING = 0.1  # of automatic ranges, as Bokeh's default


class Scale:
    """The scale of one axis.

    Args:
        span: Bokeh's range.
        values: Coordinates along the axis, for an automatic range.
        log: Whether the axis is logarithmic.
    """

    def __init__(self, span: Any, values: Iterable[Any], log: bool = False) -> None:
        self.log = log
        self.factors: list[Any] = []
        if isinstance(span, models.FactorRange):
            self.factors = list(span.factors)
            self.low, self.high = 0.0, float(max(1, len(self.factors)))
        else:
            self.low, self.high = _limits(span, values, log)

    def __call__(self, values: Any) -> Float[ndarray, " n"]:
        """Return positions of values: 0 is the start of the range, 1 its end."""
        if self.factors:
            numbers = np.array([self._factor_position(value) for value in values], float)
        else:
            numbers = np.asarray(values, float)
        low, high = self.low, self.high
        if self.log:
            with np.errstate(divide="ignore", invalid="ignore"):
                numbers = np.log10(numbers)
            low, high = math.log10(low), math.log10(high)
        return (numbers - low) / ((high - low) or 1.0)

    def extent(self, values: Any) -> Float[ndarray, " n"]:
        """Return lengths as fractions of the axis."""
        return np.asarray(values, float) / ((self.high - self.low) or 1.0)

    def ticks(self, ticker: Any) -> list[float] | list[Any]:
        """Return the tick values; for categories, all of them."""
        if self.factors:
            return self.factors
        if isinstance(ticker, models.FixedTicker):
            return [float(t) for t in ticker.ticks if self._within(float(t))]
        return [
            t for t in (_powers if self.log else _linear_ticks)(*self._sorted()) if self._within(t)
        ]

    def _sorted(self) -> tuple[float, float]:
        return min(self.low, self.high), max(self.low, self.high)

    def _within(self, tick: float) -> bool:
        low, high = self._sorted()
        slack = 1e-9 * (high - low)
        return low - slack <= tick <= high + slack

    def _factor_position(self, value: Any) -> float:
        if isinstance(value, int | float | np.number):
            return float(value)
        if value in self.factors:
            return self.factors.index(value) + 0.5
        if isinstance(value, tuple | list) and value and value[0] in self.factors:
            return self.factors.index(value[0]) + 0.5 + float(value[1])  # (factor, offset)
        return math.nan


def tick_texts(ticks: Sequence[Any], axis: Any) -> list[str]:
    """Return tick labels, by the axis' overrides or its formatter."""
    overrides, formatter = axis.major_label_overrides, axis.formatter
    form = formatter.format if isinstance(formatter, models.NumeralTickFormatter) else ""
    digits = _digits([t for t in ticks if isinstance(t, float)])
    return [str(_override(overrides, t) or _number(t, form, digits)) for t in ticks]


def _override(overrides: dict[Any, Any], tick: Any) -> Any:
    if tick in overrides:
        return overrides[tick]
    whole = isinstance(tick, float) and tick.is_integer()
    return overrides.get(int(tick)) if whole else None


def _number(tick: Any, form: str, digits: int) -> str:
    if not isinstance(tick, float):
        return str(tick)
    if form.endswith("%"):
        return f"{_rounded(100 * tick, form[:-1])}%"
    if form:
        return _rounded(tick, form)
    if tick and not 1e-5 < abs(tick) < 1e6:
        return f"{tick:.3g}"
    return f"{tick:.{digits}f}"


def _rounded(value: float, form: str) -> str:
    """Format a number in numbro's format: optional digits in brackets, thousands separators."""
    head, _, decimals = form.partition(".")
    optional = decimals.count("0", decimals.find("[") + 1) if "[" in decimals else 0
    decimals_total = decimals.replace("[", "").replace("]", "").count("0")
    text = f"{value:{',' if ',' in head else ''}.{decimals_total}f}"
    if not optional:
        return text
    required = decimals_total - optional
    whole, _, part = text.partition(".")
    part = part[:required] + part[required:].rstrip("0")
    return f"{whole}.{part}" if part else whole


def _digits(ticks: Sequence[float]) -> int:
    """Return the number of decimals that distinguishes all ticks."""
    for digits in range(6):
        if all(abs(round(t, digits) - t) < 1e-9 * max(1.0, abs(t)) for t in ticks):
            return digits
    return 6


def _limits(span: Any, values: Iterable[Any], log: bool) -> tuple[float, float]:
    low, high = span.start, span.end
    if isinstance(span, models.DataRange1d):
        parts = [np.ravel(np.asarray(v, float)) for v in values]
        finite = np.concatenate(parts) if parts else np.empty(0)
        finite = finite[np.isfinite(finite) & ((finite > 0) | (not log))]
        data_low, data_high = (finite.min(), finite.max()) if len(finite) else (0.0, 1.0)
        low, high = _padded(float(data_low), float(data_high), float(span.range_padding), log)
        low = low if _is_auto(span.start) else span.start
        high = high if _is_auto(span.end) else span.end
        if span.flipped:
            low, high = high, low
    return float(low), float(high)


def _is_auto(end: Any) -> bool:
    return end is None or (isinstance(end, float) and math.isnan(end))


def _padded(low: float, high: float, share: float, log: bool) -> tuple[float, float]:
    if log:
        a, b = _padded(math.log10(low), math.log10(high), share, False)
        return 10**a, 10**b
    if low == high:
        return low - 1, high + 1
    more = share * (high - low) / 2
    return low - more, high + more


def _linear_ticks(low: float, high: float) -> list[float]:
    """Return ticks at round intervals, like Bokeh's adaptive ticker."""
    ideal = (high - low) / TICKS
    if not ideal > 0 or not math.isfinite(ideal):
        return [low]
    base = 10.0 ** math.floor(math.log10(ideal))
    steps = [m * base * p for p in (1, 10) for m in MANTISSAS]
    step = min(steps, key=lambda s: abs(TICKS - (high - low) / s))
    first, last = math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9)
    return [k * step for k in range(first, last + 1)]


def _powers(low: float, high: float) -> list[float]:
    first, last = math.ceil(math.log10(low) - 1e-9), math.floor(math.log10(high) + 1e-9)
    powers = [10.0**k for k in range(first, last + 1)]
    return powers if len(powers) > 1 else _linear_ticks(low, high)
