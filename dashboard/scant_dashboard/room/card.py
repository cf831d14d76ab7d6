"""The presenter's view of a room: a button, then its code, counts and address."""

from __future__ import annotations

from typing import Any

import param
from panel.custom import JSComponent

from scant_dashboard.template import component, style


class RoomCard(JSComponent):
    """The button *Ask the room* and the room's state; a follower's page follows the presenter.

    Attributes:
        follows: Code of the room that this page follows.
        code: Code of the open room; "" for none.
        address: Address for phones.
        qr: The address as an SVG element.
        warning: Reason why phones may not reach the address.
        phones: Number of phones.
        votes: Number of phones that have answered the current question.
        asked: Whether there is a current question.
        leads: Whether phones and followers follow the presenter.
        here: Address of this page in the browser.
        step: Current figure, counted from 0; -1 before the first step.
        wall: Choices of what varies on a wall (`name`, `label`), with the range of a setting.
        wall_count: Number of runs on the wall; "" without a wall.
        wall_step: Index of the wall's figure.
        wall_request: The presenter's choice (`name`, `low`, `high`), "" to take the wall down.
        wall_fault: Reason why a choice was refused.
        pressed: Number of clicks on the button that opens and ends a room.
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
    wall = param.Dict({})
    wall_count = param.String("")
    wall_step = param.Integer(default=-1)
    wall_request = param.Dict({})
    wall_fault = param.String("")
    pressed = param.Integer(default=0)

    _esm = component("room")

    def __init__(self, **params: Any) -> None:
        super().__init__(
            sizing_mode="stretch_width", margin=0, stylesheets=[style("room")],
            css_classes=["room"], **params,
        )  # fmt: skip
