"""Connect client: answers that a worker gives, does not give, or should not give."""

from __future__ import annotations

import re
import socket
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import pytest

from headrace.errors import ConfigError
from headrace.sql.connect.client import ConnectClient, ConnectError, ConnectRefusalError
from headrace.sql.connect.settings import ConnectSettings
from tests.sql.connect.stub_worker import StubWorker


@pytest.fixture
def client(stub: StubWorker) -> Iterator[ConnectClient]:
    made = ConnectClient(ConnectSettings(stub.url))
    yield made
    made.close()


def test_refusal_has_the_message_and_the_status_of_the_worker(stub: StubWorker, client: ConnectClient) -> None:
    stub.answer("POST /connectors", (409, {"error_code": 409, "message": "Connector C already exists"}))
    with pytest.raises(ConnectRefusalError, match=r"^Connector C already exists$") as caught:
        client.create("C", {"connector.class": "X"})
    assert caught.value.status == 409
    assert stub.requests == ["POST /connectors"]
    assert stub.bodies == [{"name": "C", "config": {"connector.class": "X"}}]


def test_request_is_repeated_while_workers_rearrange_themselves(stub: StubWorker, client: ConnectClient) -> None:
    busy = (409, {"error_code": 409, "message": "Cannot complete request momentarily due to stale configuration"})
    stub.answer("DELETE /connectors/C", busy, busy, (204, ""))
    client.delete("C")
    assert stub.requests == ["DELETE /connectors/C"] * 3


def test_workers_that_do_not_come_to_rest_are_reported(stub: StubWorker) -> None:
    client = ConnectClient(ConnectSettings(stub.url, timedelta(seconds=1)))
    stub.answer("GET /connectors", (409, {"error_code": 409, "message": "Rebalance in process"}))
    with pytest.raises(ConnectError, match="Rebalance in process"):
        client.names()
    client.close()


def test_worker_that_does_not_answer_in_time_is_named_with_the_setting(stub: StubWorker) -> None:
    stub.holds = True
    client = ConnectClient(ConnectSettings(stub.url, timedelta(milliseconds=50)))
    with pytest.raises(ConnectError, match=r"has not answered within 0\.05 s; ksql\.connect\.request\.timeout\.ms"):
        client.names()
    client.close()


def test_worker_that_is_not_there_is_named_with_the_setting() -> None:
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{unused.getsockname()[1]}"
        client = ConnectClient(ConnectSettings(url))
        with pytest.raises(ConnectError, match=rf"{url} cannot be reached: .*correct ksql\.connect\.url") as caught:
            client.names()
        client.close()
    assert caught.value.status == 500


@pytest.mark.parametrize(
    ("answered", "body", "said", "status"),
    [
        (200, "<html><p>Welcome</html>", "200 OK: Welcome", 503),
        (200, {"connectors": []}, '200 OK: {"connectors": []}', 503),
        (404, "<h2>HTTP ERROR 404</h2>", "404 Not Found: HTTP ERROR 404", 503),
        (502, "", "502 Bad Gateway", 502),
        (401, [], "401 Unauthorized: []", 401),
    ],
)
def test_something_that_is_no_worker_is_told(
    stub: StubWorker, client: ConnectClient, answered: int, body: object, said: str, status: int
) -> None:
    stub.answer("GET /connectors", (answered, body))
    expected = f"{stub.url} answers as none does; it may be starting, or ksql.connect.url is wrong: {said}"
    with pytest.raises(ConnectError, match=re.escape(expected)) as caught:
        client.names()
    assert (caught.value.status, caught.type) == (status, ConnectError)


def test_names_are_quoted_in_paths(stub: StubWorker, client: ConnectClient) -> None:
    stub.answer("GET /connectors/a%2Fb%20%C3%BC%3F/topics", (200, {"a/b ü?": {"topics": ["t", "s"]}}))
    assert client.topics("a/b ü?") == ["s", "t"]


@pytest.mark.parametrize("name", ["", ".", ".."])
def test_names_that_are_other_paths_are_refused(stub: StubWorker, client: ConnectClient, name: str) -> None:
    with pytest.raises(ConnectError, match="is no name of a connector"):
        client.delete(name)
    assert stub.requests == []


def test_problems_are_those_of_the_settings_that_have_some(stub: StubWorker, client: ConnectClient) -> None:
    configs = [
        {"value": {"name": "topic", "errors": ["Missing required configuration", "Empty"]}},
        {"value": {"name": "file", "errors": []}},
    ]
    stub.answer("PUT /connector-plugins/a.B$C/config/validate", (200, {"error_count": 2, "configs": configs}))
    assert client.problems({"connector.class": "a.B$C"}) == ["topic - Missing required configuration. Empty"]


def test_password_comes_from_a_file(stub: StubWorker, tmp_path: Path) -> None:
    secret = tmp_path / "credentials"
    secret.write_text("username=ada\npassword=a=b\n")
    settings = ConnectSettings.of(
        {
            "ksql.connect.url": stub.url,
            "ksql.connect.basic.auth.credentials.source": "FILE",
            "ksql.connect.basic.auth.credentials.file": str(secret),
        }
    )
    assert settings is not None
    assert "a=b" not in repr(settings)
    stub.answer("GET /connectors", (200, []))
    client = ConnectClient(settings)
    client.names()
    client.close()
    assert stub.authorizations == ["Basic YWRhOmE9Yg=="]


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"url": "localhost:8083"}, "must be an address such as http://localhost:8083"),
        ({"url": "http://ada:secret@localhost"}, "must not hold a password"),
        ({"request.timeout.ms": "soon"}, "must be a number of milliseconds above 0"),
        ({"request.timeout.ms": 0}, "must be a number of milliseconds above 0"),
        ({"basic.auth.credentials.source": "VAULT"}, "must be NONE or FILE"),
        ({"basic.auth.credentials.source": "FILE"}, "cannot be read"),
        (
            {"basic.auth.credentials.source": "FILE", "basic.auth.credentials.file": __file__},
            "must have the lines username=… and password=…",
        ),
    ],
)
def test_settings_that_cannot_be_meant_are_refused(settings: dict[str, object], message: str) -> None:
    given = {"url": "http://localhost:8083", **settings}
    with pytest.raises(ConfigError, match=message):
        ConnectSettings.of({f"ksql.connect.{name}": value for name, value in given.items()})
