"""Clients of a server whose certificate is signed by an authority of its own."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from headrace.app.engine import local_engine
from headrace.cli.sql.client import SqlClient
from headrace.sql.server.sql_server import SqlServer
from tests.certificates import make_signed_certificate
from tests.cli.conftest import Command


@dataclass(frozen=True)
class Secured:
    """A server, and the file that says who has signed its certificate."""

    url: str
    authority: Path


@pytest.fixture(scope="module")
def secured(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Secured]:
    directory = tmp_path_factory.mktemp("secured")
    certificate, key, authority = make_signed_certificate(directory)
    settings = {"state.dir": str(directory), "log.sync": "none", "http.tls.certificate": certificate}
    with SqlServer(settings | {"http.tls.key": key}, listen="localhost:0", engine=local_engine) as server:
        yield Secured(server.url, authority)


SHOW = ("-e", "SHOW PROPERTIES;")


def test_prompt_accepts_the_certificates_of_an_authority(headrace: Command, secured: Secured, tmp_path: Path) -> None:
    file = tmp_path / "client.properties"
    file.write_text(f"http.tls.authority={secured.authority}\n")
    for named in (["--authority", secured.authority], ["--config", file]):
        assert "ksql.service.id" in headrace("sql", secured.url, *SHOW, *named).out


def test_authority_may_stand_in_the_environment(
    headrace: Command, secured: Secured, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HEADRACE_HTTP_TLS_AUTHORITY", str(secured.authority))
    assert "ksql.service.id" in headrace("sql", secured.url, *SHOW).out


def test_migrations_accept_the_certificates_of_an_authority(
    headrace: Command, secured: Secured, tmp_path: Path
) -> None:
    place = ["--directory", tmp_path, "--server", secured.url, "--authority", secured.authority]
    headrace("sql", "migrations", "create", "orders", "--directory", tmp_path)
    headrace("sql", "migrations", "apply", *place)
    assert "MIGRATED" in headrace("sql", "migrations", "info", *place).out
    headrace("sql", "migrations", "validate", *place)


def test_prompt_says_what_is_wrong_between_it_and_a_server(headrace: Command, secured: Secured, tmp_path: Path) -> None:
    nothing = tmp_path / "nothing.pem"
    nothing.touch()
    plain = secured.url.replace("https", "http")
    for address, authority, told in (
        (
            secured.url,
            [],
            "is not trusted: unable to get local issuer certificate; name the file of its authority with",
        ),
        (secured.url, ["--authority", nothing], "http.tls.authority must be a file of certificates (PEM)"),
        (plain, [], "if it speaks TLS, its address begins with https://"),
    ):
        assert told in headrace("sql", address, *SHOW, *authority, code=2 if nothing in authority else 1).err


def test_prompt_says_that_a_server_speaks_no_tls(headrace: Command, tmp_path: Path) -> None:
    settings = {"state.dir": str(tmp_path), "log.sync": "none"}
    with SqlServer(settings, listen="localhost:0", engine=local_engine) as server:
        address = server.url.replace("http", "https")
        assert "its address begins with http://" in headrace("sql", address, *SHOW, code=1).err


def test_client_of_another_server_accepts_the_same_certificates(secured: Secured) -> None:
    client = SqlClient("http://localhost:1", authority=secured.authority)
    assert client.of(secured.url).info()["ksqlServiceId"] == "default_"
