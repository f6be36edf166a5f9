"""The schema registry for development over HTTP, as its clients use it."""

from __future__ import annotations

import base64
import json
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from google.protobuf.descriptor_pb2 import FileDescriptorProto

from headrace import EmbeddedLog
from headrace.devtools.schema_registry import RegistryServer
from headrace.devtools.schema_registry.registry import TOPIC, DevelopmentRegistry
from headrace.serdes.registry import Schema, SchemaReference, SchemaRegistry
from headrace.topics.log import TopicLog

ORDER = '{"type": "record", "name": "Order", "fields": [{"name": "id", "type": "long"}]}'
WITH_NOTE = (
    '{"type": "record", "name": "Order", "fields": [{"name": "id", "type": "long"}, '
    '{"name": "note", "type": "string", "default": ""}]}'
)
WITHOUT_DEFAULT = (
    '{"type": "record", "name": "Order", "fields": [{"name": "id", "type": "long"}, {"name": "at", "type": "long"}]}'
)


@pytest.fixture
def log(tmp_path: Path) -> Iterator[EmbeddedLog]:
    with EmbeddedLog(tmp_path, sync="none") as log:
        yield log


@pytest.fixture
def server(log: EmbeddedLog) -> Iterator[RegistryServer]:
    with RegistryServer(log, port=0) as server:
        yield server


@pytest.fixture
def client(server: RegistryServer) -> SchemaRegistry:
    return SchemaRegistry(server.url, {"max.retries": 0})


class Http:
    """Requests, and what the server answers."""

    def __init__(self, http: httpx.Client) -> None:
        self._http = http

    def __call__(self, method: str, path: str, body: Any = None) -> Any:
        answer = self._http.request(method, path, json=body)
        assert answer.status_code == 200, answer.text
        assert answer.headers["content-type"] == "application/vnd.schemaregistry.v1+json"
        return answer.json()

    def refused(self, method: str, path: str, body: Any = None) -> tuple[int, int]:
        answer = self._http.request(method, path, json=body)
        return answer.status_code, answer.json()["error_code"]


@pytest.fixture
def http(server: RegistryServer) -> Iterator[Http]:
    with httpx.Client(base_url=server.url, trust_env=False) as client:
        yield Http(client)


def test_confluents_client_registers_and_finds(client: SchemaRegistry) -> None:
    first = client.register("orders-value", Schema(ORDER))
    assert client.register("orders-value", Schema(ORDER)) == first
    # The same schema has the same number everywhere, a new one the next.
    assert client.register("others-value", Schema(ORDER)) == first
    assert client.register("orders-value", Schema(WITH_NOTE)) == first + 1
    confluents = client.client
    assert confluents.get_subjects() == ["orders-value", "others-value"]
    assert confluents.get_versions("orders-value") == [1, 2]
    latest = confluents.get_latest_version("orders-value")
    assert (latest.version, latest.schema_id) == (2, first + 1)
    found = confluents.lookup_schema("orders-value", confluents.get_schema(first))
    assert (found.version, found.schema_id) == (1, first)
    assert json.loads(client.schema(first).text) == json.loads(ORDER)


def test_order_of_attributes_makes_no_new_schema(client: SchemaRegistry) -> None:
    other = '{"name": "Order", "fields": [{"type": {"type": "long"}, "name": "id"}], "type": "record"}'
    assert client.register("s", Schema(ORDER)) == client.register("s", Schema(other))


def test_schema_that_breaks_readers_is_refused(client: SchemaRegistry, http: Http) -> None:
    client.register("s", Schema(ORDER))
    with pytest.raises(Exception, match=r"reader field 'at' has no default.*status code 409, SR code 409"):
        client.register("s", Schema(WITHOUT_DEFAULT))
    for text, expected in ((WITHOUT_DEFAULT, False), (WITH_NOTE, True)):
        found = http("POST", "/compatibility/subjects/s/versions/latest", {"schema": text})
        assert found == {"is_compatible": expected}
    told = http("POST", "/compatibility/subjects/s/versions?verbose=true", {"schema": WITHOUT_DEFAULT})
    assert told["is_compatible"] is False
    assert "'at'" in told["messages"][0]


def test_compatibility_is_set_for_all_and_for_one(client: SchemaRegistry, http: Http) -> None:
    assert http("GET", "/config") == {"compatibilityLevel": "BACKWARD"}
    assert http.refused("GET", "/config/s") == (404, 40408)
    assert http("GET", "/config/s?defaultToGlobal=true") == {"compatibilityLevel": "BACKWARD"}
    assert http("PUT", "/config/s", {"compatibility": "none"}) == {"compatibility": "NONE"}
    client.register("s", Schema(ORDER))
    client.register("s", Schema(WITHOUT_DEFAULT))
    assert http("DELETE", "/config/s") == {"compatibilityLevel": "NONE"}
    assert http.refused("GET", "/config/s") == (404, 40408)
    assert http("PUT", "/config", {"compatibility": "FULL"}) == {"compatibility": "FULL"}
    assert http("GET", "/config") == {"compatibilityLevel": "FULL"}
    assert http.refused("PUT", "/config", {"compatibility": "SOME"}) == (422, 42203)
    assert http("DELETE", "/config") == {"compatibilityLevel": "FULL"}
    assert http("GET", "/config") == {"compatibilityLevel": "BACKWARD"}


def test_answers_have_the_shape_that_clients_know(client: SchemaRegistry, http: Http) -> None:
    client.register("a", Schema('"string"'))
    client.register("b", Schema('{"type": "string"}', "JSON"))
    # What is Avro says nothing of it.
    assert http("GET", "/schemas/ids/1") == {"schema": '"string"'}
    assert http("GET", "/schemas/ids/2") == {"schemaType": "JSON", "schema": '{"type":"string"}'}
    assert http("GET", "/subjects/a/versions/latest") == {"subject": "a", "version": 1, "id": 1, "schema": '"string"'}
    assert http("GET", "/subjects/b/versions/1/schema") == {"type": "string"}
    assert http("GET", "/schemas/ids/1/schema") == "string"
    assert http("GET", "/schemas/ids/1/subjects") == ["a"]
    assert http("GET", "/schemas/ids/2/versions") == [{"subject": "b", "version": 1}]
    assert http("GET", "/schemas/types") == ["JSON", "PROTOBUF", "AVRO"]
    assert [each["subject"] for each in http("GET", "/schemas?subjectPrefix=b")] == ["b"]
    assert http("GET", "/mode") == {"mode": "READWRITE"}
    assert http("GET", "/") == {}


def test_what_is_not_there_has_its_number(client: SchemaRegistry, http: Http) -> None:
    client.register("s", Schema(ORDER))
    assert http.refused("GET", "/subjects/none/versions") == (404, 40401)
    assert http.refused("GET", "/subjects/none/versions/1") == (404, 40401)
    assert http.refused("GET", "/subjects/s/versions/2") == (404, 40402)
    assert http.refused("GET", "/subjects/s/versions/zero") == (422, 42202)
    assert http.refused("GET", "/schemas/ids/99") == (404, 40403)
    assert http.refused("POST", "/subjects/s", {"schema": '"int"'}) == (404, 40403)
    assert http.refused("POST", "/subjects/none", {"schema": '"int"'}) == (404, 40401)
    assert http.refused("GET", "/nothing") == (404, 404)


@pytest.mark.parametrize(
    "body",
    [
        {},
        {"schema": ""},
        {"schema": "{"},
        {"schema": '"Order"'},
        {"schema": '{"type": "record", "name": "R"}'},
        {"schema": '{"type": "record", "name": "R", "fields": [{"name": "a"}]}'},
        {"schema": "5", "schemaType": "JSON"},
        {"schema": "message {", "schemaType": "PROTOBUF"},
        {"schema": "a", "schemaType": "XML"},
        {"schema": '"int"', "references": [{"name": "x"}]},
        {"schema": '"int"', "references": [{"name": "x", "subject": "none", "version": 1}]},
    ],
)
def test_what_is_no_schema_is_refused(http: Http, body: Any) -> None:
    assert http.refused("POST", "/subjects/s/versions", body) == (422, 42201)
    assert http("GET", "/subjects") == []


def test_body_that_is_no_object_is_refused(http: Http) -> None:
    assert http.refused("POST", "/subjects/s/versions", [1]) == (400, 40001)


def test_avro_types_are_found_in_references(client: SchemaRegistry, http: Http) -> None:
    client.register("order", Schema(ORDER))
    orders = {"name": "orders", "type": {"type": "array", "items": "Order"}}
    basket = json.dumps({"type": "record", "name": "Basket", "fields": [orders]})
    references = (SchemaReference("Order", "order", 1),)
    number = client.register("basket", Schema(basket, "AVRO", references))
    assert http("GET", f"/schemas/ids/{number}")["references"] == [{"name": "Order", "subject": "order", "version": 1}]
    assert http("GET", "/subjects/order/versions/1/referencedby") == [number]
    assert http.refused("DELETE", "/subjects/order/versions/1") == (422, 42206)
    assert http.refused("POST", "/subjects/basket/versions", {"schema": basket}) == (422, 42201)


def test_protobuf_text_is_given_as_descriptor_to_who_asks_for_it(http: Http) -> None:
    text = 'syntax = "proto3"; message Order { int64 id = 1; }'
    http("POST", "/subjects/a%2Fb/versions", {"schema": text, "schemaType": "PROTOBUF"})
    assert http("GET", "/subjects") == ["a/b"]
    assert http("GET", "/subjects/a%2Fb/versions/1")["schema"] == text
    found = http("GET", "/schemas/ids/1?format=serialized")["schema"]
    descriptor = FileDescriptorProto.FromString(base64.b64decode(found))
    assert [field.name for field in descriptor.message_type[0].field] == ["id"]


def test_versions_are_deleted_softly_then_for_good(client: SchemaRegistry, http: Http) -> None:
    for each in (ORDER, WITH_NOTE):
        client.register("s", Schema(each))
    assert http.refused("DELETE", "/subjects/s/versions/1?permanent=true") == (404, 40407)
    assert http("DELETE", "/subjects/s/versions/1") == 1
    assert http("GET", "/subjects/s/versions") == [2]
    assert http("GET", "/subjects/s/versions?deleted=true") == [1, 2]
    # What was written with it can still be read.
    assert json.loads(http("GET", "/schemas/ids/1")["schema"]) == json.loads(ORDER)
    assert http("DELETE", "/subjects/s/versions/1?permanent=true") == 1
    assert http.refused("GET", "/schemas/ids/1") == (404, 40403)
    assert http.refused("DELETE", "/subjects/s?permanent=true") == (404, 40405)
    assert http("DELETE", "/subjects/s") == [2]
    assert http("GET", "/subjects") == []
    assert http("GET", "/subjects?deleted=true") == ["s"]
    assert http.refused("DELETE", "/subjects/s") == (404, 40404)
    assert http("DELETE", "/subjects/s?permanent=true") == [2]
    assert http("GET", "/subjects?deleted=true") == []
    # Numbers are not given twice.
    assert http("POST", "/subjects/s/versions", {"schema": ORDER}) == {"id": 3}


@pytest.fixture(params=["embedded", pytest.param("kafka", marks=pytest.mark.kafka)])
def any_log(request: pytest.FixtureRequest) -> Iterator[TopicLog]:
    """A log without schemas."""
    log: TopicLog = request.getfixturevalue("log" if request.param == "embedded" else "kafka")
    yield log
    log.delete_topic(TOPIC)


def test_content_is_there_after_a_restart(any_log: TopicLog) -> None:
    first = DevelopmentRegistry(any_log)
    first.register("s", Schema(ORDER))
    first.register("s", Schema(WITH_NOTE))
    first.set_level("s", "NONE")
    again = DevelopmentRegistry(any_log)
    assert [each.id for each in again.versions("s")] == [1, 2]
    assert again.level("s") == "NONE"
    assert again.register("t", Schema('"int"')) == 3


def test_two_registries_on_one_log_give_no_number_twice(any_log: TopicLog) -> None:
    registries = [DevelopmentRegistry(any_log) for _ in range(2)]
    numbers: list[list[int]] = [[], []]

    def register(which: int) -> None:
        for number in range(30):
            text = json.dumps({"type": "fixed", "name": f"F{which}", "size": number + 1})
            numbers[which].append(registries[which].register(f"s{number}", Schema(text)))

    registries[0].set_level(None, "NONE")
    threads = [threading.Thread(target=register, args=(which,)) for which in (0, 1)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(numbers[0] + numbers[1]) == list(range(1, 61))
    for each in (*registries, DevelopmentRegistry(any_log)):
        assert [len(each.versions(f"s{number}")) for number in range(30)] == [2] * 30


def test_strange_records_of_the_topic_are_left_out(log: EmbeddedLog) -> None:
    registry = DevelopmentRegistry(log)
    strange = (b"{", b"[]", b"null", b'{"type": "schema"}', b'{"type": "schema", "references": 5}', None)
    log.append(TOPIC, [(0, 0, None, each, ()) for each in strange])
    assert registry.register("s", Schema(ORDER)) == 1


def test_pages_of_other_names_are_refused(server: RegistryServer) -> None:
    found = httpx.get(f"{server.url}/subjects", headers={"Host": "evil.example"}, trust_env=False)
    assert found.status_code == 421
