"""The commands with ``--bootstrap-servers``: what they do is what they do on the embedded log."""

from __future__ import annotations

import socket
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("confluent_kafka")

from headrace.topics.kafka import KafkaLog, administration
from headrace.views.membership import Member, MembershipTable
from headrace.views.metadata import HostInfo
from tests.cli.conftest import Command, Done
from tests.secured_listener import PASSWORD, SecuredListener
from tests.topics.kit import everything

pytestmark = pytest.mark.kafka

EXAMPLE = Path(__file__).parents[2] / "examples" / "word_count.py"


@pytest.fixture
def on_kafka(headrace: Command, kafka: KafkaLog) -> Command:
    """Runs commands on the broker."""

    def run(*args: object, **more: Any) -> Done:
        return headrace("--bootstrap-servers", kafka.bootstrap_servers, *args, **more)

    return run


def test_topics_are_made_listed_described_and_deleted(on_kafka: Command) -> None:
    assert "no topics in Kafka at '127.0.0.1:" in on_kafka("topics", "list").err
    on_kafka("topics", "create", "users", "--partitions", 3, "-c", "cleanup.policy=compact")
    (found,) = on_kafka("topics", "list", "--json").json
    assert (found["topic"], found["partitions"], found["records"], found["bytes"]) == ("users", 3, 0, None)
    assert "users" in on_kafka("topics", "list").out
    described = on_kafka("topics", "describe", "users").out
    assert "3 partitions, cleanup.policy=compact" in described
    on_kafka("topics", "delete", "users", "--yes")
    assert on_kafka("topics", "list", "--json").json == []


def test_what_is_produced_is_consumed(on_kafka: Command) -> None:
    on_kafka("topics", "create", "users", "--partitions", 2)
    lines = "".join(f'k{number}:{{"n": {number}}}\n' for number in range(20))
    assert "wrote 20 records" in on_kafka("produce", "users", "--key-separator", ":", stdin=lines).err
    found = on_kafka("consume", "users", "--records").rows
    assert sorted(row["value"]["n"] for row in found) == list(range(20))
    assert len(on_kafka("consume", "users", "--last", 5).lines) == 5
    missing = on_kafka("consume", "user", code=1).err
    assert "there is no topic 'user' in Kafka at '127.0.0.1:" in missing
    assert "did you mean 'users'" in missing


def test_load_is_generated(on_kafka: Command, kafka: KafkaLog) -> None:
    on_kafka("generate", "purchases", "lines", "--count", 100, "--partitions", 2)
    assert kafka.partition_counts() == {"lines": 2}
    assert sum(kafka.end_offsets([("lines", 0), ("lines", 1)]).values()) == 100


@pytest.mark.spark
def test_application_runs_shows_its_state_and_is_reset(on_kafka: Command, kafka: KafkaLog) -> None:
    on_kafka("topics", "create", "lines")
    on_kafka("produce", "lines", "--value-format", "string", stdin="to be or not to be\n")
    run = ("run", f"{EXAMPLE}:build", "--until-end", "-a", "app", "--quiet", "--set", "spark.master=local[2,2]")
    on_kafka(*run)
    consume = ("consume", "word-counts", "--key-format", "string", "--value-format", "long")
    assert sorted(on_kafka(*consume).lines) == ["be\t2", "not\t1", "or\t1", "to\t2"]
    shown = on_kafka("state", "app", "--json").json
    assert shown["positions"] == [{"topic": "lines", "partition": 0, "position": 1, "lag": 0}]
    # Another application's, whose name begins in the same way.
    kafka.create_topic("app-eu-counts-changelog")
    kafka.create_topic("in")
    kafka.open_journal("app-eu", []).commit(0, [], {("in", 0): 0})
    planned = on_kafka("reset", "app", "--dry-run").out
    assert "app-word-count-store-changelog" in planned
    assert "app-eu-counts" not in planned
    on_kafka("reset", "app", "--yes")
    assert everything(kafka, "app-word-count-store-changelog") == []
    assert kafka.positions("app") == {}
    on_kafka(*run)
    assert len(on_kafka(*consume).lines) == 8
    kafka.reset_application("app-eu")


def test_reset_empties_what_views_have_left(on_kafka: Command, kafka: KafkaLog) -> None:
    MembershipTable("app", kafka).announce(Member("view-1", HostInfo("localhost", 8080), 0, {}))
    kafka.create_topic("in")
    kafka.open_journal("app", []).commit(0, [], {("in", 0): 0})
    on_kafka("reset", "app", "--yes")
    assert everything(kafka, "app-views") == []


def test_reset_sets_positions(on_kafka: Command, kafka: KafkaLog) -> None:
    kafka.create_topic("in")
    kafka.append("in", [(None, 1, b"k", b"v", ())] * 5)
    kafka.open_journal("app", []).commit(0, [], {("in", 0): 5})
    on_kafka("reset", "app", "--shift-by", -2, "--yes")
    assert kafka.positions("app") == {("in", 0): 3}


def test_absent_broker_is_told_in_a_line(headrace: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    # That the real limit is short enough is shown where applications start.
    monkeypatch.setattr(administration, "FIRST_ANSWER_S", 0.5)
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{taken.getsockname()[1]}"
        for command in (["topics", "list"], ["run", f"{EXAMPLE}:build"]):
            told = headrace("--bootstrap-servers", address, *command, code=1).err
            assert f"error: Kafka at '{address}' did not answer in time" in told
            assert "check that it runs and that bootstrap_servers is right" in told
            assert len(told.splitlines()) == 1


def test_wrong_credentials_are_told(headrace: Command, secured: SecuredListener, tmp_path: Path) -> None:
    for password, code in ((PASSWORD, 0), ("guessed", 1)):
        settings = {**secured.client_settings, "sasl.password": password}
        config = tmp_path / "client.properties"
        config.write_text("".join(f"{name}={value}\n" for name, value in settings.items()), encoding="utf-8")
        done = headrace(
            "--bootstrap-servers", secured.bootstrap_servers, "--client-config", config, "topics", "list", code=code
        )
    assert f"error: Kafka at '{secured.bootstrap_servers}' refused listing topics" in done.err
    assert "uthentication" in done.err
    assert "check 'security.protocol', the 'sasl.' and 'ssl.' settings" in done.err
    assert "guessed" not in done.err
