"""Applications that serve themselves: by a setting, by an argument, from the command line."""

from __future__ import annotations

import json
import socket
import ssl
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import httpx
import pytest
from click.testing import CliRunner

from headrace import (
    Consumed,
    Materialized,
    Producer,
    Serdes,
    Streams,
    StreamsBuilder,
    StreamsConfig,
    StreamsState,
)
from headrace.app.engine import local_engine
from headrace.cli import main
from headrace.errors import ConfigError
from tests.certificates import make_certificate
from tests.console.kit import counting
from tests.views.kit import Place, topology_of


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Place]:
    found = Place(tmp_path, words=2)
    yield found
    found.close()


def streams_of(place: Place, http: str | None = None, **settings: str) -> Streams:
    config = place.config(**settings)
    return Streams(topology_of(counting, config), config, log=place.log, engine=local_engine, http=http)


def test_a_setting_serves_and_the_end_ends_it(place: Place) -> None:
    streams = streams_of(place, http_listen="localhost:0")
    assert streams.http_address is None
    with streams:
        address = streams.http_address
        assert address is not None
        assert httpx.get(f"{address}/healthz").json()["status"] == "ok"
        kept = json.loads((place.directory / "app" / "http.json").read_text())
        assert kept == {"url": address, "needs_token": False}
    assert streams.http_address is None
    assert not (place.directory / "app" / "http.json").exists()
    with pytest.raises(httpx.ConnectError):
        httpx.get(f"{address}/healthz")


def test_an_argument_goes_before_the_setting(place: Place) -> None:
    with streams_of(place, "localhost:0", http_listen="nowhere") as streams:
        assert streams.http_address is not None


def test_without_either_nothing_is_served(place: Place) -> None:
    with streams_of(place) as streams:
        assert streams.http_address is None


def test_an_address_that_cannot_be_used_changes_nothing(place: Place) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        streams = streams_of(place, f"localhost:{taken.getsockname()[1]}")
        with pytest.raises(ConfigError, match="cannot listen"):
            streams.start()
        assert streams.state is StreamsState.CREATED
    with streams:
        assert streams.http_address is not None


def test_the_token_is_asked_for_and_not_printed(place: Place) -> None:
    with streams_of(place, "localhost:0", http_token="sesame") as streams:
        address = streams.http_address
        assert httpx.get(f"{address}/healthz").status_code == 401
        assert httpx.get(f"{address}/healthz", headers={"Authorization": "Bearer sesame"}).status_code == 200
        assert "sesame" not in repr(streams.config)
        assert "sesame" not in (place.directory / "app" / "http.json").read_text()


@pytest.mark.parametrize(
    ("settings", "told"),
    [
        ({}, "everybody may use it: set http.token"),
        ({"http_token": "sesame"}, "what is sent can be read on the way: set http.tls.certificate and http.tls.key"),
    ],
)
def test_what_is_dangerous_about_an_address_is_told(
    place: Place, caplog: pytest.LogCaptureFixture, settings: dict[str, str], told: str
) -> None:
    with streams_of(place, "0.0.0.0:0", **settings):
        assert told in caplog.text


def test_the_command_console_tells_the_address(place: Place) -> None:
    arguments = ["console", "app", "--state-dir", str(place.directory)]
    missing = CliRunner().invoke(main, arguments)
    assert missing.exit_code == 1
    assert "is not served now" in missing.output
    with streams_of(place, "localhost:0") as streams:
        found = CliRunner().invoke(main, arguments)
        assert found.output == f"{streams.http_address}/console/\n"


def test_settings_are_known_by_their_dotted_names() -> None:
    config = StreamsConfig.of({"http.listen": "localhost:8080", "http.token": "x", "http.tls.key": "k.pem"})
    assert (config.http_listen, config.http_token, config.http_tls_key) == ("localhost:8080", "x", "k.pem")


def test_a_certificate_in_the_settings_leaves_only_tls(place: Place, tmp_path: Path) -> None:
    certificate, key = make_certificate(tmp_path)
    tls = {"http.tls.certificate": str(certificate), "http.tls.key": str(key)}
    with streams_of(place, **{"http.listen": "localhost:0"}, **tls) as streams:
        address = streams.http_address
        assert address is not None
        assert address.startswith("https://localhost:")
        verify = ssl.create_default_context(cafile=certificate)
        assert httpx.get(f"{address}/healthz", verify=verify).json()["status"] == "ok"
        assert [each["name"] for each in httpx.get(f"{address}/stores", verify=verify).json()["stores"]] == ["counts"]
        with pytest.raises(httpx.RemoteProtocolError, match="disconnected"):
            httpx.get(f"{address.replace('https', 'http')}/healthz")
        kept = json.loads((place.directory / "app" / "http.json").read_text())
        assert kept["url"] == address


class Money:
    def __init__(self, cents: int) -> None:
        self.cents = cents

    def __str__(self) -> str:
        return f"{self.cents} cents"


MONEY = Serdes.of(lambda money: str(money.cents).encode(), lambda data: Money(int(data)))


def show(value: object) -> object:
    return f"{value.cents / 100:.2f} EUR" if isinstance(value, Money) else NotImplemented


@pytest.mark.parametrize(("formatter", "shown"), [(None, {"cents": 150}), (show, "1.50 EUR"), (str, "150 cents")])
def test_values_of_custom_serdes_are_shown_by_the_formatter(
    tmp_path: Path, formatter: Callable[[object], object] | None, shown: object
) -> None:
    config = StreamsConfig(application_id="app", state_dir=tmp_path, log_sync="none", http_formatter=formatter)
    with Producer(config, "prices", Serdes.string(), MONEY, partitions=1) as producer:
        producer.send("tea", Money(150))
    builder = StreamsBuilder()
    builder.table("prices", Consumed(Serdes.string(), MONEY), Materialized("prices"))
    seen = threading.Event()
    streams = Streams(builder.build(), config, engine=local_engine, http="localhost:0")
    streams.add_batch_listener(lambda batch: seen.set())
    with streams:
        assert seen.wait(20)
        address = streams.http_address
        row = httpx.get(f"{address}/stores/prices/keys/tea", params={"wait_ms": 10_000}).json()
        topic = httpx.get(f"{address}/console/api/topics/prices/records").json()
    assert row["value"] == shown
    assert [record["value"] for record in topic["records"]] == [shown]
