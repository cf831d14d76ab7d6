"""What the upload wizard shows of a ZIP of images: counts by alphabet, and a few of them."""

from __future__ import annotations

import html
from base64 import b64encode
from io import BytesIO

import numpy as np
from jaxtyping import Float
from PIL import Image

from engine.datasets import Table

LISTED = 12  # outputs
PICTURED = 16  # images
MAGNIFIED = 44  # pixels of the page that an image takes


def pictured(table: Table) -> str:
    """A table of images as HTML: how many of what, and examples spread over the classes."""
    outer, inner = list(table.frame.columns[:2])
    counts = table.frame.groupby([outer, inner], sort=False).size()
    outputs = list(dict.fromkeys(table.frame[outer]))
    rows = ""
    for output in outputs[:LISTED]:
        each = counts[output]
        few, many = int(each.min()), int(each.max())
        spread = f"{few}" if few == many else f"{few} to {many}"
        cells = "".join(f"<td class='number'>{c}</td>" for c in (len(each), each.sum(), spread))
        rows += f"<tr><th scope='row'>{html.escape(str(output))}</th>{cells}</tr>"
    names = (outer, "classes", "images", "a class")
    head = "".join(f"<th scope='col'>{html.escape(n)}</th>" for n in names)
    more = f", of which the first {LISTED} are" if len(outputs) > LISTED else ""
    said = (
        f"{len(table.frame):,} images of {len(counts):,} classes in {len(outputs):,} "
        f"{'folder' if len(outputs) == 1 else 'folders'}{more}:"
    )
    return (
        f"<p class='quiet'>{said}</p><div class='scroll'><table><thead><tr>{head}</tr></thead>"
        f"<tbody>{rows}</tbody></table></div>{_examples(table, outer, inner)}"
    )


def _examples(table: Table, outer: str, inner: str) -> str:
    """The first image of some classes, ink dark on paper in either theme."""
    first = table.frame.drop_duplicates([outer, inner])
    spread = np.unique(np.linspace(0, len(first) - 1, PICTURED).astype(int))
    side = round(len(table.features) ** 0.5)
    shown = first.iloc[spread]
    images = shown[list(table.features)].to_numpy(np.float64).reshape(-1, side, side)
    made = ""
    for image, output, label in zip(images, shown[outer], shown[inner]):
        alt = html.escape(f"{label} of {output}", quote=True)
        made += (
            f"<img src='{drawn(image)}' width='{MAGNIFIED}' height='{MAGNIFIED}' alt='{alt}' "
            f"title='{alt}' style='image-rendering: pixelated; margin: 0 6px 6px 0'>"
        )
    return f"<p aria-label='The first image of some classes'>{made}</p>"


def drawn(image: Float[np.ndarray, "h w"]) -> str:
    """An image as a PNG in an address of its own; 1 is ink."""
    file = BytesIO()
    Image.fromarray(np.round(255 * (1 - np.clip(image, 0, 1))).astype(np.uint8)).save(file, "PNG")
    return f"data:image/png;base64,{b64encode(file.getvalue()).decode()}"
