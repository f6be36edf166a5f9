"""Several processes that share the partitions: any of them can be asked."""

from __future__ import annotations

import json
import ssl
import time
from collections.abc import Callable, Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import httpx
import pytest
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from headrace.console.view_server import serve_views
from headrace.http.server import Listening, Server
from headrace.views.metadata import HostInfo
from headrace.views.peer_authentication import PeerProof
from headrace.views.view_node import Lease, ViewNode
from tests.certificates import make_signed_certificate
from tests.views.kit import Place, topology_of
from tests.views.programs import build

SOON = timedelta(seconds=20)
KEYS = [f"k{each:03}" for each in range(60)]


class Cluster:
    """View processes in one process, ticked by the test; each is served."""

    def __init__(self, directory: Path, count: int, standbys: int, **settings: Any) -> None:
        self.place = Place(directory, **{"in": 4, "table": 4, "versions": 1, "global": 1})
        config = self.place.config(num_standby_replicas=standbys, **settings)
        streams = self.place.streams(build)
        streams.start()
        bound = self.place.write("in", [(key, each, 1000) for each, key in enumerate(KEYS)])
        self.place.write("global", [("a", 1, 1000)])
        assert streams._own_views.views().wait_for(bound.position, SOON)
        streams.close()
        self.now_ms = 1_000_000
        lease = Lease(timedelta(seconds=1), timedelta(seconds=5))
        self.nodes = [
            ViewNode(
                topology_of(build, config),
                config,
                self.place.log,
                directory / f"view-{each}",
                name=f"view-{each}",
                lease=lease,
                clock=lambda: self.now_ms,
            )
            for each in range(count)
        ]
        self.servers: list[Server] = []
        for node in self.nodes:
            server = serve_views(node)
            node.host = HostInfo("localhost", server.port)
            self.servers.append(server)
        self.tick()

    def tick(self, nodes: list[ViewNode] | None = None) -> None:
        for _ in range(12):
            self.now_ms += 300
            for node in self.nodes if nodes is None else nodes:
                while node.tick():
                    pass

    def get(self, each: int, path: str, **options: Any) -> httpx.Response:
        return httpx.get(f"{self.servers[each].url}{path}", timeout=20, **options)

    def close(self) -> None:
        for server in self.servers:
            server.stop()
        for node in self.nodes:
            node.close()
        self.place.close()


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[Callable[..., Cluster]]:
    made: list[Cluster] = []

    def make(count: int, standbys: int, **settings: Any) -> Cluster:
        made.append(Cluster(tmp_path, count, standbys, **settings))
        return made[-1]

    yield make
    for each in made:
        each.close()


def test_any_of_them_answers_for_any_key(cluster: Callable[..., Cluster]) -> None:
    three = cluster(3, 0)
    assert all(len(node.assigned) > 0 for node in three.nodes)
    for each in range(3):
        for key in KEYS[:20]:
            answer = three.get(each, f"/stores/counts/keys/{key}")
            assert (answer.status_code, answer.json().get("value")) == (200, 1), answer.text
            assert answer.headers["Headrace-Role"] == "active"
    assert three.get(0, "/stores/everywhere/keys/a").json()["value"] == 1


@pytest.mark.parametrize("limit", [7, 1000])
def test_pages_go_over_all_of_them(cluster: Callable[..., Cluster], limit: int) -> None:
    three = cluster(3, 0)
    for each in range(3):
        rows: list[Any] = []
        cursor = None
        while True:
            parameters = {"limit": limit} | ({} if cursor is None else {"cursor": cursor})
            body = three.get(each, "/stores/counts/range", params=parameters).json()
            rows += [row["key"] for row in body["rows"]]
            cursor = body["cursor"]
            if cursor is None:
                break
        assert sorted(rows) == KEYS


def test_a_standby_answers_for_one_that_is_gone_and_says_so(cluster: Callable[..., Cluster]) -> None:
    two = cluster(2, 1)
    gone = 1
    two.servers[gone].stop()
    answers = [two.get(0, f"/stores/counts/keys/{key}") for key in KEYS]
    assert {answer.status_code for answer in answers} == {200}
    roles = {answer.headers["Headrace-Role"] for answer in answers}
    assert roles == {"active", "standby"}
    standby = next(answer for answer in answers if answer.headers["Headrace-Role"] == "standby")
    assert standby.headers["Headrace-Staleness-Ms"] == "0"
    rows = two.get(0, "/stores/counts/range", params={"limit": 1000})
    assert sorted(row["key"] for row in rows.json()["rows"]) == KEYS
    assert rows.headers["Headrace-Role"] == "standby"


def test_without_anybody_who_has_it_one_is_told_to_come_back(cluster: Callable[..., Cluster]) -> None:
    two = cluster(2, 0)
    two.servers[1].stop()
    statuses = {two.get(0, f"/stores/counts/keys/{key}").status_code for key in KEYS}
    assert statuses == {200, 503}
    refused = next(answer for key in KEYS if (answer := two.get(0, f"/stores/counts/keys/{key}")).status_code == 503)
    assert refused.headers["Retry-After"] == "1"
    # After the lease the other one takes over.
    two.now_ms += 10_000
    two.tick([two.nodes[0]])
    assert {two.get(0, f"/stores/counts/keys/{key}").status_code for key in KEYS} == {200}


def test_they_ask_each_other_by_tls_with_certificates_of_an_authority_of_their_own(
    cluster: Callable[..., Cluster], tmp_path: Path
) -> None:
    certificate, key, authority = make_signed_certificate(tmp_path)
    tls = {"http_tls_certificate": certificate, "http_tls_key": key, "http_tls_authority": authority}
    two = cluster(2, 0, http_token=TOKEN, **tls)
    verify = ssl.create_default_context(cafile=authority)
    answers = [two.get(0, f"/stores/counts/keys/{each}", headers=RIGHT, verify=verify) for each in KEYS]
    assert {(answer.status_code, answer.json().get("value")) for answer in answers} == {(200, 1)}


def test_a_peer_whose_certificate_is_signed_by_a_stranger_is_not_believed(
    cluster: Callable[..., Cluster], tmp_path: Path
) -> None:
    certificate, key, authority = make_signed_certificate(tmp_path)
    two = cluster(2, 0, http_tls_certificate=certificate, http_tls_key=key)
    verify = ssl.create_default_context(cafile=authority)
    answers = [two.get(0, f"/stores/counts/keys/{each}", verify=verify) for each in KEYS]
    refused = [answer.json()["error"]["message"] for answer in answers if answer.status_code == 503]
    assert 0 < len(refused) < len(KEYS)
    assert all("its certificate is not trusted: unable to get local issuer certificate" in each for each in refused)


def test_what_was_forwarded_is_not_forwarded_again(cluster: Callable[..., Cluster]) -> None:
    two = cluster(2, 0)
    headers = {"Headrace-Forwarded": "1"}
    answers = [two.get(0, f"/stores/counts/keys/{key}", headers=headers) for key in KEYS]
    assert {answer.status_code for answer in answers} == {200, 503}


def test_a_process_says_whether_it_is_ready(cluster: Callable[..., Cluster]) -> None:
    one = cluster(1, 0)
    assert one.get(0, "/healthz").json() == {"status": "ok"}
    assert one.get(0, "/readyz").status_code == 200
    assert "view_records_lag" in one.get(0, "/metrics").text
    assert "/stores" in json.dumps(one.get(0, "/openapi.json").json())


class Eavesdropper:
    """A server of somebody else, which keeps what it is sent."""

    def __init__(self) -> None:
        self.heard: list[dict[str, str]] = []

        async def hear(request: Request) -> Response:
            self.heard.append({**request.headers, ":target": str(request.url)})
            return Response(json.dumps({"value": "forged", "rows": []}), media_type="application/json")

        application = Starlette(routes=[Route("/{path:path}", hear)])
        application.state.closing = []
        self.server = Server(application, Listening.at("localhost:0"))
        self.server.start()


@pytest.fixture
def eavesdropper() -> Iterator[Eavesdropper]:
    made = Eavesdropper()
    yield made
    made.server.stop()


TOKEN = "open-sesame"
RIGHT = {"Authorization": f"Bearer {TOKEN}"}


def forge(three: Cluster, port: int, **changed: Any) -> None:
    """Announces a process that claims to have everything and to be up to date, and to live for long."""
    lags = {task: 0 for node in three.nodes for task in node.views.tasks}
    content = {"host": "localhost", "port": port, "heartbeat": three.now_ms + 3_600_000, "lags": lags, **changed}
    for name in ("forged", *(node.id for node in three.nodes)):
        three.place.log.append(
            three.nodes[0].membership.topic, [(0, 0, name.encode(), json.dumps(content).encode(), ())]
        )


def test_announcements_of_strangers_do_not_get_the_token(
    cluster: Callable[..., Cluster], eavesdropper: Eavesdropper, caplog: pytest.LogCaptureFixture
) -> None:
    three = cluster(3, 0, http_token=TOKEN)
    for signature in ("", "0" * 64, 5, PeerProof("another").sign("announcement", "app-views", "forged")):
        forge(three, eavesdropper.server.port, signature=signature)
    three.tick()
    for each in range(3):
        assert "forged" not in three.nodes[each].members()
        for key in KEYS[:20]:
            answer = three.get(each, f"/stores/counts/keys/{key}", headers=RIGHT)
            assert (answer.status_code, answer.json().get("value")) == (200, 1), answer.text
    assert eavesdropper.heard == []
    told = [each.getMessage() for each in caplog.records if "announcement of forged" in each.getMessage()]
    # Each process says it once.
    assert len(told) == 3
    assert all("does not prove that it knows http.token" in each for each in told)


def test_who_has_the_address_of_a_peer_gets_nothing_that_opens_another(
    cluster: Callable[..., Cluster], eavesdropper: Eavesdropper
) -> None:
    two = cluster(2, 0, http_token=TOKEN)
    # A peer that has gone, and somebody who listens where it was, before anybody has noticed.
    two.nodes[1].host = HostInfo("localhost", eavesdropper.server.port)
    two.nodes[1]._tell(two.now_ms)
    two.nodes[0].tick()
    for key in KEYS:
        two.get(0, f"/stores/counts/keys/{key}", headers=RIGHT)
    assert eavesdropper.heard
    own = two.servers[0]
    for heard in eavesdropper.heard:
        assert TOKEN not in json.dumps(heard)
        replayed = {"Authorization": heard["authorization"]}
        path = heard[":target"].partition(f":{eavesdropper.server.port}")[2]
        for host in (None, heard["host"]):
            headers = replayed | ({} if host is None else {"Host": host})
            assert httpx.get(f"{own.url}{path}", headers=headers).status_code == 401


def test_proof_is_for_one_request_and_one_minute(cluster: Callable[..., Cluster]) -> None:
    one = cluster(1, 0, http_token=TOKEN)
    for target, age_ms, method, status in (
        ("/stores", 0, "GET", 200),
        ("/stores", 59_000, "GET", 200),
        ("/stores", 61_000, "GET", 401),
        ("/stores", -61_000, "GET", 401),
        ("/metrics", 0, "GET", 401),
        ("/stores", 0, "POST", 401),
    ):
        now_ms = time.time_ns() // 1_000_000 - age_ms
        proof = PeerProof(TOKEN).authorization(one.nodes[0].host.address, target, now_ms)
        found = httpx.request(method, f"{one.servers[0].url}/stores", headers={"Authorization": proof})
        assert found.status_code == status, (target, age_ms, method)


@pytest.mark.parametrize("given", ["", ".", "x.y", "1", "-1.00", "9" * 30 + ".0", "\u0661.0"])
def test_malformed_proofs_are_none(given: str) -> None:
    assert not PeerProof(TOKEN).authorizes(given, "localhost:1", "/stores", 1)
