"""A web browser for tests, if the machine has one, and the pictures that the documentation shows."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, Page, expect, sync_playwright

PICTURES = Path(__file__).parents[2] / "docs" / "pictures"
SOON = 30_000
LAPTOP = {"width": 1280, "height": 800}
PHONE = {"width": 390, "height": 844}
_NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")


def find_browser() -> str | None:
    """Returns where the browser is: what HEADRACE_BROWSER says, or one that the system has."""
    return os.environ.get("HEADRACE_BROWSER") or next(filter(None, map(shutil.which, _NAMES)), None)


@contextmanager
def opened_browser() -> Iterator[Browser]:
    path = find_browser()
    if path is None:
        pytest.skip("there is no Chromium here: install it, or say where it is with HEADRACE_BROWSER")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=["--no-sandbox", "--disable-dev-shm-usage"])
        try:
            yield browser
        finally:
            browser.close()


def opened(browser: Browser, **options: Any) -> Iterator[Page]:
    """Opens a page that must log no error, ask nobody else, and run no foreign code."""
    context = browser.new_context(**{"viewport": LAPTOP, **options})
    page = context.new_page()
    page.set_default_timeout(SOON)
    wrong: list[str] = []
    page.on("pageerror", lambda error: wrong.append(str(error)))
    page.on("console", lambda message: wrong.append(message.text) if message.type == "error" else None)
    page.on("request", lambda request: None if "localhost" in request.url else wrong.append(request.url))
    yield page
    context.close()
    assert [text for text in wrong if "status of 4" not in text and "ERR_" not in text] == []


def take_picture(page: Page, name: str, *, with_rows: bool = False) -> None:
    """Keeps what is seen, if HEADRACE_PICTURES is set; a usual run of the tests changes no file.

    Rows of state are counted when they are written, ten seconds after they were committed; ``with_rows`` waits for it.
    """
    is_kept = bool(os.environ.get("HEADRACE_PICTURES"))
    if is_kept and with_rows:
        rows = page.locator(".card", has_text="rows of state").locator(".figure")
        expect(rows).not_to_have_text("0", timeout=SOON)
    data = page.screenshot()
    assert len(data) > 5000
    if is_kept:
        PICTURES.mkdir(parents=True, exist_ok=True)
        (PICTURES / f"{name}.png").write_bytes(data)
