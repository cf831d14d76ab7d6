"""Gallery, frame and failure states in a real browser."""

from __future__ import annotations

import re
from collections.abc import Callable
from itertools import pairwise

import pytest
from playwright.sync_api import Page, Route, expect

from tests.browser.accessible import assert_accessible
from tests.browser.visiting import figure

PATIENCE = 60_000  # ms until an answer; other work may share the machine's cores

BUILT = "() => Bokeh.documents[0]?.is_idle"

FRAMES = """async () => {
  const ask = window.requestAnimationFrame
  let asked = 0
  window.requestAnimationFrame = (then) => { asked += 1; return ask.call(window, then) }
  await new Promise((done) => setTimeout(done, 1000))
  window.requestAnimationFrame = ask
  return asked
}"""

HEADINGS = """() => {
  const found = []
  const walk = (root) => {
    for (const node of root.querySelectorAll('*')) {
      const heading = /^H[1-6]$/.test(node.tagName) && node.getClientRects().length
      if (heading) found.push(+node.tagName[1])
      if (node.shadowRoot) walk(node.shadowRoot)
    }
  }
  walk(document)
  return found
}"""


@pytest.fixture
def open_page(page: Page, app_url: str) -> Callable[[str], Page]:
    """Opens a path of the app and waits for its heading."""

    def opened(path: str) -> Page:
        page.goto(app_url + path)
        page.get_by_role("heading", level=1).wait_for(timeout=PATIENCE)
        return page

    return opened


@pytest.mark.usefixtures("nothing_complains")
def test_the_gallery_leads_to_each_study_and_dark_stays_dark(
    open_page: Callable[[str], Page],
) -> None:
    page = open_page("/")
    for picture in page.get_by_role("img").all():
        assert picture.get_attribute("alt")
        assert picture.evaluate("async (image) => { await image.decode(); return image.width }")
    assert page.get_by_role("img").count() >= 1
    light = page.evaluate("getComputedStyle(document.body).backgroundColor")
    page.get_by_role("button", name="Toggle theme").click()
    expect(page.locator("body")).not_to_have_css("background-color", light)
    page.wait_for_function("() => document.cookie.includes('scant_theme=dark')")
    page.get_by_role("link", name=re.compile("Redshift.*Open the finished run")).click()
    expect(page.get_by_role("heading", level=1)).to_have_text("Redshift")
    page.wait_for_function(BUILT)
    expect(page.locator("body")).not_to_have_css("background-color", light)


@pytest.mark.parametrize("path", ["/", "/redshift", "/redshift?present", "/redshift?run=nonsense"])
def test_headings_are_in_order_below_exactly_one_first(
    visit: Callable[[str], Page], path: str
) -> None:
    levels = visit(path).evaluate(HEADINGS)
    assert levels[0] == 1
    assert levels.count(1) == 1
    assert all(after <= before + 1 for before, after in pairwise(levels))


def test_a_run_that_is_not_there_is_said_in_a_sentence(visit: Callable[[str], Page]) -> None:
    page = visit("/redshift?run=nonsense")
    expect(page.get_by_role("alert")).to_contain_text("There is no run 'nonsense'")
    expect(page.get_by_role("button", name="Train", exact=True)).to_be_visible()


def test_a_page_at_rest_asks_its_visitors_machine_for_nothing(visit: Callable[[str], Page]) -> None:
    """Sixty turns a second were a tenth of a core, on each of thirty laptops (filepond_painter)."""
    page = visit("/redshift")
    page.wait_for_function(BUILT)
    at_rest = (page.evaluate(FRAMES) < 10 for _ in range(60))
    assert any(at_rest)


def test_an_address_that_leads_nowhere(page: Page, app_url: str) -> None:
    answer = page.goto(app_url + "/nowhere")
    assert answer is not None
    assert answer.status == 404
    expect(page.get_by_role("link", name="To the gallery")).to_be_visible()


SET = "/redshift?n_basis=13&colour=blue"


def test_settings_in_the_link_fill_the_form_and_unknown_ones_are_said(
    visit: Callable[[str], Page],
) -> None:
    page = visit(SET)
    expect(page.get_by_role("textbox", name="Basis functions")).to_have_value("13")
    expect(page.get_by_text("There is no setting 'colour'")).to_be_visible()


def test_a_setting_that_is_not_allowed_is_refused_on_the_page(
    visit: Callable[[str], Page],
) -> None:
    """Goes on where the test before has ended."""
    page = visit(SET)
    status = page.get_by_role("status").first
    for number, word in enumerate(("many", "several", "a few")):
        page.get_by_role("textbox", name="Basis functions").fill(word)
        if number == 1:  # a visitor who types and presses Train at once is heard, too
            page.get_by_role("textbox", name="Basis functions").press("Enter")
        page.get_by_role("button", name="Train", exact=True).click()
        expect(status).to_contain_text(
            f"not started: Setting 'n_basis' must be a whole number at "
            f"least 1 and at most 1000, or auto; got '{word}'",
            timeout=PATIENCE,
        )
    expect(page.get_by_role("alert")).to_contain_text("must be a whole number", timeout=PATIENCE)


@pytest.mark.parametrize(
    ("path", "last"),
    [("/", "Redshift"), ("/redshift?present", "Prediction against truth")],
)
def test_axe_finds_nothing_against_gallery_and_present_mode(
    visit: Callable[[str], Page], path: str, last: str
) -> None:
    assert_accessible(visit(path), last)


def test_present_mode_hides_controls_enlarges_type_and_steps_by_keys(
    open_page: Callable[[str], Page],
) -> None:
    page = open_page("/redshift?present")
    page.set_viewport_size({"width": 1920, "height": 1080})
    expect(page.get_by_role("textbox", name="Basis functions")).to_have_count(0)
    expect(page.get_by_role("button", name="Use your own data")).to_have_count(0)
    expect(page.get_by_role("status").first).to_contain_text("recorded")
    size = page.evaluate("getComputedStyle(document.documentElement).fontSize")
    assert float(size.removesuffix("px")) >= 24
    for title in ("Prediction against truth", "Where the uncertainty comes from"):
        expect(page.locator("nav.steps .at")).to_contain_text(title, timeout=PATIENCE)
        shown = page.get_by_role("heading", level=3).filter(visible=True)
        expect(shown).to_have_text(title)  # one figure, which fills the screen
        drawn = figure(page, title).locator(".bk-Figure").first
        large = "box => box.offsetHeight > innerHeight / 2"
        page.wait_for_function(large, arg=drawn.element_handle(timeout=PATIENCE))
        page.keyboard.press("ArrowRight")
    page.keyboard.press("b")
    expect(page.locator(".blank")).to_be_visible()
    page.keyboard.press("b")
    expect(page.locator(".blank")).to_have_count(0)
    with page.expect_popup() as opened:
        page.keyboard.press("s")
    expect(opened.value.get_by_text("Is the predicted uncertainty correct?")).to_be_visible()
    opened.value.close()
    page.keyboard.press("Escape")
    page.wait_for_url(lambda url: "present" not in url)


def test_the_visitor_cookie_is_not_for_scripts(visit: Callable[[str], Page]) -> None:
    cookies = {c["name"]: c for c in visit("/").context.cookies()}
    assert cookies["scant_visitor"]["httpOnly"]


def test_a_browser_that_refuses_cookies_is_told_what_is_wanting(page: Page, app_url: str) -> None:
    """Without its cookie a browser cannot show that it is the one which opened the page."""
    opened = []

    def without_cookies(route: Route) -> None:
        opened.append(route.request.url)
        answer = route.fetch()  # which keeps cookies itself
        page.context.clear_cookies()
        headers = {k: v for k, v in answer.headers.items() if k.lower() != "set-cookie"}
        route.fulfill(response=answer, headers=headers)

    page.route(app_url + "/", without_cookies)
    page.goto(app_url)
    expect(page.get_by_role("alert")).to_contain_text("allow cookies for this site")
    assert len(opened) == 3  # loaded anew twice, in case it was chance


@pytest.mark.parametrize("path", ["/", "/redshift"])
def test_no_page_scrolls_sideways(page: Page, app_url: str, path: str) -> None:
    for k, (width, height) in enumerate([(390, 844), (1280, 800), (1920, 1080), (390, 844)]):
        page.set_viewport_size({"width": width, "height": height})
        if k == 0:
            page.goto(app_url + path)
            page.wait_for_function(BUILT)
        page.wait_for_function(f"() => innerWidth === {width}")
        page.wait_for_function(f"() => document.documentElement.scrollWidth <= {width}")
        widest = page.locator(".main-content").evaluate("(n) => n.scrollWidth - n.clientWidth")
        assert widest <= 0
        expect(page.locator("header button")).to_be_in_viewport(ratio=1)


def test_a_page_is_printed_whole(visit: Callable[[str], Page]) -> None:
    page = visit("/redshift")
    expect(page.get_by_role("heading", name="Limits and sources")).to_be_attached(timeout=PATIENCE)
    page.emulate_media(media="print")
    cut = page.locator(".main-content").evaluate("e => e.scrollHeight - e.clientHeight")
    assert cut == 0
    assert len(re.findall(rb"/Type\s*/Page\b", page.pdf(format="A4"))) > 1
    page.emulate_media(media="screen")
    assert page.locator(".main-content").evaluate("e => e.scrollHeight - e.clientHeight") > 0
