"""``headrace sql test``: cases of statements from files."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.cli.conftest import Command

SCRIPT = """
CREATE STREAM orders (id INT KEY, item STRING, price DECIMAL(6, 2)) WITH (KAFKA_TOPIC='orders', VALUE_FORMAT='JSON');
CREATE STREAM dear AS SELECT id, price FROM orders WHERE price > 10;
CREATE TABLE spent AS SELECT item, SUM(price) AS total FROM orders WINDOW TUMBLING (SIZE 10 SECONDS) GROUP BY item;
CREATE TABLE people (id INT PRIMARY KEY, name STRING) WITH (KAFKA_TOPIC='people', VALUE_FORMAT='JSON');
CREATE TABLE shouted AS SELECT id, UCASE(name) AS name FROM people;
"""
DEAR: dict[str, Any] = {
    "name": "only dear orders",
    "input": [
        {"source": "ORDERS", "row": {"ID": 1, "ITEM": "tea", "PRICE": 12.5}, "timestamp_ms": 5},
        {"source": "orders", "row": {"id": 2, "price": 1}},
    ],
    "output": [{"source": "DEAR", "row": {"ID": 1, "PRICE": 12.50}, "timestamp_ms": 5}],
}


@pytest.fixture
def file(tmp_path: Path) -> Path:
    (tmp_path / "orders.sql").write_text(SCRIPT, encoding="utf-8")
    return tmp_path / "cases.json"


def write(file: Path, *cases: dict[str, Any], **more: Any) -> Path:
    file.write_text(json.dumps({"script": "orders.sql", "cases": list(cases), **more}), encoding="utf-8")
    return file


def test_cases_that_pass(headrace: Command, file: Path) -> None:
    windows = {
        "name": "windows and steps",
        "steps": [
            {
                "input": [{"source": "ORDERS", "row": {"ID": 1, "ITEM": "tea", "PRICE": 1}, "timestamp_ms": 3}],
                "output": [{"source": "SPENT", "row": {"ITEM": "tea", "TOTAL": 1}, "window": [0, 10000]}],
            },
            {
                "input": [{"source": "ORDERS", "row": {"ID": 1, "ITEM": "tea", "PRICE": 1}, "timestamp_ms": 10000}],
                "output": [{"source": "SPENT", "row": {"ITEM": "tea", "TOTAL": 1}, "window": [10000, 20000]}],
            },
        ],
    }
    deleted = {
        "name": "a row that is deleted",
        "statements": ["INSERT INTO people VALUES (1, 'ada')"],
        "input": [{"source": "PEOPLE", "row": {"ID": 1}, "deleted": True}],
        "output": [
            {"source": "SHOUTED", "row": {"ID": 1, "NAME": "ADA"}},
            {"source": "SHOUTED", "row": {"ID": 1}, "deleted": True},
        ],
    }
    mistake = {
        "name": "a mistake",
        "statements": "CREATE STREAM x AS SELECT * FROM nowhere;",
        "error": "NOWHERE does not exist",
    }
    write(file, DEAR, windows, deleted, mistake)
    done = headrace("sql", "test", file.parent, "-v")
    assert done.lines == [
        f"ok  {file}: only dear orders",
        f"ok  {file}: windows and steps",
        f"ok  {file}: a row that is deleted",
        f"ok  {file}: a mistake",
        "4 cases passed, 0 failed",
    ]


@pytest.mark.parametrize(
    ("output", "difference"),
    [
        ([{"source": "DEAR", "row": {"ID": 1, "PRICE": 12}}], "DEAR, row 1: PRICE is "),
        ([{"source": "DEAR", "row": {"ID": 1}}], "instead of null"),
        ([{"source": "DEAR", "row": {"ID": 1, "PRICE": 12.5, "X": 1}}], "it has no column X; it has ID, PRICE"),
        ([{"source": "DEAR", "row": {"ID": 1, "PRICE": 12.5}, "timestamp_ms": 6}], "timestamp 5 instead of 6"),
        ([*DEAR["output"], *DEAR["output"]], "DEAR: 1 rows instead of 2"),
        ([{"source": "DEAR", "row": {"ID": 1}, "deleted": True}], "was written instead of deleted"),
        ([{"source": "DAER", "row": {}}], "there is no stream or table DAER"),
    ],
)
def test_the_first_difference_is_told(
    headrace: Command, file: Path, output: list[dict[str, Any]], difference: str
) -> None:
    done = headrace("sql", "test", write(file, {**DEAR, "output": output}), code=1)
    assert difference in done.out
    assert done.lines[-1] == "0 cases passed, 1 failed"


@pytest.mark.parametrize(
    ("case", "message"),
    [
        ({"name": "x", "inputs": []}, "there is no field 'inputs'; did you mean 'input'?"),
        ({"name": "x", "input": [{"source": "A"}]}, "'row' is missing"),
        ({"name": "x", "error": "y"}, "this step has none"),
        ({"name": "x", "steps": [], "input": []}, "it has steps"),
        ({"name": "x", "output": [{"source": "A", "row": {}, "window": [1]}]}, "must be [start, end]"),
        ({"name": 1}, "name must be a text; found 1"),
    ],
)
def test_a_file_that_is_written_wrongly(headrace: Command, file: Path, case: dict[str, Any], message: str) -> None:
    assert message in headrace("sql", "test", write(file, case), code=1).err


def test_an_error_that_does_not_come(headrace: Command, file: Path) -> None:
    case = {"name": "x", "statements": ["DROP STREAM dear;"], "error": "no"}
    assert "no error instead of 'no'" in headrace("sql", "test", write(file, case), code=1).out
