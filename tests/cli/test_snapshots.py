"""``headrace snapshot``, ``restore`` and ``snapshots``."""

from __future__ import annotations

from pathlib import Path

from headrace import Streams, StreamsBuilder, StreamsConfig
from headrace.app.engine import local_engine
from headrace.topics.embedded import EmbeddedLog
from tests.cli.conftest import Command
from tests.cli.counting import build


def count(log: EmbeddedLog, state_dir: Path, application: str) -> None:
    config = StreamsConfig.of({"application_id": application, "state_dir": str(state_dir)})
    builder = StreamsBuilder(config)
    build(builder)
    Streams(builder.build(config), config, log=log, engine=local_engine).run(until_end=True)


def test_a_snapshot_is_taken_listed_restored_and_deleted(headrace: Command, log: EmbeddedLog, state_dir: Path) -> None:
    log.create_topic("in", partitions=2)
    log.append("in", [(None, 1_000, b"%d" % number, b"1", ()) for number in range(10)])
    count(log, state_dir, "counting")
    done = headrace("snapshot", "counting", "before")
    assert done.err.startswith("snapshot 'before' has batch 0 of application 'counting'\ndone in ")
    (row,) = headrace("snapshots", "list").lines[1:]
    assert row.split()[:3] == ["before", "counting", "0"]
    (found,) = headrace("snapshots", "list", "--json").json
    assert (found["name"], found["application"], found["batch_id"]) == ("before", "counting", 0)
    assert "application 'fork' goes on from batch 0 of 'counting'" in headrace("restore", "before", "--as", "fork").err
    log.append("in", [(None, 2_000, b"7", b"1", ())])
    count(log, state_dir, "fork")
    values = [value for part in range(2) for _, at, _, value, _ in log.read("out", part, 0) if at == 2_000]
    assert values == [(2).to_bytes(8, "big")]
    assert "snapshot 'before' was deleted" in headrace("snapshots", "delete", "before").err
    assert not [topic for topic in log.topics() if "snapshot" in topic]
    done = headrace("restore", "before", "--as", "other", code=1)
    assert done.err == "error: there is no snapshot 'before'\n"


def test_a_reset_leaves_snapshots_alone(headrace: Command, log: EmbeddedLog, state_dir: Path) -> None:
    log.create_topic("in", partitions=2)
    log.append("in", [(None, 1_000, b"a", b"1", ())])
    count(log, state_dir, "counting")
    headrace("snapshot", "counting", "counting-before")
    headrace("reset", "counting", "--yes")
    assert "counting-counts-changelog" not in log.topics()
    headrace("restore", "counting-before", "--as", "counting")
    log.append("in", [(None, 2_000, b"a", b"1", ())])
    count(log, state_dir, "counting")
    values = [value for part in range(2) for _, at, _, value, _ in log.read("out", part, 0) if at == 2_000]
    assert values == [(2).to_bytes(8, "big")]
