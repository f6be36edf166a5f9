"""The console as people see it, in Chromium: every page, light and dark, on a laptop and on a phone."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from headrace.console.asgi_application import make_application
from headrace.console.monitored_application import Failed
from headrace.console.recorder import Recorder
from headrace.errors import LogError
from headrace.handlers import ErrorContext, dead_letter
from headrace.runtime.late_samples import LateSample
from tests.console.client import served
from tests.console.kit import Batch, FakeObserved, TaskFigures

pytest.importorskip("playwright.sync_api", reason="playwright is not installed")

from playwright.sync_api import Browser, Error, Page, expect

from tests.console.browser import PHONE, SOON, opened, opened_browser, take_picture
from tests.console.shop import EVIL, Shop

pytestmark = pytest.mark.browser

LATE_MS = 1_790_000_000_000
DETAILS = ("topics/orders", "stores/totals")


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with opened_browser() as found:
        yield found


@pytest.fixture(scope="module")
def shop(tmp_path_factory: pytest.TempPathFactory, browser: Browser) -> Iterator[Shop]:
    found = Shop(tmp_path_factory.mktemp("shop"))
    yield found
    found.close()


@pytest.fixture
def page(browser: Browser) -> Iterator[Page]:
    yield from opened(browser)


def test_overview_shows_figures_rates_and_batches(page: Page, shop: Shop) -> None:
    page.goto(shop.url)
    expect(page.locator("#state")).to_have_text("RUNNING", timeout=SOON)
    expect(page.locator("#application")).to_have_text("shop")
    rate = page.locator(".card", has_text="records in").locator(".figure").first
    expect(rate).to_have_text(re.compile(r"^[1-9][\d,.]*/s$"), timeout=SOON)
    expect(page.locator("svg polyline").first).to_be_visible()
    expect(page.locator(".bars div").first).to_be_visible(timeout=SOON)
    page.wait_for_timeout(6000)
    take_picture(page, "overview-light", with_rows=True)


def test_topology_is_a_live_graph(page: Page, shop: Shop) -> None:
    page.goto(f"{shop.url}#/topology")
    source = page.locator('[data-node="orders-source"]')
    expect(source).to_contain_text("orders")
    expect(source).to_contain_text(re.compile(r"/s"), timeout=SOON)
    expect(page.locator('[data-node="check-price"]')).to_contain_text("failed", timeout=SOON)
    assert page.locator(".graph .box").count() == 2
    expect(page.locator(".graph .edge.moving").first).to_be_attached(timeout=SOON)
    take_picture(page, "topology-light")
    page.locator(".graph .store").first.click(force=True)
    expect(page).to_have_url(re.compile("#/stores/totals"))


def test_a_key_is_looked_up_and_changes_are_followed(page: Page, shop: Shop) -> None:
    page.goto(f"{shop.url}#/stores")
    page.locator("tr.link", has_text="totals").click()
    page.locator("#key").fill("ada")
    page.get_by_role("button", name="Find").click()
    expect(page.locator("#answer tbody tr")).to_have_count(1)
    expect(page.locator("#answer")).to_contain_text('"orders"')
    expect(page.locator(".tail tbody tr").first).to_be_visible(timeout=SOON)
    take_picture(page, "store-light")
    page.locator("#key").fill("nobody")
    page.get_by_role("button", name="Find").click()
    expect(page.locator("#answer .error")).to_contain_text("has no key 'nobody'")
    page.get_by_role("button", name="First 100").click()
    expect(page.locator("#answer tbody tr").nth(5)).to_be_visible()


def test_records_are_browsed_by_offset_and_decoded(page: Page, shop: Shop) -> None:
    page.goto(f"{shop.url}#/topics")
    page.locator("tr.link", has_text=re.compile("^orders")).first.click()
    expect(page.locator("#records tbody tr").first).to_be_visible()
    page.locator("#offset").fill("0")
    page.get_by_role("button", name="Show").click()
    expect(page.locator("#records tbody tr").first.locator("td").first).to_have_text("0")
    expect(page.locator("#records")).to_contain_text('"customer"')
    take_picture(page, "records-light")
    page.locator("#value-serde").select_option("string")
    expect(page.locator("#records")).to_contain_text('{"customer":')
    page.get_by_role("button", name="newest").click()
    expect(page.locator("#records tbody tr").first).to_be_visible()


def test_dead_letters_have_a_reason_and_lead_to_the_record(page: Page, shop: Shop) -> None:
    page.goto(f"{shop.url}#/dead-letters")
    expect(page.locator("tbody tr")).to_have_count(2, timeout=SOON)
    expect(page.locator("tbody")).to_contain_text("an order cannot cost -5 cents")
    take_picture(page, "dead-letters-light")
    page.locator("tbody a").first.click()
    expect(page).to_have_url(re.compile("#/topics/orders"))
    expect(page.locator("#records tbody tr").first).to_be_visible()


def test_late_records_have_their_window_and_lead_to_the_record(page: Page, tmp_path: Path) -> None:
    observed = FakeObserved(tmp_path, errors_dead_letter_queue_topic_name="failed")
    observed._log.create_topic("failed")
    context = ErrorContext(topic="words", partition=1, offset=0, key=b"ada", value=b"{", timestamp_ms=LATE_MS)
    letter = dead_letter(context, ValueError("not a word"), topic="failed")
    observed._log.append("failed", [(0, LATE_MS, letter.key, letter.value, tuple(letter.headers))])
    observed._log.append("words", [(1, LATE_MS, b"ada", b'"x"', ())])
    recorder = Recorder(observed)
    window = (LATE_MS // 60_000 * 60_000, LATE_MS // 60_000 * 60_000 + 60_000)
    samples = [
        LateSample("by-minute", name, value, LATE_MS, window, LATE_MS + 90_000, "words", 1, 0)
        for name, value in (("ada", '{"item": "tea"}'), ("grace", EVIL))
    ]
    recorder.on_batch(Batch(tasks=(TaskFigures(nodes={"late/by-minute": 1234}, late=tuple(samples)),)))
    with served(make_application(None, observed, recorder)) as server:
        page.goto(f"{server.url}/console/#/dead-letters")
        card = page.locator(".card", has_text="Late records")
        expect(card).to_contain_text("by-minute: 1,234", timeout=SOON)
        expect(card.locator("tbody tr")).to_have_count(2)
        expect(card).to_contain_text("2026-09-21 14:13:00.000 to 2026-09-21 14:14:00.000")
        expect(card).to_contain_text(EVIL)
        assert page.title() != "broken"
        take_picture(page, "late-light")
        card.locator("a").first.click()
        expect(page).to_have_url(re.compile(r"#/topics/words\?partition=1&offset=0"))
        expect(page.locator("#records tbody tr").first).to_contain_text("ada")
    observed.close()


def test_what_is_in_records_is_text_and_never_code(page: Page, shop: Shop) -> None:
    page.goto(f"{shop.url}#/stores/totals")
    page.get_by_role("button", name="First 100").click()
    expect(page.locator("#answer")).to_contain_text(EVIL)
    assert page.locator("main img").count() == 0
    assert page.title() == "shop · Headrace"


def test_it_says_that_it_is_paused(page: Page, shop: Shop) -> None:
    shop.streams.pause()
    try:
        page.goto(shop.url)
        expect(page.locator("#stall")).to_contain_text("Paused", timeout=SOON)
        expect(page.locator("#state")).to_have_text("PAUSED")
    finally:
        shop.streams.resume()
    expect(page.locator("#stall")).to_be_hidden(timeout=SOON)


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_it_fits_on_a_phone(browser: Browser, shop: Shop, scheme: Any) -> None:
    for page in opened(browser, viewport=PHONE, color_scheme=scheme, is_mobile=True, has_touch=True):
        for name in (
            "overview",
            "topology",
            "stores",
            "topics",
            "dead-letters",
            "batches",
            "topics/orders",
            "stores/totals",
        ):
            page.goto(f"{shop.url}#/{name}")
            expect(page.locator("main > *").first).to_be_visible()
            wide = page.evaluate("document.documentElement.scrollWidth")
            assert wide <= PHONE["width"], f"{name} is {wide} wide"
        page.goto(f"{shop.url}#/overview")
        expect(page.locator(".bars div").first).to_be_visible(timeout=SOON)
        take_picture(page, f"phone-{scheme}", with_rows=True)
        page.goto(f"{shop.url}#/topics/orders")
        expect(page.locator("#records tbody tr").first).to_be_visible()
        take_picture(page, f"phone-records-{scheme}")


def test_dark_is_dark(browser: Browser, shop: Shop) -> None:
    for page in opened(browser, color_scheme="dark"):
        page.goto(shop.url)
        expect(page.locator(".bars div").first).to_be_visible(timeout=SOON)
        assert page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(13, 17, 23)"
        take_picture(page, "overview-dark", with_rows=True)
        page.goto(f"{shop.url}#/topology")
        expect(page.locator(".graph .edge.moving").first).to_be_attached(timeout=SOON)
        take_picture(page, "topology-dark")
        page.locator("#theme").click()
        assert page.evaluate("document.documentElement.dataset.theme") == "light"


@pytest.mark.parametrize(
    ("case", "text", "kind"),
    [
        ("failing", "Batches fail: division by zero", "bad"),
        ("broker", "The topic log does not answer: no broker at kafka:9092", "bad"),
        ("idle", "No new records in the input topics", "calm"),
        ("slow", "A batch has been running", ""),
    ],
)
def test_it_says_when_nothing_moves_and_why(page: Page, tmp_path: Path, case: str, text: str, kind: str) -> None:
    observed = FakeObserved(tmp_path)
    recorder = Recorder(observed)
    recorder.on_batch(Batch(records_in=5))
    match case:
        case "failing":
            observed.failures = (Failed(1 << 50, "division by zero"),)
        case "broker":
            observed.log_failure = LogError("no broker at kafka:9092")
        case "idle":
            recorder.history.last_input_ms = 0
        case "slow":
            recorder.history.last_batch_ms = recorder.history.last_input_ms = 0
            observed._log.append("words", [(0, 1, b"a", b"1", ())])
    recorder.sample()
    with served(make_application(None, observed, recorder)) as server:
        page.goto(f"{server.url}/console/")
        expect(page.locator("#stall")).to_contain_text(text, timeout=SOON)
        if kind:
            expect(page.locator("#stall")).to_have_class(re.compile(kind))
        if case == "failing":
            take_picture(page, "stalled-light")
    observed.close()


def test_with_a_token_the_browser_asks_for_a_password(browser: Browser, tmp_path: Path) -> None:
    observed = FakeObserved(tmp_path)
    with served(make_application(None, observed, Recorder(observed), token="sesame")) as server:
        for page in opened(browser):
            with pytest.raises(Error, match="ERR_INVALID_AUTH_CREDENTIALS"):
                page.goto(f"{server.url}/console/")
        for page in opened(browser, http_credentials={"username": "anybody", "password": "sesame"}):
            page.goto(f"{server.url}/console/")
            expect(page.locator("#application")).to_have_text("app", timeout=SOON)
            page.goto(f"{server.url}/console/#/topics")
            expect(page.locator("tr.link").first).to_be_visible()
    observed.close()
