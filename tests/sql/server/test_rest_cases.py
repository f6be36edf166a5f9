"""The runner of ksqlDB's cases of the HTTP API, with a case of our own: it passes, and each change is noticed."""

from __future__ import annotations

from copy import deepcopy
from datetime import timedelta
from typing import Any

import pytest

from rest_cases.judge import judge

CASE: dict[str, Any] = {
    "id": "own",
    "format": None,
    "statements": [
        "CREATE STREAM S (K INT KEY, V STRING) WITH (KAFKA_TOPIC='s', VALUE_FORMAT='JSON', PARTITIONS=1);",
        "CREATE TABLE N AS SELECT V, COUNT(*) AS N FROM S GROUP BY V;",
        "SELECT * FROM N;",
        "SELECT V FROM S EMIT CHANGES LIMIT 1;",
    ],
    "properties": {},
    "topics": [],
    "inputs": [
        {"topic": "s", "key": 1, "value": {"V": "a"}, "timestamp": 5},
        {"topic": "s", "key": 2, "value": {"V": "b"}, "timestamp": 6},
    ],
    "outputs": [
        {"topic": "N", "key": "a", "value": {"N": 1}, "timestamp": 5},
        {"topic": "N", "key": "b", "value": {"N": 1}},
    ],
    "responses": [
        {"admin": {"@type": "currentStatus"}},
        {"admin": {"@type": "currentStatus"}},
        {
            "query": [
                {"header": {"schema": "`V` STRING KEY, `N` BIGINT"}},
                {"row": {"columns": ["b", 1]}},
                {"row": {"columns": ["a", 1]}},
            ]
        },
        {
            "query": [
                {"header": {"schema": "`V` STRING", "queryId|starts_with": "transient"}},
                {"row": {"columns": ["a"]}},
                {"finalMessage": "Limit Reached"},
            ]
        },
    ],
    "expectedError": None,
    "inputConditions": None,
    "outputConditions": None,
    "testPullWithProtoFormat": False,
    "needsSchemaRegistry": False,
}
ERROR = {
    "type": "io.confluent.ksql.rest.entity.KsqlStatementErrorMessage",
    "message": "NOPE does not exist",
    "status": 400,
}


def _judged(case: dict[str, Any]) -> str | None:
    return judge(case, "driver", timedelta(seconds=30))


def test_case_passes() -> None:
    assert _judged(CASE) is None


@pytest.mark.parametrize(
    ("path", "value", "difference"),
    [
        (("outputs", 0, "timestamp"), 7, "timestamp 5 instead of 7"),
        (("outputs", 1, "value"), {"N": 2}, "value"),
        (("responses", 0, "admin", "@type"), "streams", "answer 0"),
        (("responses", 2, "query", 0, "header", "schema"), "`V` STRING", "answer 2: header"),
        (("responses", 2, "query", 1, "row", "columns"), ["b", 2], "answer 2: no"),
        (("responses", 3, "query", 2, "finalMessage"), "Query Completed", "answer 3: no"),
        (("expectedError",), ERROR, "no error; expected 'NOPE"),
    ],
)
def test_change_is_noticed(path: tuple[Any, ...], value: Any, difference: str) -> None:
    case = deepcopy(CASE)
    inner = case
    for name in path[:-1]:
        inner = inner[name]
    inner[path[-1]] = value
    assert difference in (_judged(case) or "")


def test_expected_error() -> None:
    case = {**CASE, "statements": [*CASE["statements"][:1], "SELECT * FROM NOPE;"], "expectedError": ERROR}
    assert _judged(case) is None
    assert "status 400 instead of 404" in (_judged({**case, "expectedError": {**ERROR, "status": 404}}) or "")
    kind = "io.confluent.ksql.rest.entity.KsqlErrorMessage"
    assert "statement_error instead of" in (_judged({**case, "expectedError": {**ERROR, "type": kind}}) or "")
