"""A widget with which a person labels one patch after another, by buttons or keys.

The browser holds the next patches already. A press is told to the server as a message with a turn;
the next patch shows once `answer(turn, …)` has come, which the page gives when the label is on
disk. What is on show is never replaced unasked.
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
NUMBERS = ("turn", "row", "value")  # of a press, each of which may be missing
SHOWN = 14  # features of a patch without an image


class LabelingWidget(JSComponent):
    """One patch, a button for each class, its place, and lists of patches to come back to.

    Attributes:
        classes: Names; keys 1 to 9 are the first nine.
        cards: Patches that the browser lacks, as `card` makes them; it keeps those it was given.
        queue: What to ask next, best first: dicts of `row`, `why` and, of a pre-label, the index
            of its class as `suggest`.
        history: Labels that stand, latest first: dicts of `row`, `label`, `who` and `role`.
        unsure: Patches to look at again: dicts of `row`, `label`, `who`.
        disputes: Patches on which labelers disagree, undecided first: dicts of `row`, `given`
            (dicts of `label`, `who`) and `decided` (a class, or "").
        agreement: How far labelers agree, in words.
        progress: `given`, `budget` and `lines` of words; {} for none.
        open: Whether labels can be given.
        undoable: Whether there is one to take back.
        idle: What stands in the place of a patch while there is none.
        session: Counts the runs that it was laid out for.
    """

    classes = param.List(default=["", ""])
    cards = param.List(default=[])
    queue = param.List(default=[])
    history = param.List(default=[])
    unsure = param.List(default=[])
    disputes = param.List(default=[])
    agreement = param.String("")
    progress = param.Dict(default={})
    open = param.Boolean(default=False)
    undoable = param.Boolean(default=False)
    idle = param.String("")
    session = param.Integer(0)

    _esm = component("labeling")

    def __init__(self, hear: Callable[[Mapping[str, Any]], None], **params: Any) -> None:
        """Make the widget.

        Args:
            hear: Called with `act` ("label", "unsure", "skip", "undo", "again", "decide"; "ready"
                when it is laid out, "who" when another person sits down), `who`, `turn` and, with
                some, `row`, `value` (the index of a class), `deciding` (whether the label is a
                decision between labelers).
            **params: Of the component.
        """
        params.setdefault("sizing_mode", "stretch_width")
        params.setdefault("margin", 0)
        params.setdefault("stylesheets", [style("labeling")])
        super().__init__(**params)
        self._hear = hear

    def _handle_msg(self, data: Any) -> None:
        if isinstance(data, dict) and "act" in data and all(map(_whole, map(data.get, NUMBERS))):
            self._hear(data)  # what no press sends is left alone

    def answer(self, turn: int, **message: Any) -> None:
        """Answer a press.

        Args:
            turn: Its turn.
            message: `said`, and `next=True` (show the next), `gone` (a row that is done with) or
                `back` (a row to show again, with `deciding=True` for a decision on it); or
                `error`: a sentence, and the patch stays.
        """
        self._send_msg({"turn": turn, **message})

    def bring_up(self, row: int) -> None:
        """Show a patch that was chosen elsewhere on the page, in place of the one on show."""
        self._send_msg({"turn": 0, "show": row})


def _whole(value: object) -> bool:
    return value is None or type(value) is int


def card(
    row: int,
    image: UInt8[np.ndarray, "h w 3"],
    thumb: UInt8[np.ndarray, "a b 3"],
    box: Float[np.ndarray, " 4"],
    features: Sequence[tuple[str, float]] = (),
) -> dict[str, Any]:
    """What the browser needs of a patch.

    Args:
        row: Of the pool.
        image: The patch; empty where it is none.
        thumb: The picture that it was cut from, small; empty where there is none.
        box: Left, top, width and height of the patch as shares of the picture.
        features: Names and values, shown where there is no image.
    """
    made: dict[str, Any] = {"row": int(row), "features": [[n, f"{v:.4g}"] for n, v in features]}
    made["features"] = made["features"][:SHOWN]
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
