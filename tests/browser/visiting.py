"""What the tests of all pages do in a browser, and where they look."""

from __future__ import annotations

from playwright.sync_api import Locator, Page, expect

PATIENCE = 120_000  # milliseconds


def status(page: Page) -> Locator:
    return page.get_by_role("status").first


def reading(page: Page, title: str) -> Locator:
    """The caption of a figure."""
    return (
        page.locator(".figure")
        .filter(has=page.get_by_role("heading", name=title))
        .locator(".reading")
    )


def come_to(page: Page, title: str) -> Locator:
    """Scroll to a figure, which is built when a visitor comes near; its caption."""
    page.get_by_role("heading", name=title).scroll_into_view_if_needed(timeout=PATIENCE)
    return reading(page, title)


def button(page: Page, name: str) -> Locator:
    return page.get_by_role("button", name=name, exact=True)


def drop(page: Page, name: str, content: bytes) -> None:
    """Drop a file on the upload wizard, opening it first if need be."""
    wizard = page.get_by_text("A CSV file of at most")
    if not wizard.is_visible():
        page.get_by_role("combobox", name="Source").click()
        page.get_by_role("menuitem", name="Upload a table").click()
    expect(wizard).to_be_visible(timeout=PATIENCE)
    kind = "application/zip" if name.endswith(".zip") else "text/csv"
    page.locator("input[type=file]").set_input_files(
        {"name": name, "mimeType": kind, "buffer": content}
    )
