"""The console on the running demo: the real engine, the real pipeline."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterator

import pytest

pytest.importorskip("playwright.sync_api", reason="playwright is not installed")

from playwright.sync_api import expect

from tests.console.browser import opened_browser, take_picture

pytestmark = [pytest.mark.browser, pytest.mark.spark]

SOON = 120_000


@pytest.fixture
def address() -> Iterator[str]:
    command = [sys.executable, "-m", "headrace.cli", "demo", "--seconds", "300", "--rate", "200"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as demo:
        assert demo.stdout is not None
        try:
            found = next((each for line in demo.stdout if (each := re.match(r"console: (\S+)", line))), None)
            assert found is not None, "the demo tells where its console is"
            yield found[1]
        finally:
            demo.terminate()
            demo.communicate(timeout=90)


def test_the_demo_is_seen_from_its_start_to_its_results(address: str) -> None:
    with opened_browser() as browser:
        page = browser.new_page(viewport={"width": 1280, "height": 800})
        page.goto(address)
        expect(page.locator("#application")).to_have_text("demo", timeout=SOON)
        expect(page.locator("#state")).to_have_text("RUNNING", timeout=SOON)
        rate = page.locator(".card", has_text="records in").locator(".figure").first
        expect(rate).to_have_text(re.compile(r"^[1-9][\d,.]*/s$"), timeout=SOON)
        page.goto(f"{address}#/topology")
        expect(page.locator('[data-node="transactions-source"]')).to_contain_text("/s", timeout=SOON)
        take_picture(page, "demo-topology")
        page.goto(f"{address}#/stores/rewards-store")
        page.get_by_role("button", name="First 100").click()
        expect(page.locator("#answer tbody tr").first).to_be_visible(timeout=SOON)
        key = page.locator("#answer tbody tr").first.locator("td").first.inner_text()
        page.locator("#key").fill(key)
        page.get_by_role("button", name="Find").click()
        expect(page.locator("#answer tbody tr")).to_have_count(1, timeout=SOON)
        page.goto(f"{address}#/topics/transactions")
        expect(page.locator("#records")).to_contain_text("customer_id", timeout=SOON)
        page.goto(f"{address}#/batches")
        expect(page.locator("tbody tr").first).to_be_visible(timeout=SOON)
