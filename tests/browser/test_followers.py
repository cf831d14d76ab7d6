"""A run that others follow: their pages move with it, without a session, until they touch one."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.browser.conftest import Served, serving
from tests.browser.visiting import LONG, PATIENCE, press, status, train, until

# Live pages are within shadow roots.
SESSION = "() => document.querySelector('main .plot') === null"
# The columns of the curve as BokehJS has them, and whether it is drawn at all.
CURVE = """() => {
  if (typeof Bokeh === 'undefined') return null
  const [view] = Bokeh.index.query((view) => view.model.type === 'Figure')
  const curve = view?.model.document.get_model_by_name('curve')
  return curve ? [curve.data.step.length, view.model.id] : null
}"""
CANVAS = "() => document.querySelector('.plot[data-drawn] [data-canvas]')"


@pytest.fixture
def still(tmp_path: Path) -> Iterator[Served]:
    """A server with pages that need no session."""
    with serving(tmp_path, SCANT_STATIC_PAGES="1") as server:
        yield server


def test_two_follow_a_run_without_a_session_and_one_takes_over(
    browser: Browser, page: Page, still: Served
) -> None:
    train(page, f"{still.url}/redshift?{LONG}")
    until(page, "running")
    run = page.url
    followers = [_stranger(browser) for _ in range(2)]
    for follower in followers:
        _follow(follower, run)
        expect(status(follower)).to_have_text("running")
    one, other = followers
    status_line = one.evaluate_handle("() => document.querySelector('[role=status]')")
    for follower in followers:
        _wait(follower, lambda curve: curve is not None)
        canvas = follower.evaluate_handle(CANVAS)
        step, figure = follower.evaluate(CURVE)
        _wait(follower, lambda curve: curve[0] > step)  # noqa: B023
        assert follower.evaluate(CURVE)[1] == figure
        assert follower.evaluate(f"(was) => ({CANVAS})() === was", canvas), "it flickers"
        assert not follower.evaluate(SESSION)
    press(page, "Stop")
    expect(status(one)).to_contain_text("stopped", timeout=PATIENCE)
    expect(one.get_by_role("heading", name="Result", exact=True)).to_be_visible()
    expect(one).to_have_title("stopped · Redshift · Scant")
    same = one.evaluate("(was) => document.querySelector('[role=status]') === was", status_line)
    assert same, "a screen reader hears of what changes in the region that it knows"
    expect(status(other)).to_contain_text("stopped")
    press(other, "Train")
    other.wait_for_url(lambda url: "run=" in url and url != run, timeout=PATIENCE)
    assert other.evaluate(SESSION)
    assert not one.evaluate(SESSION)
    press(other, "Stop")
    for follower in followers:
        follower.context.close()


def _follow(page: Page, run: str) -> None:
    """Open a run's page; on a busy machine the first ones are built, as it is not drawn in time."""
    for _ in range(5):
        page.goto(run, timeout=PATIENCE)
        if not page.evaluate(SESSION):
            return
    raise AssertionError("the page has a session")


def _wait(page: Page, true: Callable[[Any], bool]) -> None:
    """Wait until something is true of the curve."""
    for _ in range(PATIENCE // 100):
        if true(page.evaluate(CURVE)):
            return
        page.wait_for_timeout(100)
    raise AssertionError("the curve was not drawn, or does not move")


def _stranger(browser: Browser) -> Page:
    """A visitor with cookies of their own."""
    context = browser.new_context()
    context.set_default_timeout(PATIENCE)
    return context.new_page()
