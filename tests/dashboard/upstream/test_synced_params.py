"""What an object sends at first is what Panel would send."""

from __future__ import annotations

from unittest.mock import PropertyMock, patch

import panel as pn
import panel_material_ui as pmui
import pytest
from panel.reactive import Syncable
from panel.viewable import Viewable

from scant_dashboard.upstream import synced_params


@pytest.fixture(autouse=True)
def installed() -> None:
    synced_params.install()


@pytest.mark.parametrize(
    "made",
    [pmui.Button(label="Go"), pmui.Select(options=["a"]), pn.Column("words"), pn.Row(width=3)],
    ids=lambda made: type(made).__name__,
)
def test_the_same_parameters_are_sent_in_the_same_order(made: Viewable) -> None:
    original = Syncable._init_params.__wrapped__
    assert list(Syncable._init_params(made).items()) == list(original(made).items())


def test_panel_asks_once_a_parameter() -> None:
    made = pn.Row()
    kind = type(made)
    names = made._synced_params
    for function, least in ((Syncable._init_params.__wrapped__, 2), (Syncable._init_params, 1)):
        with patch.object(kind, "_synced_params", new_callable=PropertyMock, create=True) as asked:
            asked.return_value = names
            function(made)
        if least > 1:
            assert asked.call_count > 1, "Panel asks once by itself: drop the patch"
        else:
            assert asked.call_count == 1
