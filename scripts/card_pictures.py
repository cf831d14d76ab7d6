"""Draw the gallery's pictures, assets/cards/<page>.svg, from the recordings that are shipped.

    python scripts/card_pictures.py

What a study's picture shows is said by its entry in `PICTURES`: points, shaded by a deviation, over
a line. Colors are those of the plots, which hold on light and dark pages.
"""

from __future__ import annotations

import tempfile
from base64 import b64encode
from collections.abc import Callable, Mapping
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np
from bokeh.palettes import Cividis256
from PIL import Image

from scant.events import Report
from scant.store import Store
from scant_dashboard.plots.theme import BLUE, DEVIATION, GRAY, GREEN, GROUPS, VERMILION

ROOT = Path(__file__).parent.parent
WIDTH, HEIGHT, MARGIN = 330, 170, 8
Metadata = Mapping[str, Any]
POINTS = 400  # enough for a cloud, few enough for a small file


def redshift(report: Report, metadata: Metadata) -> str:
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
        f'<path d="M{_x(0)} {_y(0)}L{_x(1)} {_y(1)}" stroke="{GRAY}" stroke-width="1.2" '
        'stroke-dasharray="4 4"/>'
    )
    return line + f'<g fill-opacity=".65">{"".join(dots)}</g>'


def aggregation(report: Report, metadata: Metadata) -> str:
    """The posterior mean on small cells, as on the page, with the boxes that were recorded."""
    first, second = (np.asarray(edges) for edges in metadata["edges"])
    n, m = len(first) - 1, len(second) - 1
    mean = report.arrays["mean"].reshape(m, n)
    low, high = np.quantile(mean, [0.01, 0.99])
    shade = np.round(np.clip((mean - low) / (high - low), 0, 1) * 255).astype(int)
    colors = np.array([[int(c[k : k + 2], 16) for k in (1, 3, 5)] for c in Cividis256], np.uint8)
    file = BytesIO()
    Image.fromarray(colors[shade.T[::-1]]).save(file, "PNG")  # years run to the right
    inside, tall = WIDTH - 2 * MARGIN, HEIGHT - 2 * MARGIN
    picture = (
        f'<image x="{MARGIN}" y="{MARGIN}" width="{inside}" height="{tall}" '
        'preserveAspectRatio="none" style="image-rendering:pixelated" '
        f'href="data:image/png;base64,{b64encode(file.getvalue()).decode()}"/>'
    )
    columns = [f"M{MARGIN + j * inside / m:.1f} {MARGIN}v{tall}" for j in range(0, m + 1, 5)]
    rows = [f"M{MARGIN} {HEIGHT - MARGIN - i * tall / n:.1f}h{inside}" for i in range(0, n + 1, 5)]
    return f'{picture}<path d="{"".join(columns + rows)}" stroke="#fff" stroke-opacity=".35"/>'


def genes(report: Report, metadata: Metadata) -> str:
    """Some outputs' replicas as on the page: bands, means, what was learnt from and held out."""
    a, seen = report.arrays, metadata["observed"]
    places = list(zip(seen["output"], seen["replica"], seen["x"], seen["y"], seen["test"]))
    grid, down, across, gap = a["grid"], 3, 4, 0.04
    low, high = grid[0], grid[-1]
    parts = []
    for s in range(down):
        values = [y for output, _, _, y, _ in places if output == s]
        bottom, top = min(values) - 0.3, max(values) + 0.3

        def at(r: int, x: float, y: float) -> str:
            inside = min(max((y - bottom) / (top - bottom), 0.0), 1.0)  # noqa: B023
            column = (r + (x - low) / (high - low) * (1 - gap)) / across
            return f"{_x(column)} {_y(1 - (s + gap + (1 - inside) * (1 - gap)) / down)}"  # noqa: B023

        for r in range(across):
            mean, std = a["mean"][s, r], 1.96 * a["std_y"][s, r]
            edge = [at(r, x, y) for x, y in zip(grid, mean + std)]
            edge += [at(r, x, y) for x, y in zip(grid[::-1], (mean - std)[::-1])]
            curve = [at(r, x, y) for x, y in zip(grid, mean)]
            parts.append(f'<path d="M{"L".join(edge)}Z" fill="{BLUE}" fill-opacity=".22"/>')
            parts.append(f'<path d="M{"L".join(curve)}" fill="none" stroke="{BLUE}"/>')
            for output, replica, x, y, test in places:
                if (output, replica) == (s, r):
                    cx, cy = at(r, x, y).split()
                    look = f'fill="none" stroke="{GREEN}"' if test else f'fill="{GRAY}"'
                    parts.append(f'<circle cx="{cx}" cy="{cy}" r="1.8" {look}/>')
    return "".join(parts)


def omniglot(report: Report, metadata: Metadata) -> str:
    """Which classes are alike, as on the page, sorted by clusters; and held-out characters."""
    a = report.arrays
    order = a["order"].astype(int)
    alike = a["correlation"][order][:, order]
    tall, n = HEIGHT - 2 * MARGIN, len(order)
    cell = tall / n
    squares = {"#fff": "", "#000": ""}
    for i, j in zip(*np.nonzero(np.abs(alike) > 0.05)):
        side = 0.95 * cell * float(np.sqrt(abs(alike[i, j])))
        x, y = (MARGIN + (k + 0.5) * cell - side / 2 for k in (j, i))
        squares["#fff" if alike[i, j] > 0 else "#000"] += (
            f"M{x:.1f} {y:.1f}h{side:.1f}v{side:.1f}h-{side:.1f}z"
        )
    parts = [f'<path d="M{MARGIN} {MARGIN}h{tall}v{tall}h-{tall}z" fill="{GRAY}"/>']
    parts += [f'<path d="{path}" fill="{color}"/>' for color, path in squares.items()]
    across, size = 3, tall / 3
    gray = [int(GRAY[k : k + 2], 16) for k in (1, 3, 5)]
    for k, image in enumerate(a["examples"][: across * 3]):
        ink = np.round(255 * np.clip(image, 0, 1)).astype(np.uint8)
        file = BytesIO()
        shaded = np.dstack([np.broadcast_to(gray, (*ink.shape, 3)).astype(np.uint8), ink])
        Image.fromarray(shaded).save(file, "PNG")
        x = WIDTH - MARGIN - (across - k % across) * size
        parts.append(
            f'<image x="{x:.1f}" y="{MARGIN + k // across * size:.1f}" width="{size - 4:.1f}" '
            f'height="{size - 4:.1f}" style="image-rendering:pixelated" '
            f'href="data:image/png;base64,{b64encode(file.getvalue()).decode()}"/>'
        )
    return "".join(parts)


def events(report: Report, metadata: Metadata) -> str:
    """A lane for each hidden neuron, with its value at every row, and bars of its contribution."""
    a = report.arrays
    hidden, truth = a["hidden"][::2], a["truth"][::2] > 0.5  # half of the rows: a light picture
    low, high = np.quantile(hidden, [0.005, 0.995])
    lanes, bars = hidden.shape[1], 0.74  # where the bars begin
    within = (np.arange(len(hidden)) * 0.618) % 1
    dots = {VERMILION: "", BLUE: ""}
    parts = []
    for v, share in enumerate(a["influence"] / a["influence"].max()):
        for k, value in enumerate(np.clip((hidden[:, v] - low) / (high - low), 0, 1)):
            lift = (0.44 - 0.36 * within[k]) if truth[k] else (0.52 + 0.36 * within[k])
            place = f'cx="{_x(value * 0.7)}" cy="{_y(1 - (v + lift) / lanes)}"'
            dots[BLUE if truth[k] else VERMILION] += f'<circle {place} r="1.4"/>'
        x, y, wide = float(_x(bars)), _y(1 - (v + 0.22) / lanes), share * (1 - bars)
        parts.append(
            f'<rect x="{x}" y="{y}" width="{wide * (WIDTH - 2 * MARGIN):.1f}" '
            f'height="{0.56 * (HEIGHT - 2 * MARGIN) / lanes:.1f}" fill="{BLUE}"/>'
        )
    groups = [f'<g fill="{c}" fill-opacity=".6">{d}</g>' for c, d in dots.items()]
    return "".join([*groups, *parts])


def mitosis(report: Report, metadata: Metadata) -> str:
    """Rows where they lie in the space that classes share; cells that the model has drawn."""
    a, tall = report.arrays, HEIGHT - 2 * MARGIN
    share = 1 - (4 * tall / 3) / (WIDTH - 2 * MARGIN)  # of the width, for the scatter
    shared = int(metadata["n_shared"])
    first = np.argsort(-a["relevance"][:shared])[:2]
    places, label = a["latent_mean"][:, first], a["latent_class"].astype(int)
    low, high = np.quantile(places, [0.01, 0.99], axis=0)
    at = (places - low) / (high - low)
    rare = list(metadata["classes"]).index(metadata["rare"])
    parts = []
    for k in np.argsort(label == rare, kind="stable"):  # the rare ones on top
        if (np.abs(at[k] - 0.5) <= 0.5).all():
            x, y = _x(0.97 * share * at[k, 0]), _y(at[k, 1])
            color = GROUPS[label[k] % len(GROUPS)]
            parts.append(f'<circle cx="{x}" cy="{y}" r="2.6" fill="{color}" fill-opacity=".7"/>')
    size = tall / 3
    kinds = [np.flatnonzero(a["generated_class"] == c) for c in (rare, int(rare == 0))]
    for k, cell in enumerate([*kinds[0][:6], *kinds[1][:6]]):
        column, row = k // 3, k % 3
        file = BytesIO()
        gray = np.round(255 * np.clip(a["generated"][cell], 0, 1)).astype(np.uint8)
        Image.fromarray(gray).save(file, "PNG")
        x, y = WIDTH - MARGIN - (4 - column) * size + 3, MARGIN + row * size
        color = GROUPS[int(a["generated_class"][cell]) % len(GROUPS)]
        parts.append(
            f'<image x="{x:.1f}" y="{y:.1f}" width="{size - 5:.1f}" height="{size - 5:.1f}" '
            f'href="data:image/png;base64,{b64encode(file.getvalue()).decode()}"/>'
            f'<path d="M{x:.1f} {y:.1f}h{size - 5:.1f}v{size - 5:.1f}h-{size - 5:.1f}z" '
            f'fill="none" stroke="{color}" stroke-width="1.5"/>'
        )
    return "".join(parts)


def clamp(report: Report, metadata: Metadata) -> str:
    """The pool by its probability with what was asked about; F1 by labels, asked and at random."""
    a, half = report.arrays, 0.5
    xy, p = a["pool_xy"], a["pool_p"]
    low, high = np.quantile(xy, [0.01, 0.99], axis=0)
    at = (xy - low) / (high - low)
    inside = (np.abs(at - 0.5) <= 0.5).all(1)
    parts = []
    for k in np.flatnonzero(inside)[:POINTS]:
        color = DEVIATION[round(float(p[k]) * (len(DEVIATION) - 1))]
        x, y = _x(half * at[k, 0]), _y(at[k, 1])
        parts.append(f'<circle cx="{x}" cy="{y}" r="2" fill="{color}" fill-opacity=".8"/>')
    for k in a["asked"].astype(int):
        if inside[k]:
            x, y = float(_x(half * at[k, 0])) - 3, float(_y(at[k, 1])) - 3
            parts.append(f'<path d="M{x:.1f} {y:.1f}h6v6h-6z" fill="none" stroke="{GRAY}"/>')
    labels, f1 = a["labels"], a["f1"]
    along = 1.08 * half + (1 - 1.08 * half) * (labels - labels[0]) / (labels[-1] - labels[0])
    top, sd = np.nanmax(f1) + 0.1, np.nan_to_num(a["f1_random_sd"])
    band = [(x, v) for x, v in zip(along, f1[1] + sd)]
    band += [(x, v) for x, v in zip(along[::-1], (f1[1] - sd)[::-1])]
    edge = "L".join(f"{_x(x)} {_y(min(max(v / top, 0), 1))}" for x, v in band)
    parts.append(f'<path d="M{edge}Z" fill="{VERMILION}" fill-opacity=".18"/>')
    for line, color in ((f1[1], VERMILION), (f1[0], BLUE)):
        curve = "L".join(f"{_x(x)} {_y(v / top)}" for x, v in zip(along, line))
        parts.append(f'<path d="M{curve}" fill="none" stroke="{color}" stroke-width="2.5"/>')
    return "".join(parts)


def first_gp() -> str:
    """The posterior of a GP given five points: its band, mean and two samples."""
    x, y = np.array([0.06, 0.25, 0.38, 0.72, 0.92]), np.array([0.3, 0.62, 0.5, 0.2, 0.66])
    grid = np.linspace(0, 1, 80)

    def kernel(a: np.ndarray, b: np.ndarray) -> np.ndarray:
        return 0.22**2 * np.exp(-0.5 * (np.subtract.outer(a, b) / 0.13) ** 2)

    gain = np.linalg.solve(kernel(x, x) + 0.02**2 * np.eye(len(x)), kernel(x, grid)).T
    mean, cov = 0.45 + gain @ (y - 0.45), kernel(grid, grid) - gain @ kernel(x, grid)
    spread = 1.96 * np.sqrt(np.clip(np.diag(cov), 0, None))
    samples = np.random.default_rng(1).multivariate_normal(mean, cov, 2, method="eigh")

    def path(xs: np.ndarray, ys: np.ndarray) -> str:
        return "M" + "L".join(f"{_x(a)} {_y(b)}" for a, b in zip(xs, np.clip(ys, 0, 1)))

    edge = path(np.append(grid, grid[::-1]), np.append(mean + spread, (mean - spread)[::-1]))
    parts = [f'<path d="{edge}Z" fill="{BLUE}" fill-opacity=".22"/>']
    for curve, width in [(one, 1) for one in samples] + [(mean, 2.5)]:
        parts.append(
            f'<path d="{path(grid, curve)}" fill="none" stroke="{BLUE}" stroke-width="{width}"/>'
        )
    parts += [f'<circle cx="{_x(a)}" cy="{_y(b)}" r="4" fill="{GRAY}"/>' for a, b in zip(x, y)]
    return "".join(parts)


PICTURES: dict[str, Callable[[Report, Metadata], str]] = {
    "aggregation": aggregation,
    "clamp": clamp,
    "multiview": events,
    "genes": genes,
    "mitosis": mitosis,
    "omniglot": omniglot,
    "redshift": redshift,
}


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
            run = store.import_recording(recording)
            report, metadata = store.report(run), store.run(run).metadata
            store.close()
        assert report is not None, "a recording ends with a report"
        write(study, draw(report, metadata))
    write("gp", first_gp())


def write(page: str, shapes: str) -> None:
    """Write a page's picture."""
    target = ROOT / "assets" / "cards" / f"{page}.svg"
    target.write_text(
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}">{shapes}</svg>\n',
        encoding="utf-8",
    )
    print(f"{target.name}: {target.stat().st_size:,} bytes")


if __name__ == "__main__":
    main()
