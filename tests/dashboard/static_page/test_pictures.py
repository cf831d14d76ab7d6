"""Pictures find their figures in another page by what these consist of."""

from __future__ import annotations

from bokeh.plotting import figure

from scant_dashboard.static_page.figure_models import figure_model
from scant_dashboard.static_page.pictures import apart, key_of, pictures, with_pictures

WIDE = "<svg class='wide' id='{}'><path d='M0 0'/></svg>"


def page(*keys: str) -> str:
    plots = (
        f"<div><div class='plot' data-key='{key}' role='img'>"
        "<script type='application/json'>{}</script>"
        "<script data-part='3' type='application/json'>{\"x\":1}</script></div></div>"
        for key in keys
    )
    return f"<main>{''.join(plots)}<p>end</p></main>"


def test_pictures_go_by_key_and_those_of_one_key_by_order() -> None:
    made = [("a", WIDE.format(1)), ("b", ""), ("a", WIDE.format(2) + "<svg class='narrow'></svg>")]
    shipped = with_pictures(page("a", "b", "a"), made)
    assert pictures(shipped) == made
    other = with_pictures(page("c", "a", "a", "a"), pictures(shipped))
    assert [picture for _, picture in pictures(other)] == ["", made[0][1], made[2][1], ""]
    assert with_pictures(page("a"), []) == page("a")


def test_models_come_apart_in_the_order_of_their_figures() -> None:
    rest, models = apart(page("a", "b"))
    assert "<script" not in rest
    assert rest.count("class='plot'") == 2
    assert models.count("<div>") == 2
    assert models.count("data-part='3'") == 2


def test_a_key_depends_on_what_is_drawn_and_not_on_numbers() -> None:
    def key(high: float, label: str) -> str:
        one = figure(x_range=(0, high), x_axis_label=label)
        one.line([0, 1], [0, 1])
        return key_of(figure_model(one).figure)

    assert key(2.0, "step") == key(1.5e-7, "step") != key(2.0, "x")


def test_a_page_without_figures_has_no_pictures() -> None:
    assert pictures("<p>none</p>") == []
    assert with_pictures("<p>none</p>", []) == "<p>none</p>"
