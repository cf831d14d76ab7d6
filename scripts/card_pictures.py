"""Draw the gallery's pictures, assets/card-<study>.svg, from the recordings that are shipped.

    python scripts/card_pictures.py

What a study's picture shows is said by its entry in `PICTURES`: points, shaded by a deviation, over
a line. Colours are those of the plots, which hold on light and dark pages.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from pathlib import Path

import numpy as np

from dashboard.plots.theme import DEVIATION, GREY
from engine.events import Report
from engine.store import Store

ROOT = Path(__file__).parent.parent
WIDTH, HEIGHT, MARGIN = 330, 170, 8
POINTS = 400  # enough for a cloud, few enough for a small file


def redshift(report: Report) -> str:
    """Predicted against true redshift of the recorded run's test rows, as on the page."""
    true, mean, model, noise = (
        report.arrays[name][:POINTS] for name in ("z_true", "z_mean", "std_model", "std_noise")
    )
    top = float(np.quantile(true, 0.995))
    std = np.hypot(model, noise)
    low, high = np.quantile(std, [0.02, 0.98])
    shade = np.clip((std - low) / (high - low), 0, 1) * (len(DEVIATION) - 1)
    inside = (true < top) & (mean > 0) & (mean < top)
    dots = [
        f'<circle cx="{_x(t / top)}" cy="{_y(m / top)}" r="2.4" fill="{DEVIATION[int(s)]}"/>'
        for t, m, s in zip(true[inside], mean[inside], np.round(shade[inside]))
    ]
    line = (
        f'<path d="M{_x(0)} {_y(0)}L{_x(1)} {_y(1)}" stroke="{GREY}" stroke-width="1.2" '
        'stroke-dasharray="4 4"/>'
    )
    return line + f'<g fill-opacity=".65">{"".join(dots)}</g>'


PICTURES: dict[str, Callable[[Report], str]] = {"redshift": redshift}


def _x(share: float) -> str:
    return f"{MARGIN + share * (WIDTH - 2 * MARGIN):.1f}"


def _y(share: float) -> str:
    return f"{HEIGHT - MARGIN - share * (HEIGHT - 2 * MARGIN):.1f}"


def main() -> None:
    """Draw every picture anew."""
    for study, draw in PICTURES.items():
        recording = (ROOT / "data" / "recordings" / f"{study}.scant").read_bytes()
        with tempfile.TemporaryDirectory() as folder:
            store = Store.open(f"sqlite:///{folder}/runs.db")
            report = store.report(store.import_recording(recording))
            store.close()
        assert report is not None, "a recording ends with a report"
        target = ROOT / "assets" / f"card-{study}.svg"
        target.write_text(
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}">'
            f"{draw(report)}</svg>\n",
            encoding="utf-8",
        )
        print(f"{target.name}: {target.stat().st_size:,} bytes")


if __name__ == "__main__":
    main()
