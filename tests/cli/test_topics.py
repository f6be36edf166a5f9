from __future__ import annotations

from pathlib import Path

from headrace.topics.embedded import EmbeddedLog
from tests.cli.conftest import Command


def test_no_topics_is_no_error_and_makes_no_log(headrace: Command, state_dir: Path) -> None:
    assert "no topics in" in headrace("topics", "list").err
    assert headrace("topics", "list", "--json").json == []
    assert not state_dir.exists()


def test_create_list_describe_delete(headrace: Command, log: EmbeddedLog) -> None:
    headrace("topics", "create", "orders", "users", "--partitions", 2, "--config", "cleanup.policy=compact")
    log.append("users", [(0, 1, b"a", b"1", ()), (0, 2, b"b", b"2", ()), (1, 3, b"c", b"3", ())])
    listed = headrace("topics", "list")
    assert [line.split()[:3] for line in listed.lines] == [
        ["topic", "partitions", "records"],
        ["orders", "2", "0"],
        ["users", "2", "3"],
    ]
    described = headrace("topics", "describe", "users", "--json").json
    assert described["configs"] == {"cleanup.policy": "compact"}
    assert [(each["begin"], each["end"], each["bytes"] > 0) for each in described["offsets"]] == [
        (0, 2, True),
        (0, 1, True),
    ]
    assert "2 partitions, cleanup.policy=compact" in headrace("topics", "describe", "users").out
    headrace("topics", "delete", "orders", "users", "--yes")
    assert log.topics() == []


def test_create_twice(headrace: Command) -> None:
    headrace("topics", "create", "orders")
    assert "is there already" in headrace("topics", "create", "orders", code=1).err
    headrace("topics", "create", "orders", "--if-not-exists")


def test_unknown_setting_is_named(headrace: Command) -> None:
    done = headrace("topics", "create", "orders", "--config", "retention=5", code=1)
    assert "did you mean 'retention.ms'?" in done.err
    assert "write KEY=VALUE" in headrace("topics", "create", "orders", "--config", "retention", code=2).err


def test_delete_asks(headrace: Command, log: EmbeddedLog) -> None:
    log.create_topic("orders")
    headrace("topics", "delete", "orders", stdin="n\n", code=130)
    assert log.topics() == ["orders"]
    headrace("topics", "delete", "orders", stdin="y\n")
    assert log.topics() == []


def test_missing_topic_says_how_to_create_it_or_where_to_look(headrace: Command, log: EmbeddedLog) -> None:
    log.create_topic("orders")
    for command, remedy in (
        (["consume", "ordres"], "create it with 'headrace topics create ordres"),
        (["topics", "describe", "ordres"], "see 'headrace topics list'"),
        (["topics", "delete", "--yes", "ordres"], "see 'headrace topics list'"),
    ):
        done = headrace(*command, code=1)
        assert "did you mean 'orders'?" in done.err
        assert remedy in done.err
