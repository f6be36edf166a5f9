from collections.abc import Iterator

import pytest

from examples.page_views_by_region import (
    LONG,
    PAGE_VIEWS,
    PROFILE,
    REGION_IN_WINDOW,
    STRING,
    USER_PROFILES,
    VIEW,
    VIEW_STORE,
    VIEWS_BY_REGION,
    PageView,
    UserProfile,
    build,
)
from headrace import StreamsBuilder, TopologyTestDriver

MINUTE_MS = 60_000


@pytest.fixture
def driver() -> Iterator[TopologyTestDriver]:
    builder = StreamsBuilder()
    build(builder)
    with TopologyTestDriver(builder.build()) as driver:
        yield driver


def live(driver: TopologyTestDriver, user: str, region: str | None) -> None:
    profile = None if region is None else UserProfile(region, "expert")
    driver.create_input_topic(USER_PROFILES, STRING, PROFILE).pipe_input(user, profile, timestamp_ms=0)


def view(driver: TopologyTestDriver, user: str | None, *, at_minute: float) -> None:
    topic = driver.create_input_topic(PAGE_VIEWS, STRING, VIEW)
    topic.pipe_input(user, PageView("index.html"), timestamp_ms=int(at_minute * MINUTE_MS))


def counts(driver: TopologyTestDriver) -> list[tuple[str, int, int]]:
    """Reads what was counted: region, start of the window in minutes, and count."""
    records = driver.create_output_topic(VIEWS_BY_REGION, REGION_IN_WINDOW, LONG).read_key_values()
    assert all(region.window.end_ms - region.window.start_ms == 5 * MINUTE_MS for region, _ in records)
    return [(region.key, region.window.start_ms // MINUTE_MS, count) for region, count in records]


def test_view_counts_in_every_window_it_falls_into(driver: TopologyTestDriver) -> None:
    live(driver, "ada", "europe")
    view(driver, "ada", at_minute=10.5)
    assert counts(driver) == [("europe", start, 1) for start in (6, 7, 8, 9, 10)]


def test_no_window_starts_before_the_epoch(driver: TopologyTestDriver) -> None:
    live(driver, "ada", "europe")
    view(driver, "ada", at_minute=1)
    assert counts(driver) == [("europe", 0, 1), ("europe", 1, 1)]


def test_views_of_a_region_add_up(driver: TopologyTestDriver) -> None:
    live(driver, "ada", "europe")
    live(driver, "bob", "europe")
    live(driver, "eve", "asia")
    view(driver, "ada", at_minute=0)
    view(driver, "eve", at_minute=0.2)
    view(driver, "bob", at_minute=0.5)
    assert counts(driver) == [("europe", 0, 1), ("asia", 0, 1), ("europe", 0, 2)]


def test_user_without_a_profile_counts_as_unknown(driver: TopologyTestDriver) -> None:
    view(driver, "eve", at_minute=0)
    assert counts(driver) == [("unknown", 0, 1)]


def test_moving_changes_later_views_only(driver: TopologyTestDriver) -> None:
    live(driver, "ada", "europe")
    view(driver, "ada", at_minute=0)
    live(driver, "ada", "asia")
    assert counts(driver) == [("europe", 0, 1)]
    view(driver, "ada", at_minute=0.5)
    assert counts(driver) == [("asia", 0, 1)]


def test_deleted_profile_makes_the_region_unknown(driver: TopologyTestDriver) -> None:
    live(driver, "ada", "europe")
    live(driver, "ada", None)
    view(driver, "ada", at_minute=0)
    assert counts(driver) == [("unknown", 0, 1)]


def test_view_without_a_user_still_counts(driver: TopologyTestDriver) -> None:
    view(driver, None, at_minute=0)
    assert counts(driver) == [("unknown", 0, 1)]


def test_late_view_counts_in_the_windows_that_are_still_open(driver: TopologyTestDriver) -> None:
    live(driver, "ada", "europe")
    view(driver, "ada", at_minute=10)
    counts(driver)
    # Stream time is 10 and grace 1: windows that end at 9 or before are closed, so those from 3 and 4 are.
    view(driver, "ada", at_minute=7)
    assert counts(driver) == [("europe", 5, 1), ("europe", 6, 2), ("europe", 7, 2)]
    assert driver.metrics()["dropped-records-total"] == 2


def test_view_that_is_too_late_counts_nowhere(driver: TopologyTestDriver) -> None:
    view(driver, "ada", at_minute=20)
    counts(driver)
    view(driver, "ada", at_minute=2)
    assert counts(driver) == []


def test_store_can_be_asked_for_a_window(driver: TopologyTestDriver) -> None:
    view(driver, "ada", at_minute=0)
    view(driver, "ada", at_minute=1)
    store = driver.get_window_store(VIEW_STORE)
    assert store.fetch("unknown", 0) == 2
    assert store.fetch("unknown", 1 * MINUTE_MS) == 1
    assert store.fetch("unknown", 2 * MINUTE_MS) is None
