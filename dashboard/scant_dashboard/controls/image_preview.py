"""Preview of an uploaded ZIP of images: counts per folder and example images."""

from __future__ import annotations

import html
from base64 import b64encode
from collections.abc import Sequence
from io import BytesIO

import numpy as np
import pandas as pd
from jaxtyping import Float
from PIL import Image

from scant.tables.images.image_table import folders
from scant.tables.schema import Table, TableSchema
from scant_dashboard.translate import ntr, tr

LISTED = 12  # maximum number of folders in the table
PICTURED = 16  # maximum number of example images
MAGNIFIED = 44  # size of an example in CSS pixels


def pictured(table: Table, schema: TableSchema) -> str:
    """Return the preview of a table of images as HTML: counts, and examples of all classes.

    Images that became views of features have none.
    """
    if schema.cut:
        return _patches(table)
    if schema.views:
        return ""  # its notes name the views
    levels, _ = folders(schema)
    if len(levels) == 1:
        return _classes(table, levels[0], schema.turned)
    outer, inner = levels
    counts = table.frame.groupby([outer, inner], sort=False).size()
    outputs = list(dict.fromkeys(table.frame[outer]))
    rows = []
    for output in outputs[:LISTED]:
        each = counts[output]
        smallest, largest = int(each.min()), int(each.max())
        spread = f"{smallest}"
        if smallest != largest:
            spread = tr("{smallest} to {largest}", smallest=smallest, largest=largest)
        rows.append((str(output), len(each), int(each.sum()), spread))
    message = ntr(
        "{images:,} images of {classes:,} classes in {n:,} folder:",
        "{images:,} images of {classes:,} classes in {n:,} folders:",
        len(outputs),
        images=len(table.frame),
        classes=len(counts),
    )
    if len(outputs) > LISTED:
        message += " " + tr("The first {n} folders are listed.", n=LISTED)
    first = table.frame.drop_duplicates([outer, inner])
    examples = first.iloc[np.unique(np.linspace(0, len(first) - 1, PICTURED).astype(int))]
    alts = [
        tr("{label} of {folder}", label=label, folder=output)
        for output, label in zip(examples[outer], examples[inner])
    ]
    heads = (outer, tr("classes"), tr("images"), tr("images per class"))
    aria = tr("The first image of some classes")
    return (
        _listed(message, heads, rows)
        + f"<p aria-label='{aria}'>{_examples(table, examples, alts)}</p>"
    )


def _classes(table: Table, label: str, turned: bool) -> str:
    """Return the preview of images in one folder per class, the rarest class first."""
    frame = table.frame
    counts = frame[label].value_counts(ascending=True)
    groups = [c for c in frame.columns if c not in table.features and c != label]
    rows = [
        (
            str(name),
            int(count),
            *(int(frame.loc[frame[label] == name, g].nunique()) for g in groups),
        )
        for name, count in counts.iloc[:LISTED].items()
    ]
    message = tr(
        "{images:,} images of {classes:,} classes, the rarest first:",
        images=len(frame),
        classes=len(counts),
    )
    each = max(2, PICTURED // len(counts))
    examples = pd.concat([frame[frame[label] == name].head(each) for name in counts.index[:LISTED]])
    alts = [str(name) for name in examples[label]]
    return (
        _listed(message, (label, tr("images"), *(f"{g}s" for g in groups)), rows)
        + f"<p aria-label='{tr('The first images of each class')}'>"
        + f"{_examples(table, examples, alts, turned)}</p>"
    )


def _patches(table: Table) -> str:
    """Return the preview of patches cut from photographs: counts and evenly spaced examples."""
    frame = table.frame
    examples = frame.iloc[np.unique(np.linspace(0, len(frame) - 1, PICTURED).astype(int))]
    made = "".join(
        f"<img src='data:image/jpeg;base64,{html.escape(image, quote=True)}' "
        f"width='{2 * MAGNIFIED}' alt='{html.escape(str(name), quote=True)}' "
        "style='margin: 0 6px 6px 0'>"
        for image, name in zip(examples["image"], examples["picture"])
    )
    given = frame["label"].value_counts() if "label" in frame else pd.Series(dtype=int)
    labels = ", ".join(
        f"{html.escape(str(name))} {tr('{n:,}', n=count)}" for name, count in given.items()
    )
    message = ntr(
        "{patches:,} patches of {n:,} photograph.",
        "{patches:,} patches of {n:,} photographs.",
        frame["picture"].nunique(),
        patches=len(frame),
    )
    labeled = tr("None of them is labeled yet.")
    if labels:
        labeled = tr("Labels: {n:,} ({labels}).", n=int(given.sum()), labels=labels)
    return (
        f"<p class='quiet'>{message} {labeled}</p>"
        f"<p aria-label='{tr('Some of the patches')}'>{made}</p>"
    )


def _listed(message: str, names: Sequence[str], rows: Sequence[Sequence[object]]) -> str:
    head = "".join(f"<th scope='col'>{html.escape(n)}</th>" for n in names)
    body = ""
    for first, *others in rows:
        cells = "".join(f"<td class='number'>{c}</td>" for c in others)
        body += f"<tr><th scope='row'>{html.escape(str(first))}</th>{cells}</tr>"
    return (
        f"<p class='quiet'>{message}</p><div class='scroll'><table><thead><tr>{head}</tr></thead>"
        f"<tbody>{body}</tbody></table></div>"
    )


def _examples(
    table: Table, examples: pd.DataFrame, alts: Sequence[str], turned: bool = True
) -> str:
    """Return rows as images; `turned` if the values are ink (dark) rather than gray."""
    side = round(len(table.features) ** 0.5)
    images = examples[list(table.features)].to_numpy(np.float64).reshape(-1, side, side)
    made = ""
    for image, message in zip(images if turned else 1 - images, alts):
        alt = html.escape(message, quote=True)
        made += (
            f"<img src='{png_url(image)}' width='{MAGNIFIED}' height='{MAGNIFIED}' alt='{alt}' "
            f"title='{alt}' style='image-rendering: pixelated; margin: 0 6px 6px 0'>"
        )
    return made


def png_url(image: Float[np.ndarray, "h w"]) -> str:
    """Encode an image, 1 for ink, as the data URL of a PNG."""
    file = BytesIO()
    Image.fromarray(np.round(255 * (1 - np.clip(image, 0, 1))).astype(np.uint8)).save(file, "PNG")
    return f"data:image/png;base64,{b64encode(file.getvalue()).decode()}"
