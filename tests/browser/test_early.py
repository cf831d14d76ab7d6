"""What a visitor does while the page is still being built is done."""

from __future__ import annotations

import json
import re

from playwright.sync_api import Page, WebSocketRoute, expect

PATIENCE = 60_000  # ms; other work may share the machine's cores

# Acts on each control the moment it is there, sooner than a hand could; notes whether the page was
# still being built. A quick page would be up before: its word that it is waits for the acts.
AT_ONCE = """
const acts = ACTS
const find = (test, root = document) => {
  for (const node of root.querySelectorAll('*')) {
    if (test(node) && node.getClientRects().length) return node
    const inner = node.shadowRoot && find(test, node.shadowRoot)
    if (inner) return inner
  }
}
const wait = (doc) => {
  const idle = doc.notify_idle
  doc.notify_idle = (root) => {
    const go = () => acts.length ? setTimeout(go, 20) : idle.call(doc, root)
    go()
  }
}
window.acted = {}
const timer = setInterval(() => {
  const doc = window.Bokeh?.documents[0]
  if (!doc) return
  if (!Object.hasOwn(doc, 'notify_idle')) wait(doc)
  const [kind, name] = acts[0]
  const node = find((n) => n.matches(kind) && n.textContent.trim() === name)
  if (!node) return
  acted[name] = !doc.is_idle
  node.dispatchEvent(new MouseEvent('mousedown', {bubbles: true, composed: true}))
  node.click()
  acts.shift()
  if (!acts.length) clearInterval(timer)
}, 5)
"""


def act_at_once(page: Page, address: str, *acts: tuple[str, str]) -> None:
    """Open a page and use these controls (selector, words on them), all before it is built."""
    page.add_init_script(AT_ONCE.replace("ACTS", json.dumps(acts)))
    page.goto(address, wait_until="commit")
    done = f"window.acted && Object.keys(acted).length == {len(acts)}"
    page.wait_for_function(done, timeout=PATIENCE)
    assert page.evaluate("Object.values(acted)") == [True] * len(acts)


def test_folds_and_settings_and_the_source_follow_the_first_click(page: Page, app_url: str) -> None:
    act_at_once(
        page,
        f"{app_url}/redshift",
        ("button", "More settings +"),
        ("button", "Read on +"),
        ("button", "quick"),
        ("button", "Use your own data"),
    )
    expect(page.get_by_text("A table of at most")).to_be_visible(timeout=PATIENCE)
    basis = page.get_by_role("textbox", name="Basis functions")
    expect(basis).to_have_value("10", timeout=PATIENCE)
    expect(page.get_by_role("textbox", name="Patience")).to_be_visible(timeout=PATIENCE)
    expect(page.get_by_text("The target is a sum")).to_be_visible(timeout=PATIENCE)
    expect(page.get_by_role("button", name="More settings −")).to_be_visible()


def test_train_and_stop_follow_the_first_click(page: Page, app_url: str) -> None:
    settings = "training_size=200&validation_size=80&test_size=120&n_basis=4&max_steps=5000"
    act_at_once(page, f"{app_url}/redshift?{settings}&patience=0", ("button", "Train"))
    expect(page).to_have_url(re.compile("[?&]run="), timeout=PATIENCE)
    status = page.get_by_role("status").first
    expect(status).not_to_contain_text("recorded", timeout=PATIENCE)
    page.get_by_role("button", name="Stop", exact=True).click(timeout=PATIENCE)
    expect(status).to_contain_text(re.compile("^stopped"), timeout=PATIENCE)


def test_a_press_is_answered_before_the_server_can(page: Page, app_url: str) -> None:
    held: list[str | bytes] = []
    hold = False

    def route(ws: WebSocketRoute) -> None:
        server = ws.connect_to_server()
        ws.on_message(lambda said: held.append(said) if hold else server.send(said))

    page.route_web_socket(re.compile("/ws"), route)
    page.goto(f"{app_url}/redshift")
    status = page.get_by_role("status").first
    expect(status).to_contain_text("recorded", timeout=PATIENCE)
    hold = True
    page.get_by_role("button", name="Train", exact=True).click()
    expect(status).to_have_text("queued: sending the settings", timeout=PATIENCE)
    for _ in range(100):  # what the route was told reaches it when it comes round to that
        if held:
            break
        page.wait_for_timeout(50)
    assert held
