"""A widget with which a person labels patches one by one, with buttons or keys.

The browser prefetches the next patches. A press is sent to the server as a message with a turn
number; the next patch is shown when `answer(turn, …)` arrives, which the page calls once the label
is on disk. The current patch is never replaced without a press.
"""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Callable, Mapping, Sequence
from io import BytesIO
from typing import Any

import numpy as np
import param
from jaxtyping import Float, UInt8
from panel.custom import JSComponent
from PIL import Image

from scant_dashboard.template import component, style

QUALITY = 88  # of JPEG
NUMBERS = ("turn", "row", "value")  # optional fields of a press
MAX_FEATURES = 14  # listed for a row without an image


class LabelingWidget(JSComponent):
    """One patch with a button per class, its place in the picture, and lists of patches to revisit.

    Attributes:
        classes: Class names; keys 1 to 9 select the first nine.
        cards: Patches that the browser lacks, made by `card`; it stores those it has received.
        queue: Patches to label next, best first: dicts of `row`, `why` and, with a pre-label, the
            index of its class as `suggest`.
        history: Current labels, latest first: dicts of `row`, `label`, `who` and `role`.
        unsure: Patches marked as unsure: dicts of `row`, `label`, `who`.
        disputes: Patches on which labelers disagree, undecided first: dicts of `row`, `given`
            (dicts of `label`, `who`) and `decided` (a class, or "").
        agreement: Agreement of the labelers, as text.
        names: Names of patches that are no rows of the pool, by their number as text.
        progress: `given`, `budget` and `lines` of text; {} for none.
        open: Whether labels can be given.
        undoable: Whether there is a label to undo.
        idle: Text shown while there is no patch.
        session: Number of runs for which the widget was laid out.
    """

    classes = param.List(default=["", ""])
    cards = param.List(default=[])
    queue = param.List(default=[])
    history = param.List(default=[])
    unsure = param.List(default=[])
    disputes = param.List(default=[])
    agreement = param.String("")
    names = param.Dict(default={})
    progress = param.Dict(default={})
    open = param.Boolean(default=False)
    undoable = param.Boolean(default=False)
    idle = param.String("")
    session = param.Integer(0)

    _esm = component("labeling")

    def __init__(self, on_press: Callable[[Mapping[str, Any]], None], **params: Any) -> None:
        """Make the widget.

        Args:
            on_press: Called with a dict of `act` ("label", "unsure", "skip", "undo", "again",
                "decide"; "ready" after layout, "who" when the labeler changes), `who`, `turn` and,
                depending on the act, `row`, `value` (the index of a class) and `deciding` (whether
                the label settles a dispute).
            **params: Parameters of the component.
        """
        params.setdefault("sizing_mode", "stretch_width")
        params.setdefault("margin", 0)
        params.setdefault("stylesheets", [style("labeling")])
        super().__init__(**params)
        self._on_press = on_press

    def _handle_msg(self, data: Any) -> None:
        if isinstance(data, dict) and "act" in data and all(map(_is_int, map(data.get, NUMBERS))):
            self._on_press(data)  # malformed messages are ignored

    def answer(self, turn: int, **message: Any) -> None:
        """Answer a press.

        Args:
            turn: Turn number of the press.
            message: `said` with a status text, and one of `next=True` (show the next patch), `gone`
                (a row that is finished) and `back` (a row to show again; with `deciding=True` to
                settle its dispute); or `error` with a sentence, which leaves the patch on show.
        """
        self._send_msg({"turn": turn, **message})

    def show_row(self, row: int) -> None:
        """Replace the current patch by one chosen elsewhere on the page."""
        self._send_msg({"turn": 0, "show": row})


def _is_int(value: object) -> bool:
    return value is None or type(value) is int


def card(
    row: int,
    image: UInt8[np.ndarray, "h w 3"],
    thumb: UInt8[np.ndarray, "a b 3"],
    box: Float[np.ndarray, " 4"],
    features: Sequence[tuple[str, float]] = (),
) -> dict[str, Any]:
    """Describe a patch for the browser.

    Args:
        row: Its row in the pool.
        image: The patch; empty if the row has no image.
        thumb: Thumbnail of the picture from which it was cut; empty if there is none.
        box: Left, top, width and height of the patch as fractions of the picture.
        features: Names and values, shown if there is no image.
    """
    made: dict[str, Any] = {"row": int(row), "features": [[n, f"{v:.4g}"] for n, v in features]}
    made["features"] = made["features"][:MAX_FEATURES]
    if image.size:
        made["image"] = _url(image)
    if thumb.size:
        made |= {
            "thumb": _url(thumb),
            "box": [float(v) for v in box],
            "shape": thumb.shape[1] / thumb.shape[0],
        }
    return made


def _url(image: UInt8[np.ndarray, "h w 3"]) -> str:
    file = BytesIO()
    Image.fromarray(np.ascontiguousarray(image)).save(file, "JPEG", quality=QUALITY)
    return "data:image/jpeg;base64," + b64encode(file.getvalue()).decode()
