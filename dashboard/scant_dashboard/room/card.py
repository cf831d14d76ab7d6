"""What the presenter sees of a room: a button, then its code, its counts and the way in."""

from __future__ import annotations

from typing import Any

import param
from panel.custom import JSComponent

from scant_dashboard.template import component, style


class RoomCard(JSComponent):
    """*Ask the room*, and all that belongs to it; on a follower's page it only goes along.

    Attributes:
        follows: The code of the room whose presenter this page goes along with.
        code: Of the room that is open; "" for none.
        address: Where phones go.
        qr: The same as an SVG element.
        warning: Why phones may not get there.
        phones: How many have come.
        votes: How many of them have answered what is asked.
        asked: Whether something is asked.
        leads: Whether phones and followers go along.
        here: The address of this page as the browser has it.
        step: The figure that was stepped to, counted from 0; -1 for none yet.
        pressed: Counts presses of the button that opens and ends a room.
    """

    follows = param.String("")
    code = param.String("")
    address = param.String("")
    qr = param.String("")
    warning = param.String("")
    phones = param.Integer(default=0)
    votes = param.Integer(default=0)
    asked = param.Boolean(default=False)
    leads = param.Boolean(default=True)
    here = param.String("")
    step = param.Integer(default=-1)
    pressed = param.Integer(default=0)

    _esm = component("room")

    def __init__(self, **params: Any) -> None:
        super().__init__(
            sizing_mode="stretch_width", margin=0, stylesheets=[style("room")],
            css_classes=["room"], **params,
        )  # fmt: skip
