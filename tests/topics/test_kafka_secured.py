"""TLS and passwords: settings reach the clients that they are meant for, and who is not let in is told why."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

pytest.importorskip("confluent_kafka")

from headrace.config import StreamsConfig
from headrace.errors import LogError
from headrace.topics.kafka import KafkaLog
from headrace.topics.kafka.clients import Clients
from tests.secured_listener import PASSWORD, SecuredListener, make_certificate
from tests.topics.journals import run_batch
from tests.topics.kit import everything, keyed, record

pytestmark = pytest.mark.kafka

WRONG = "byron"
REFUSED = r"Kafka at '127\.0\.0\.1:\d+' refused .* check 'security\.protocol', the 'sasl\.' and 'ssl\.' settings"


def same_for_all(secured: SecuredListener, **changed: str) -> KafkaLog:
    """Opens a log whose clients all have the same settings."""
    extras = {**secured.client_settings, **changed}
    return KafkaLog.of(StreamsConfig(bootstrap_servers=secured.bootstrap_servers, extras=extras))


def with_prefixes(secured: SecuredListener, **passwords: str) -> KafkaLog:
    """Opens a log whose clients have settings of their own, with these passwords."""
    extras = {
        f"{client}.{name}": value
        for client in ("consumer", "producer", "admin")
        for name, value in {**secured.client_settings, "sasl.password": passwords.get(client, PASSWORD)}.items()
    }
    return KafkaLog.of(StreamsConfig(bootstrap_servers=secured.bootstrap_servers, extras=extras))


@pytest.mark.parametrize("open_log", [same_for_all, with_prefixes])
def test_with_its_settings_a_secured_broker_is_used_as_any_other(
    kafka: KafkaLog, secured: SecuredListener, open_log: Callable[[SecuredListener], KafkaLog]
) -> None:
    with open_log(secured) as log:
        log.create_topic("out")
        log.append("out", [record("k", "appended")])
        run_batch(log, log.open_journal("app", ["0_0"]), 0, {"out": [record("k", "committed")]})
        assert [value for _, _, value in keyed(everything(log, "out"))] == ["appended", "committed"]
        last = log.last_batch("app")
        assert last is not None
        assert last.written == {("out", 0): (1, 2)}
    assert kafka.topics() == ["out"]


def test_wrong_password_is_told(secured: SecuredListener) -> None:
    with same_for_all(secured, **{"sasl.password": WRONG}) as log, pytest.raises(LogError, match=REFUSED):
        log.topics()


def test_wrong_password_with_a_prefix_stops_only_the_clients_of_that_prefix(
    kafka: KafkaLog, secured: SecuredListener, monkeypatch: pytest.MonkeyPatch
) -> None:
    kafka.create_topic("t")
    kafka.append("t", [record("k", "1")])
    with with_prefixes(secured, consumer=WRONG) as log:
        log.append("t", [record("k", "2")])
        with pytest.raises(LogError, match=REFUSED):
            log.read("t", 0, 0)
    with with_prefixes(secured, admin=WRONG) as log, pytest.raises(LogError, match=REFUSED):
        log.topics()
    with with_prefixes(secured, producer=WRONG) as log:
        assert len(log.read("t", 0, 0)) == 2
        monkeypatch.setattr(Clients, "patience_s", 1.0)
        with pytest.raises(LogError, match=REFUSED):
            log.append("t", [record("k", "3")])


def test_certificate_that_is_not_trusted_is_told(secured: SecuredListener, tmp_path: Path) -> None:
    _, other = make_certificate(tmp_path)
    with same_for_all(secured, **{"ssl.ca.location": str(other)}) as log, pytest.raises(LogError, match=REFUSED):
        log.topics()
