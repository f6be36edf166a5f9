from __future__ import annotations

from pathlib import Path

import pytest

from headrace.app.lock import lock_directory
from headrace.topics.embedded import EmbeddedLog
from headrace.views.membership import Member, MembershipTable
from headrace.views.metadata import HostInfo
from tests.cli.conftest import Command

VIEW = Member("view-1", HostInfo("localhost", 8080), 0, {})
TARGETS = [("orders", 0), ("orders", 1)]


@pytest.fixture(autouse=True)
def application(log: EmbeddedLog, state_dir: Path) -> Path:
    """An application that has read some of its input."""
    log.create_topic("orders", partitions=2)
    log.append("orders", [(partition, 1000 * n, b"k", b"%d" % n, ()) for partition in (0, 1) for n in range(10)])
    for topic in ("shop-totals-changelog", "shop-by-user-repartition", "shop-eu-x-changelog", "shop-results"):
        log.create_topic(topic)
    log.open_journal("shop", []).commit(0, [], {("orders", 0): 6, ("orders", 1): 8})
    directory = state_dir / "shop"
    lock_directory(directory, "shop").release()
    lock_directory(state_dir / "shop-eu", "shop-eu").release()
    (directory / "0_0").mkdir()
    return directory


def test_reset_forgets_everything_but_the_topics(headrace: Command, log: EmbeddedLog, application: Path) -> None:
    done = headrace("reset", "shop", "--yes")
    assert "shop-by-user-repartition, shop-totals-changelog" in done.out
    assert "was reset" in done.err
    assert log.topics() == ["orders", "shop-eu-x-changelog", "shop-results"]
    assert log.positions("shop") == {}
    assert log.last_batch("shop") is None
    assert not (application / "0_0").exists()


def test_what_views_have_left_goes_too(headrace: Command, log: EmbeddedLog, application: Path) -> None:
    MembershipTable("shop", log).announce(VIEW)
    # Another application's, and a topic of the user's that only sounds like it.
    MembershipTable("shop-eu", log).announce(VIEW)
    log.create_topic("shop-page-views", configs={"cleanup.policy": "compact"})
    (application / "views" / "one").mkdir(parents=True)
    assert "shop-totals-changelog, shop-views\n" in headrace("reset", "shop", "--dry-run").out
    headrace("reset", "shop", "--yes")
    assert log.topics() == ["orders", "shop-eu-views", "shop-eu-x-changelog", "shop-page-views", "shop-results"]
    assert not (application / "views").exists()


@pytest.mark.parametrize("policy", ["delete", "compact"])
def test_a_topic_of_the_users_is_not_taken_for_that_of_views(headrace: Command, log: EmbeddedLog, policy: str) -> None:
    log.create_topic("shop-views", configs={"cleanup.policy": policy})
    headrace("reset", "shop", "--yes")
    assert "shop-views" in log.topics()
    log.append("shop-views", [(0, 0, b"ada", b'{"page": "index"}', ())])
    headrace("reset", "shop", "--yes")
    assert "shop-views" in log.topics()


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        (("--to-earliest",), [0, 0]),
        (("--to-latest",), [10, 10]),
        (("--to-offset", 3), [3, 3]),
        (("--to-offset", 99), [10, 10]),
        (("--shift-by", -2), [4, 6]),
        (("--shift-by", 3), [9, 10]),
        (("--to-datetime", "1970-01-01T00:00:04.500Z"), [5, 5]),
        (("--to-datetime", "2200-01-01"), [10, 10]),
    ],
)
def test_positions(headrace: Command, log: EmbeddedLog, options: tuple[object, ...], expected: list[int]) -> None:
    headrace("reset", "shop", "--yes", *options)
    assert [log.positions("shop")[target] for target in TARGETS] == expected
    # The first batch of the next run is a new one.
    log.open_journal("shop", []).commit(0, [], {("orders", 0): 10})
    assert log.positions("shop")[("orders", 0)] == 10


def test_dry_run_changes_nothing(headrace: Command, log: EmbeddedLog, application: Path) -> None:
    done = headrace("reset", "shop", "--dry-run", "--shift-by", -1)
    assert [line.split() for line in done.lines[-2:]] == [["orders", "0", "6", "5"], ["orders", "1", "8", "7"]]
    assert log.positions("shop") == {("orders", 0): 6, ("orders", 1): 8}
    assert (application / "0_0").exists()


def test_it_asks(headrace: Command, log: EmbeddedLog) -> None:
    headrace("reset", "shop", stdin="n\n", code=130)
    assert log.last_batch("shop") is not None
    headrace("reset", "shop", stdin="y\n")
    assert log.last_batch("shop") is None


def test_it_is_refused_while_the_application_runs(headrace: Command, log: EmbeddedLog, application: Path) -> None:
    lock = lock_directory(application, "shop")
    try:
        assert "is in use by" in headrace("reset", "shop", "--yes", code=1).err
    finally:
        lock.release()
    assert log.last_batch("shop") is not None


def test_wrong_usage(headrace: Command, log: EmbeddedLog) -> None:
    assert "exclude each other" in headrace("reset", "shop", "--to-latest", "--to-offset", 1, code=2).err
    assert "needs one of" in headrace("reset", "shop", "--input-topic", "orders", code=2).err
    assert "no topic 'ordres'" in headrace("reset", "shop", "--to-latest", "--input-topic", "ordres", code=1).err
    assert "did you mean 'shop'?" in headrace("reset", "shpo", code=1).err
