"""The SQL page as people see it, in Chromium: typing, results that go on, errors at their place, graphs of queries."""

from __future__ import annotations

import json
import random
import re
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from headrace.app.engine import local_engine
from headrace.sql.server.sql_server import SqlServer
from headrace.topics.log import Output
from tests.sql.server.kit import Client, SqlPlace

pytest.importorskip("playwright.sync_api", reason="playwright is not installed")

from playwright.sync_api import Browser, Page, expect

from tests.web.browser import PHONE, SOON, opened, opened_browser, take_picture

pytestmark = pytest.mark.browser
expect.set_options(timeout=SOON)

EVIL = "<img src=x onerror=\"document.title='broken'\">"
EVIL_NAME = "<script>alert(1)</script>"
CUSTOMERS = ("ada", "bob", "cleo", "dan", "eve")
ORDERS = (
    "CREATE STREAM ORDERS (ID INT KEY, CUSTOMER STRING, ITEM STRING, CENTS BIGINT)\n"
    "  WITH (KAFKA_TOPIC='orders', VALUE_FORMAT='JSON', PARTITIONS=2);"
)
TOTALS = (
    "CREATE TABLE TOTALS AS\n"
    "  SELECT CUSTOMER, COUNT(*) AS ORDERS, SUM(CENTS) AS CENTS\n"
    "  FROM ORDERS GROUP BY CUSTOMER;"
)


class Site:
    """A server whose queries run in this process, and its page."""

    def __init__(self, directory: Path) -> None:
        self.place = SqlPlace(directory)
        self.client: Client = self.place.server()
        self.url = f"{self.client.server.url}/console/"
        self._stopping = threading.Event()
        self._orders: threading.Thread | None = None

    def write(self, count: int, customer: str = "ada") -> None:
        rows: list[Output] = [
            (number % 2, 1_700_000_000_000 + number, None, _order(customer, number), ()) for number in range(count)
        ]
        self.place.log.append("orders", rows)

    def keep_writing(self) -> None:
        """Lets orders come in until it is closed."""
        self._orders = threading.Thread(target=self._write_on)
        self._orders.start()

    def _write_on(self) -> None:
        found = random.Random(7)
        while not self._stopping.wait(0.1):
            self.write(found.randint(1, 9), found.choice(CUSTOMERS))

    def push_queries(self) -> tuple[str, ...]:
        found: tuple[str, ...] = self.client.server.application.state.endpoint.push_queries()
        return found

    def close(self) -> None:
        self._stopping.set()
        if self._orders is not None:
            self._orders.join()
        self.place.close()


def _order(customer: str, number: int) -> bytes:
    item = ("tea", "coffee", "bread", "jam")[number % 4]
    return json.dumps({"CUSTOMER": customer, "ITEM": item, "CENTS": 100 + number * 137 % 900}).encode()


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with opened_browser() as found:
        yield found


@pytest.fixture
def site(tmp_path: Path) -> Iterator[Site]:
    found = Site(tmp_path)
    yield found
    found.close()


@pytest.fixture
def page(browser: Browser) -> Iterator[Page]:
    yield from opened(browser)


def type_and_run(page: Page, sql: str) -> None:
    page.locator("#sql").fill(sql)
    page.locator("#sql").press("Control+Enter")


def test_stream_is_made_filled_and_asked(page: Page, site: Site) -> None:
    page.goto(site.url)
    page.locator("#beginning").check()
    type_and_run(page, f"{ORDERS}\n{TOTALS}\nINSERT INTO ORDERS VALUES (1, 'ada', 'tea', 250);")
    results = page.locator(".result")
    expect(results).to_have_count(3)
    expect(results.nth(0)).to_contain_text("Stream created")
    expect(results.nth(1).get_by_role("link", name="CTAS_TOTALS_0")).to_be_visible()
    expect(results.nth(2)).to_contain_text("One row written")
    expect(page.locator("#sources")).to_contain_text("TOTALS")
    site.client.settle()
    type_and_run(page, "SELECT * FROM TOTALS WHERE CUSTOMER = 'ada'; SHOW STREAMS;")
    expect(results).to_have_count(2)
    expect(results.nth(0).locator("th")).to_have_text(["CUSTOMER", "ORDERS", "CENTS"])
    expect(results.nth(0).locator("tbody td")).to_have_text(["ada", "1", "250"])
    expect(results.nth(0).locator(".said")).to_have_text("1 row · done")
    expect(results.nth(1)).to_contain_text("orders")
    expect(page.locator("#stop")).to_be_hidden()


def test_push_query_goes_on_until_it_is_stopped(page: Page, site: Site) -> None:
    page.goto(site.url)
    site.client.ksql(ORDERS)
    site.write(2)
    page.locator("#beginning").check()
    type_and_run(page, "SELECT CUSTOMER, CENTS FROM ORDERS EMIT CHANGES;")
    rows = page.locator(".result tbody tr")
    expect(rows).to_have_count(2)
    site.write(1, "bob")
    expect(rows.first).to_contain_text("bob")
    expect(page.locator(".result .said")).to_have_text("3 rows · the newest first · waiting for more …")
    # Another page is looked at, and it goes on.
    page.get_by_role("link", name="Queries").click()
    site.write(1, "cleo")
    page.get_by_role("link", name="SQL", exact=True).click()
    expect(rows.first).to_contain_text("cleo")
    page.get_by_role("button", name="Stop").click()
    expect(page.locator(".result .said")).to_have_text("4 rows · the newest first · stopped")
    expect(page.locator("#stop")).to_be_hidden()
    site.write(700)
    expect(rows).to_have_count(4)
    type_and_run(page, "SELECT CUSTOMER, CENTS FROM ORDERS EMIT CHANGES LIMIT 704;")
    expect(page.locator(".result .said")).to_have_text(
        "704 rows · the last 500 are shown, the newest first · Limit Reached"
    )
    expect(rows).to_have_count(500)
    assert site.push_queries() == ()


def test_error_is_shown_at_its_place(page: Page, site: Site) -> None:
    page.goto(site.url)
    type_and_run(page, "SHOW STREAMS;\n  SELCT 'é🍵';")
    expect(page.locator("#problem")).to_contain_text("line 2:3: Syntax Error")
    expect(page.locator("#problem")).to_contain_text("Did you mean 'SELECT'?")
    expect(page.locator(".paint .wrong")).to_have_text("SELCT")
    expect(page.locator(".numbers .wrong")).to_have_text("2")
    assert page.evaluate("document.activeElement.id") == "sql"
    assert page.evaluate("document.getElementById('sql').selectionStart") == 16
    page.keyboard.type("x")
    expect(page.locator(".paint .wrong")).to_have_count(0)
    site.client.ksql(ORDERS)
    type_and_run(page, "SHOW STREAMS;\nSELECT '🍵🍵', NOPE\nFROM ORDERS EMIT CHANGES;")
    expect(page.locator("#problem")).to_contain_text("line 2:14: SELECT column 'NOPE' cannot be resolved")
    expect(page.locator(".paint .wrong")).to_have_text("NOPE")
    expect(page.locator(".result").nth(1).locator(".said")).to_have_text("failed")
    type_and_run(page, "SHOW STREAMS")
    expect(page.locator("#problem")).to_be_hidden()


def test_only_what_is_selected_is_run(page: Page, site: Site) -> None:
    page.goto(site.url)
    page.locator("#sql").fill("NONSENSE;\nSHOW TABLES; SHOW NOTHING;")
    page.evaluate("document.getElementById('sql').setSelectionRange(10, 22)")
    page.get_by_role("button", name="Run").click()
    expect(page.locator(".result .asked")).to_have_text("SHOW TABLES")
    page.evaluate("document.getElementById('sql').setSelectionRange(23, 36)")
    page.get_by_role("button", name="Run").click()
    expect(page.locator("#problem")).to_contain_text("line 2:19")
    expect(page.locator(".paint .wrong")).to_have_text("NOTHING")


def test_what_ran_before_is_found_again(page: Page, site: Site) -> None:
    page.goto(site.url)
    type_and_run(page, "SHOW STREAMS;")
    type_and_run(page, "SHOW TABLES;")
    page.locator("#sql").fill("a draft")
    page.reload()
    area = page.locator("#sql")
    area.fill("another draft")
    area.press("Alt+ArrowUp")
    expect(area).to_have_value("SHOW TABLES;")
    area.press("Alt+ArrowUp")
    expect(area).to_have_value("SHOW STREAMS;")
    area.press("Alt+ArrowDown")
    area.press("Alt+ArrowDown")
    expect(area).to_have_value("another draft")
    page.locator("#history").select_option("SHOW STREAMS;")
    expect(area).to_have_value("SHOW STREAMS;")


def test_secrets_are_not_remembered(page: Page, site: Site) -> None:
    page.goto(site.url)
    for text in ("DROP CONNECTOR c;", "SET 'ksql.streams.sasl.password'='sesame';", "SHOW CONNECTORS;"):
        type_and_run(page, text)
    expect(page.locator("#history option")).to_have_text(["History", "SHOW CONNECTORS;"])


def test_statements_run_where_nothing_can_be_remembered(page: Page, site: Site) -> None:
    page.goto(site.url)
    page.evaluate("() => { Storage.prototype.setItem = () => { throw new DOMException('full'); }; }")
    type_and_run(page, "SHOW STREAMS;")
    expect(page.locator(".result .said")).to_have_text("done")


def test_what_was_set_lasts_as_long_as_the_page(page: Page, site: Site) -> None:
    page.goto(site.url)
    site.client.ksql(ORDERS)
    site.write(1)
    type_and_run(page, "SET 'auto.offset.reset' = 'earliest'; DEFINE s = 'ORDERS';")
    expect(page.locator("#session")).to_contain_text("auto.offset.reset = earliest, S = ORDERS")
    type_and_run(page, "SELECT CUSTOMER FROM ${s} EMIT CHANGES LIMIT 1;")
    expect(page.locator(".result tbody td")).to_have_text(["ada"])
    page.get_by_role("button", name="Forget").click()
    type_and_run(page, "SELECT CUSTOMER FROM ${s} EMIT CHANGES LIMIT 1;")
    expect(page.locator("#problem")).to_contain_text("'s' is not a defined variable")


def test_streams_and_tables_are_described_and_topics_browsed(page: Page, site: Site) -> None:
    page.goto(site.url)
    site.client.ksql(f"{ORDERS} {TOTALS}")
    site.write(1)
    page.get_by_role("button", name="TOTALS").click()
    described = page.locator(".described")
    expect(described).to_contain_text("PRIMARY KEY")
    expect(described.get_by_role("link", name="CTAS_TOTALS_0")).to_be_visible()
    page.locator("#sources").get_by_role("link", name="orders").click()
    expect(page).to_have_url(re.compile("#/topics/orders"))
    expect(page.locator("h1")).to_contain_text("stream ORDERS")
    expect(page.locator("#records")).to_contain_text("tea")


def test_query_has_a_live_graph_and_is_paused_and_ended(page: Page, site: Site) -> None:
    page.goto(f"{site.url}#/queries")
    expect(page.locator("main")).to_contain_text("No query runs")
    site.client.ksql(f"{ORDERS} {TOTALS}")
    site.keep_writing()
    row = page.locator("tr.link", has_text="CTAS_TOTALS_0")
    expect(row).to_contain_text("RUNNING")
    expect(row).to_contain_text(re.compile(r"[1-9][\d.]*/s"))
    row.focus()
    page.keyboard.press("Enter")
    source = page.locator("[data-node]", has_text="orders").first
    expect(source).to_contain_text(re.compile(r"[1-9][\d.]*/s"))
    assert page.locator(".graph .box").count() == 2
    expect(page.locator(".graph .edge.moving").first).to_be_attached()
    take_picture(page, "console-sql-query-light")
    state = page.locator('[data-part="state"]')
    page.get_by_role("button", name="Pause").click()
    expect(page.get_by_role("dialog")).to_contain_text("PAUSE CTAS_TOTALS_0?")
    page.keyboard.press("Escape")
    expect(page.get_by_role("dialog")).to_have_count(0)
    expect(state).to_have_text("RUNNING")
    page.get_by_role("button", name="Pause").click()
    page.get_by_role("dialog").get_by_role("button", name="Pause").click()
    expect(state).to_have_text("PAUSED")
    page.get_by_role("button", name="Resume").click()
    page.get_by_role("dialog").get_by_role("button", name="Resume").click()
    expect(state).to_have_text("RUNNING")
    page.get_by_role("button", name="Terminate").click()
    expect(page.get_by_role("dialog")).to_contain_text("ends for good")
    page.get_by_role("dialog").get_by_role("button", name="Cancel").click()
    expect(state).to_have_text("RUNNING")
    page.get_by_role("button", name="Terminate").click()
    page.get_by_role("dialog").get_by_role("button", name="Terminate").click()
    expect(page).to_have_url(re.compile("#/queries$"))
    expect(page.locator("main")).to_contain_text("No query runs")
    assert site.client.ksql("SHOW QUERIES;")[0]["queries"] == []


def test_what_others_have_named_and_written_is_text_and_never_code(page: Page, site: Site) -> None:
    page.goto(site.url)
    site.client.ksql(
        f"CREATE STREAM `{EVIL}` (A STRING, `{EVIL_NAME}` STRING) "
        "WITH (KAFKA_TOPIC='evil', VALUE_FORMAT='JSON', PARTITIONS=1);"
        f"CREATE STREAM `{EVIL_NAME}` WITH (KAFKA_TOPIC='out') AS SELECT * FROM `{EVIL}`;"
    )
    site.place.log.append("evil", [(0, 1, None, json.dumps({"A": EVIL, EVIL_NAME: EVIL_NAME}).encode(), ())])
    site.client.settle()
    page.locator("#beginning").check()
    type_and_run(page, f"SELECT * FROM `{EVIL_NAME}` EMIT CHANGES LIMIT 1; PRINT 'evil' FROM BEGINNING LIMIT 1;")
    expect(page.locator(".result tbody td")).to_have_text([EVIL, EVIL_NAME])
    expect(page.locator(".result").nth(1)).to_contain_text("onerror")
    expect(page.locator("#history option").nth(1)).to_contain_text(EVIL_NAME)
    page.locator("#sources .name", has_text="<img").click()
    expect(page.locator(".described")).to_contain_text(EVIL)
    type_and_run(page, f"SELECT * FROM ORDERS WHERE `{EVIL}` = '{EVIL_NAME}' EMIT CHANGES;")
    expect(page.locator("#problem")).to_be_visible()
    type_and_run(page, f"SHOW STREAMS; SHOW QUERIES; DESCRIBE `{EVIL}`; EXPLAIN `CSAS_{EVIL_NAME}_0`;")
    expect(page.locator(".result")).to_have_count(4)
    page.locator(".result").nth(1).get_by_role("link").click()
    expect(page.locator("h1")).to_contain_text(f"CSAS_{EVIL_NAME}_0")
    expect(page.locator(".graph")).to_contain_text("evil")
    page.get_by_role("button", name="Pause").click()
    expect(page.get_by_role("dialog")).to_contain_text(EVIL_NAME)
    page.get_by_role("dialog").get_by_role("button", name="Pause").click()
    expect(page.locator('[data-part="state"]')).to_have_text("PAUSED")
    assert page.locator("main img, main script").count() == 0
    assert page.title() == "SQL at default_ · Headrace"


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_pull_and_push_query_stand_below_each_other(browser: Browser, site: Site, scheme: Any) -> None:
    site.client.ksql(f"{ORDERS} {TOTALS}", streamsProperties={"auto.offset.reset": "earliest"})
    for customer in CUSTOMERS:
        site.write(4, customer)
    site.client.settle()
    site.keep_writing()
    for page in opened(browser, color_scheme=scheme):
        page.goto(site.url)
        type_and_run(
            page,
            "-- What every customer has spent, now and from now on.\n"
            "SELECT * FROM TOTALS;\n\n"
            "SELECT CUSTOMER, ITEM, CENTS, CENTS > 500 AS MUCH\n"
            "  FROM ORDERS WHERE ITEM <> 'jam' EMIT CHANGES;",
        )
        expect(page.locator(".result").nth(0).locator("tbody tr")).to_have_count(5)
        expect(page.locator(".result").nth(0).locator(".said")).to_have_text("5 rows · done")
        expect(page.locator(".result").nth(1).locator("tbody tr").nth(4)).to_be_visible()
        wanted = {"light": "rgb(246, 248, 250)", "dark": "rgb(13, 17, 23)"}[scheme]
        assert page.evaluate("getComputedStyle(document.body).backgroundColor") == wanted
        take_picture(page, f"console-sql-{scheme}")


def test_it_fits_on_a_phone(browser: Browser, site: Site) -> None:
    site.client.ksql(f"{ORDERS} {TOTALS}")
    site.write(20)
    for page in opened(browser, viewport=PHONE, is_mobile=True, has_touch=True):
        for name in ("sql", "queries", "queries/CTAS_TOTALS_0", "topics", "topics/orders"):
            page.goto(f"{site.url}#/{name}")
            expect(page.locator("main > *").first).to_be_visible()
            wide = page.evaluate("document.documentElement.scrollWidth")
            assert wide <= PHONE["width"], f"{name} is {wide} wide"
        page.goto(f"{site.url}#/sql")
        page.locator("#beginning").check()
        page.locator("#sql").fill("SELECT CUSTOMER, ITEM, CENTS, ROWTIME FROM ORDERS EMIT CHANGES LIMIT 20;")
        page.get_by_role("button", name="Run").tap()
        expect(page.locator(".result .said")).to_contain_text("Limit Reached")
        assert page.evaluate("document.documentElement.scrollWidth") <= PHONE["width"]
        take_picture(page, "phone-sql-light")


def test_with_a_token_the_browser_asks_for_a_password(browser: Browser, tmp_path: Path) -> None:
    place = SqlPlace(tmp_path)
    settings = {"state.dir": str(tmp_path), "log.sync": "none"}
    server = SqlServer(settings, listen="localhost:0", log=place.log, engine=local_engine, token="sesame").start()
    try:
        for page in opened(browser, http_credentials={"username": "anybody", "password": "sesame"}):
            page.goto(f"{server.url}/console/")
            type_and_run(page, "SHOW STREAMS;")
            expect(page.locator(".result")).to_contain_text("There are no streams.")
    finally:
        server.stop()
        place.close()
