"""``headrace takeover`` and ``headrace hand-back``: what the commands say and do."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.conftest import Command

TARGET = "tests.cli.counting:build"


def test_kafka_has_to_be_named(headrace: Command) -> None:
    for command in ("takeover", "hand-back"):
        assert "say where that is with --bootstrap-servers" in headrace(command, "counting", TARGET, code=2).err


@pytest.mark.kafka
def test_an_application_goes_there_and_back(headrace: Command, kafka: object, tmp_path: Path) -> None:
    from headrace.topics.consumer_group import GroupOffset, OffsetMetadata
    from headrace.topics.kafka import KafkaLog

    assert isinstance(kafka, KafkaLog)
    places = ("--bootstrap-servers", kafka.bootstrap_servers)
    for topic in ("in", "out"):
        kafka.create_topic(topic)
    kafka.create_topic("counting-counts-changelog", configs={"cleanup.policy": "compact"})
    kafka.append("in", [(None, 1_000, b"a", b"1", ())])
    kafka.append("counting-counts-changelog", [(0, 1_000, b"a", (1).to_bytes(8), ())])
    theirs = {("in", 0): GroupOffset(1, OffsetMetadata(1_000).encode())}
    kafka.commit_group_offsets("counting", theirs)
    try:
        looked = headrace("takeover", "counting", TARGET, "--dry-run", *places)
        assert "store 'counts': 1 record in its changelog, which stays as it is" in looked.out
        assert kafka.group_offsets("counting") == theirs
        description = tmp_path / "topology.txt"
        description.write_text("Topologies:\n   Sub-topology: 7\n", encoding="utf-8")
        refused = headrace("takeover", "counting", TARGET, "--describe", str(description), "--yes", *places, code=1)
        assert "the topology is not the one that Kafka Streams describes" in refused.err
        assert "'counting' is Headrace's" in headrace("takeover", "counting", TARGET, "--yes", *places).err
        assert kafka.group_offsets("counting") == {("in", 0): GroupOffset(1)}
        assert "left to Kafka Streams" in headrace("hand-back", "counting", TARGET, "--yes", *places).err
        assert kafka.group_offsets("counting") == theirs
    finally:
        kafka.reset_application("counting")
