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
from tests.sql.server import hanging
from tests.sql.server.kit import Client, SqlPlace

pytest.importorskip("playwright.sync_api", reason="playwright is not installed")

from playwright.sync_api import Browser, Locator, Page, Route, expect

from tests.console.browser import PHONE, SOON, opened, opened_browser, take_picture

pytestmark = pytest.mark.browser
expect.set_options(timeout=SOON)

EVIL = "<img src=x onerror=\"document.title='broken'\">"
EVIL_NAME = "<script>alert(1)</script>"
EARLIEST = {"auto.offset.reset": "earliest"}
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
        self.client: Client = self.place.server({"ksql.functions.python.modules": "tests.sql.server"})
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


def test_error_that_comes_late_leaves_the_caret_where_somebody_has_put_it(page: Page, site: Site) -> None:
    page.goto(site.url)
    held: list[Route] = []
    page.route("**/api/run", lambda route: held.append(route))
    area = page.locator("#sql")
    with page.expect_request("**/api/run"):
        type_and_run(page, "SHOW NOTHING;")
    area.select_text()
    held.pop().continue_()
    expect(page.locator(".paint .wrong")).to_have_text("NOTHING")
    page.keyboard.insert_text("SHOW STREAMS; SHOW NOWHERE;")
    expect(area).to_have_value("SHOW STREAMS; SHOW NOWHERE;")
    with page.expect_request("**/api/run"):
        area.press("Control+Enter")
    area.fill("SHOW TABLES;")
    held.pop().continue_()
    expect(page.locator("#problem")).to_contain_text("line 1:20")
    expect(page.locator(".paint .wrong")).to_have_count(0)
    page.locator("#problem").click()
    expect(page.locator(".paint .wrong")).to_have_count(0)


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
    row.get_by_role("link").focus()
    page.keyboard.press("Enter")
    source = page.locator("[data-node]", has_text="orders").first
    expect(source).to_contain_text(re.compile(r"[1-9][\d.]*/s"))
    assert page.locator(".graph .box").count() == 2
    expect(page.locator(".graph .edge.moving").first).to_be_attached()
    take_picture(page, "console-sql-query-light", with_rows=True)
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


SHOP = """
CREATE STREAM orders (id INT KEY, region STRING, cents BIGINT)
  WITH (KAFKA_TOPIC='orders', VALUE_FORMAT='JSON', PARTITIONS=1);
CREATE STREAM payments (id INT KEY, method STRING) WITH (KAFKA_TOPIC='payments', VALUE_FORMAT='JSON', PARTITIONS=1);
CREATE TABLE regions AS SELECT region, COUNT(*) AS orders FROM orders
  WINDOW TUMBLING (SIZE 1 HOUR) WHERE cents > 0 GROUP BY region;
CREATE STREAM paid AS SELECT o.id AS id, region, method,
  'a long text that no box has room for, so that it ends with three points' AS remark
  FROM orders o JOIN payments p WITHIN 1 HOUR ON o.id = p.id;
"""
BOXES = ".graph rect.node, .graph rect.store"
# Texts of the graph that reach out of the box they stand in.
TOO_WIDE = """(boxes) => [...document.querySelectorAll(boxes)].flatMap((box) =>
  [...box.parentElement.children].filter((each) => each.tagName === 'text' && (() => {
    const inside = each.getBoundingClientRect(), outside = box.getBoundingClientRect();
    return inside.left < outside.left || inside.right > outside.right || inside.bottom > outside.bottom;
  })()).map((each) => each.textContent))"""


def assert_texts_fit(page: Page) -> None:
    assert page.locator(BOXES).count() > 0
    assert page.locator(".graph rect.node ~ text").count() > 0
    assert page.evaluate(TOO_WIDE, BOXES) == []


def node(page: Page, text: str) -> Locator:
    return page.locator("[data-node]").filter(has_text=text)


def test_nodes_carry_the_sql_that_they_stand_for(page: Page, site: Site) -> None:
    site.client.ksql(f"{SHOP} INSERT INTO orders VALUES (1, 'north', 250);", streamsProperties=EARLIEST)
    site.client.settle()
    page.goto(f"{site.url}#/queries/CTAS_REGIONS_0")
    expect(node(page, "FROM orders")).to_be_visible()
    expect(node(page, "WHERE cents > 0")).to_be_visible()
    expect(node(page, "WINDOW TUMBLING (SIZE 1 HOUR) GROUP BY region")).to_contain_text("aggregate")
    expect(node(page, "CREATE TABLE REGIONS")).to_contain_text("REGIONS")
    assert_texts_fit(page)
    # What is between two parts of a query is in no topic, so there is nothing to look at.
    expect(page.locator(".graph a")).to_have_count(2)
    node(page, "FROM orders").click()
    expect(page.locator("h1")).to_contain_text("Topics / orders")
    page.goto(f"{site.url}#/queries/CSAS_PAID_1")
    expect(node(page, "JOIN payments p WITHIN 1 HOUR").first).to_be_visible()
    page.locator('[data-part="graph"]').evaluate("each => each.scrollIntoView()")
    take_picture(page, "console-sql-join-light")
    page.evaluate("scrollTo(0, 0)")
    long = node(page, "SELECT o.id AS id, region, method, 'a long")
    expect(long.locator("text").first).to_have_text(re.compile("…$"))
    expect(long.locator("title")).to_contain_text("three points' AS remark")
    assert_texts_fit(page)


def test_failed_query_is_one_line_that_leads_to_it_and_can_be_dismissed(page: Page, site: Site) -> None:
    site.client.ksql(f"{ORDERS} {TOTALS}")
    site.client.ksql(
        "CREATE STREAM PAYMENTS (ID INT KEY, METHOD STRING) "
        "WITH (KAFKA_TOPIC='payments', VALUE_FORMAT='JSON', PARTITIONS=1);"
        "CREATE STREAM PAID AS SELECT * FROM PAYMENTS;"
    )
    site.client.settle()
    page.goto(site.url)
    banner = page.locator("#stall")
    expect(page.locator("#state")).to_have_text("2 queries")
    expect(banner).to_be_hidden()
    site.place.log.delete_topic("orders")
    expect(banner).to_contain_text("CTAS_TOTALS_0 fails: ")
    expect(banner).to_contain_text("'orders' of stream ORDERS")
    expect(banner).not_to_contain_text("topology")
    box = banner.bounding_box()
    assert box is not None
    assert box["height"] < 50
    banner.get_by_role("link").click()
    expect(page).to_have_url(re.compile("#/queries/CTAS_TOTALS_0$"))
    expect(page.locator('[data-part="error"]')).to_contain_text("'orders' of stream ORDERS")
    expect(banner).to_be_visible()
    banner.get_by_role("button", name="Dismiss").click()
    expect(banner).to_be_hidden()
    # It stays away while the server goes on to say the same.
    with page.expect_response(re.compile("api/queries/CTAS_TOTALS_0")):
        pass
    expect(banner).to_be_hidden()
    site.place.log.delete_topic("payments")
    expect(banner).to_contain_text("2 queries fail; ")
    expect(banner).to_be_visible()
    expect(banner.get_by_role("link")).to_have_attribute("href", "#/queries")


def test_query_is_starting_until_its_first_commit(page: Page, site: Site) -> None:
    hanging.entered.clear()
    hanging.gate.clear()
    site.client.ksql(f"{ORDERS} CREATE FUNCTION HANG AS 'tests.sql.server.hanging:block';")
    site.write(3)
    site.client.ksql("CREATE STREAM PRICES AS SELECT ID, HANG(CENTS) AS CENTS FROM ORDERS;", streamsProperties=EARLIEST)
    try:
        page.goto(f"{site.url}#/queries")
        row = page.locator("tr.link", has_text="CSAS_PRICES_0")
        expect(row.locator(".badge")).to_have_text("STARTING")
        expect(row.locator(".badge")).to_have_class("badge warn")
        # Where it reads from is settled with the first commit.
        expect(row.locator("td").nth(7)).to_have_text("–")
        row.get_by_role("link").click()
        state = page.locator('[data-part="state"]')
        expect(state).to_have_text("STARTING")
        hanging.gate.set()
        expect(state).to_have_text("RUNNING")
        expect(state.locator(".badge")).to_have_class("badge good")
        waiting = page.locator('[data-part="figures"] .card', has_text="records waiting")
        expect(waiting.locator(".figure")).to_have_text("0")
    finally:
        hanging.gate.set()


def test_restarts_after_failures_are_counted(page: Page, site: Site) -> None:
    site.client.ksql(f"{ORDERS} {TOTALS} CREATE FUNCTION REFUSE AS 'tests.sql.server.failing:Refuse';")
    site.client.settle()
    page.goto(f"{site.url}#/queries")
    headings = page.get_by_role("columnheader")
    expect(page.locator("tr.link", has_text="CTAS_TOTALS_0")).to_contain_text("RUNNING")
    assert "restarts" not in headings.all_text_contents()
    site.client.ksql("CREATE TABLE REFUSED AS SELECT CUSTOMER, REFUSE(CENTS) AS CENTS FROM ORDERS GROUP BY CUSTOMER;")
    site.write(1)
    row = page.locator("tr.link", has_text="CTAS_REFUSED_1")
    expect(row.locator(".badge")).to_have_text("ERROR")
    expect(row.locator(".badge")).to_have_class("badge bad")
    expect(headings.last).to_have_text("error")
    assert headings.all_text_contents()[-2:] == ["restarts", "error"]
    # It is tried again, and again; the other one is not.
    expect(row.locator("td").nth(8)).to_have_text(re.compile("^([2-9]|[1-9][0-9]+)$"))
    expect(page.locator("tr.link", has_text="CTAS_TOTALS_0").locator("td").nth(8)).to_have_text("0")
    row.get_by_role("link").click()
    figures = page.locator('[data-part="figures"]')
    restarts = figures.locator(".card", has_text="restarts after failures").locator(".figure")
    expect(restarts).to_have_text(re.compile("^([2-9]|[1-9][0-9]+)$"))
    shown = int(restarts.inner_text())
    [described] = [
        each
        for each in site.client.ksql("SHOW QUERIES EXTENDED;")[0]["queryDescriptions"]
        if each["id"] == "CTAS_REFUSED_1"
    ]
    assert described["restarts"] >= shown
    assert len(described["queryErrors"]) >= 2
    page.goto(f"{site.url}#/queries/CTAS_TOTALS_0")
    expect(figures).to_contain_text("rows of state")
    expect(figures).not_to_contain_text("restarts")


def test_script_of_a_hundred_statements_folds_what_succeeded(page: Page, site: Site) -> None:
    site.client.ksql(ORDERS)
    page.goto(site.url)
    inserts = "".join(f"INSERT INTO ORDERS VALUES ({number}, 'ada', 'tea', 1);\n" for number in range(97))
    type_and_run(page, f"{inserts}SHOW STREAMS;\nINSERT INTO NOTHING VALUES (1);\nSHOW TABLES;")
    folded = page.locator("details.folded")
    expect(folded).to_have_count(1)
    expect(folded.locator("summary")).to_have_text("Statements 1 to 97 of 100 succeeded")
    expect(page.locator("#results > *")).to_have_count(3)
    expect(page.locator("#results > .result").nth(0)).to_contain_text("orders")
    last = page.locator("#results > .result").nth(1)
    expect(last.locator(".said")).to_have_text("failed")
    expect(last).to_contain_text("1 statement behind it was not carried out.")
    expect(page.locator("#problem")).to_contain_text("line 99:1")
    hidden = folded.locator(".result").nth(41)
    expect(hidden).to_be_hidden()
    folded.locator("summary").click()
    expect(hidden).to_be_visible()
    expect(hidden).to_contain_text("42/100")
    expect(hidden).to_contain_text("One row written")


def test_push_query_says_that_it_waits_and_from_where_it_reads(page: Page, site: Site) -> None:
    page.goto(site.url)
    site.client.ksql(ORDERS)
    site.write(2)
    type_and_run(page, "SELECT CUSTOMER FROM ORDERS EMIT CHANGES;")
    said, reads = page.locator(".result .said"), page.locator(".result .reads")
    expect(said).to_have_text("0 rows · waiting for rows …")
    expect(reads).to_contain_text("Reads ORDERS from now on, and waits for rows.")
    site.write(1, "bob")
    expect(reads).to_contain_text("Reads ORDERS from now on, and waits for more.")
    page.get_by_role("button", name="Read from the beginning").click()
    expect(page.locator(".result tbody tr")).to_have_count(3)
    expect(reads).to_have_text("Reads ORDERS from the beginning, and waits for more.")
    expect(page.locator("#beginning")).not_to_be_checked()
    expect(page.locator("#session")).to_be_hidden()
    page.get_by_role("button", name="Stop").click()
    expect(reads).to_have_text("Has read ORDERS from the beginning.")
    type_and_run(page, "PRINT 'orders';")
    expect(reads).to_contain_text("Reads orders from now on, and waits for records.")


@pytest.mark.parametrize(
    ("number", "rows"),
    [
        (0, [["3", "north", "700"], ["2", "south", "1200"]]),
        (1, [["north", "2", "950"], ["south", "1", "1200"]]),
        (2, [["3", "north", "cash"], ["1", "north", "card"]]),
    ],
)
def test_empty_page_offers_examples_that_run(page: Page, site: Site, number: int, rows: list[list[str]]) -> None:
    page.goto(site.url)
    examples = page.locator("#examples .card")
    expect(examples).to_have_count(3)
    take_picture(page, "console-sql-examples-light")
    examples.nth(number).get_by_role("button", name="Try it").click()
    result = page.locator("#results > .result")
    expect(result).to_have_count(1)
    expect(page.locator("#problem")).to_be_hidden()
    for row in rows:
        found = result.locator("tbody tr")
        for column, cell in enumerate(row, 1):
            found = found.filter(has=page.locator(f"td:nth-child({column})", has_text=re.compile(f"^{cell}$")))
        expect(found).to_have_count(1)
    # They are there again for whoever opens the page, until somebody has made something else.
    page.reload()
    expect(examples).to_have_count(3)
    site.client.ksql(ORDERS)
    expect(examples).to_have_count(0)


def test_examples_are_not_offered_where_something_is(page: Page, site: Site) -> None:
    site.client.ksql(ORDERS)
    page.goto(site.url)
    expect(page.locator("#sources")).to_contain_text("ORDERS")
    expect(page.locator("#examples")).to_have_count(0)


def test_rows_of_queries_are_links(page: Page, site: Site) -> None:
    site.client.ksql(f"{ORDERS} {TOTALS}")
    page.goto(f"{site.url}#/queries")
    link = page.get_by_role("link", name="CTAS_TOTALS_0")
    expect(link).to_have_attribute("href", "#/queries/CTAS_TOTALS_0")
    # The whole row is the link: a click with Ctrl on its other end opens another page, as everywhere.
    with page.context.expect_page() as opened_page:
        page.locator("tr.link").click(modifiers=["ControlOrMeta"], position={"x": 900, "y": 12})
    expect(opened_page.value.locator("h1")).to_contain_text("CTAS_TOTALS_0")
    page.locator("tr.link").click(position={"x": 900, "y": 12})
    expect(page).to_have_url(re.compile("#/queries/CTAS_TOTALS_0$"))


@pytest.mark.parametrize(
    ("address", "said"),
    [
        ("nowhere", "There is no page #/nowhere."),
        ("sql/more", "There is no page #/sql/more."),
        ("topics/a/b", "There is no page #/topics/a/b."),
        ("queries/%zz", "There is no page #/queries/%zz."),
        ("queries/NOTHING", "There is no query NOTHING"),
        ("topics/nothing", "There is no topic 'nothing'."),
    ],
)
def test_unknown_addresses_say_so(page: Page, site: Site, address: str, said: str) -> None:
    page.goto(f"{site.url}#/{address}")
    expect(page.locator("main h2")).to_have_text("Not found")
    expect(page.locator("main .error")).to_contain_text(said)
    page.locator("main").get_by_role("link").first.click()
    expect(page.get_by_text("Not found")).to_have_count(0)


def test_page_that_was_left_draws_nothing_over_the_next_one(page: Page, site: Site) -> None:
    page.goto(f"{site.url}#/sql")
    expect(page.locator("#beginning")).to_be_visible()
    held: list[Route] = []
    page.route("**/api/topics", lambda route: held.append(route))
    with page.expect_request("**/api/topics"):
        page.goto(f"{site.url}#/topics")
    page.goto(f"{site.url}#/sql")
    expect(page.locator("#beginning")).to_be_visible()
    with page.expect_response("**/api/topics"):
        held[0].continue_()
    page.evaluate("new Promise((drawn) => setTimeout(drawn, 200))")
    expect(page.locator("#beginning")).to_be_visible()


def test_what_others_have_named_and_written_is_text_and_never_code(page: Page, site: Site) -> None:
    page.goto(site.url)
    site.client.ksql(
        f"CREATE STREAM READ (A STRING, `{EVIL_NAME}` STRING) "
        "WITH (KAFKA_TOPIC='evil', VALUE_FORMAT='JSON', PARTITIONS=1);"
        f"CREATE STREAM WRITTEN WITH (KAFKA_TOPIC='out') AS SELECT A, `{EVIL_NAME}`, A AS `{EVIL}` FROM READ;"
    )
    site.place.log.append("evil", [(0, 1, None, json.dumps({"A": EVIL, EVIL_NAME: EVIL_NAME}).encode(), ())])
    site.client.settle()
    page.locator("#beginning").check()
    type_and_run(
        page, f"SELECT `{EVIL_NAME}`, `{EVIL}` FROM WRITTEN EMIT CHANGES LIMIT 1; PRINT 'evil' FROM BEGINNING LIMIT 1;"
    )
    expect(page.locator(".result tbody td")).to_have_text([EVIL_NAME, EVIL])
    expect(page.locator(".result").nth(1)).to_contain_text("onerror")
    expect(page.locator("#history option").nth(1)).to_contain_text(EVIL_NAME)
    page.locator("#sources .name", has_text="WRITTEN").click()
    expect(page.locator(".described")).to_contain_text(EVIL)
    type_and_run(page, f"SELECT * FROM ORDERS WHERE `{EVIL}` = '{EVIL_NAME}' EMIT CHANGES;")
    expect(page.locator("#problem")).to_be_visible()
    type_and_run(page, "SHOW STREAMS; SHOW QUERIES; DESCRIBE READ; EXPLAIN CSAS_WRITTEN_0;")
    expect(page.locator(".result")).to_have_count(4)
    page.locator(".result").nth(1).get_by_role("link").click()
    expect(page.locator("h1")).to_contain_text("CSAS_WRITTEN_0")
    expect(page.locator(".graph")).to_contain_text(EVIL_NAME)
    page.get_by_role("button", name="Pause").click()
    page.get_by_role("dialog").get_by_role("button", name="Pause").click()
    expect(page.locator('[data-part="state"]')).to_have_text("PAUSED")
    assert page.locator("main img, main script").count() == 0
    assert page.title() == "SQL at default_ · Headrace"


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_pull_and_push_query_stand_below_each_other(browser: Browser, site: Site, scheme: Any) -> None:
    site.client.ksql(f"{ORDERS} {TOTALS}", streamsProperties=EARLIEST)
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
        # The headings stand above their columns, whichever row is looked at; what is too wide is scrolled inside.
        headings = page.locator(".result thead")
        expect(page.get_by_role("columnheader")).to_have_text(["CUSTOMER", "ITEM", "CENTS", "ROWTIME"])
        page.locator(".result .tall").evaluate("each => each.scrollTo(0, each.scrollHeight)")
        for number, title in enumerate(("CUSTOMER", "ITEM", "CENTS", "ROWTIME")):
            heading = headings.get_by_text(title, exact=True).bounding_box()
            cell = page.locator(".result tbody tr").last.locator("td").nth(number).bounding_box()
            assert heading is not None
            assert cell is not None
            assert heading["x"] == pytest.approx(cell["x"])
            assert heading["y"] + heading["height"] <= cell["y"] + 1
        page.locator(".result .tall").evaluate("each => each.scrollTo(0, 0)")
        take_picture(page, "phone-sql-light")


def test_stacked_tables_of_a_phone_keep_their_headings(browser: Browser, site: Site) -> None:
    site.client.ksql(f"{ORDERS} {TOTALS}")
    for page in opened(browser, viewport=PHONE, is_mobile=True, has_touch=True):
        page.goto(f"{site.url}#/queries")
        titles = ["query", "state", "reads", "writes", "in", "out", "records in", "waiting"]
        # For those who listen, and beside each cell for those who look.
        expect(page.get_by_role("columnheader")).to_have_text(titles)
        cells = page.get_by_role("cell")
        expect(cells).to_have_count(len(titles))
        # All in one look: the table is drawn anew while it is looked at.
        before = "all => all.map((each) => getComputedStyle(each, '::before').content)"
        assert cells.evaluate_all(before) == [f'"{title}"' for title in titles]
        page.locator("tr.link").first.tap()
        expect(page.locator("h1")).to_contain_text("CTAS_TOTALS_0")


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
