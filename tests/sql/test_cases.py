"""Cases as files: statements, records in, and the records that come out or the error."""

from __future__ import annotations

import json
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from headrace.sql.errors import SqlStatementError
from qtt import main
from qtt_cases.case import Case
from qtt_cases.driving import run_on_driver
from qtt_cases.judge import judge
from qtt_cases.packs import run_packs

FOLDER = Path(__file__).parent / "cases"
DEFAULTS: dict[str, Any] = {
    "properties": {},
    "topics": [],
    "inputs": [],
    "outputs": [],
    "post": None,
    "expectedException": None,
    "needsSchemaRegistry": False,
}


def cases() -> list[Case]:
    found: list[Case] = []
    for path in sorted(FOLDER.glob("*.json")):
        for case in json.loads(path.read_text(encoding="utf-8"), parse_float=Decimal):
            found.append({**DEFAULTS, **case, "id": f"{path.stem} - {case['name']}"})
    return found


@pytest.mark.parametrize("case", cases(), ids=lambda case: case["id"])
def test_case(case: Case) -> None:
    assert judge(case, run_on_driver) is None


def test_the_tasks_of_the_engine_on_spark_give_the_same() -> None:
    found = dict(run_packs(cases(), on_spark=False, told=lambda _: None))
    assert {case_id: difference for case_id, difference in found.items() if difference is not None} == {}


def changed(case_id: str, **changes: Any) -> str | None:
    case = next(case for case in cases() if case["id"].endswith(case_id))
    return judge({**case, **changes}, run_on_driver)


@pytest.mark.parametrize(
    ("changes", "difference"),
    [
        ({"key": 2}, "key 1 instead of 2"),
        ({"value": {"M": Decimal("3.5"), "S": 0}}, None),
        ({"value": {"M": 3}}, "value {'M': 3, 'S': 0} instead of {'M': 3}"),
        ({"value": {"M": 4, "S": 0}}, "value {'M': 3, 'S': 0} instead of"),
        ({"timestamp": 8}, "timestamp 7000 instead of 8"),
        ({"window": {"start": 1, "end": 10000, "type": "time"}}, "window {'start': 0"),
        ({"headers": [{"KEY": "h", "VALUE": None}]}, "headers [] instead of"),
    ],
)
def test_every_part_of_a_record_is_compared(changes: dict[str, Any], difference: str | None) -> None:
    name = "hopping windows emit a row for each window, the oldest first"
    case = next(case for case in cases() if case["id"].endswith(name))
    first, second = case["outputs"]
    found = changed(name, outputs=[{**first, **changes}, second])
    assert found is None if difference is None else difference in (found or "")


def test_a_number_with_a_fraction_is_compared_with_its_scale() -> None:
    name = "null row that passes only without a filter"
    case = next(case for case in cases() if case["id"].endswith(name))
    for twice in (Decimal("25"), Decimal("25.0")):
        first = {**case["outputs"][0], "value": {"NAME": "TEA", "TWICE": twice}}
        assert "instead of" in (changed(name, outputs=[first, *case["outputs"][1:]]) or "")


def test_missing_and_superfluous_records_are_differences() -> None:
    name = "a query reads what another one wrote"
    case = next(case for case in cases() if case["id"].endswith(name))
    first, second = case["outputs"]
    assert "1 records instead of 2" in (changed(name, outputs=[first, first, second]) or "")
    assert "1 records instead of 0; first superfluous" in (changed(name, outputs=[]) or "")


def test_the_catalogue_is_compared() -> None:
    name = "partitioning by an expression writes the new key without a repartition topic"
    wrong = {"name": "B", "type": "stream", "schema": "N BIGINT KEY, K STRING"}
    assert "schema" in (changed(name, post={"sources": [wrong]}) or "")
    assert "is a STREAM" in (changed(name, post={"sources": [{"name": "B", "type": "table"}]}) or "")


def test_an_error_must_be_of_the_class_and_say_the_words() -> None:
    name = "topics of different sizes cannot be joined"
    wrong = {"type": "ParseFailedException", "message": "3"}
    assert "is no ParseFailedException" in (changed(name, expectedException=wrong) or "")
    other = {"type": "KsqlException", "message": "other words"}
    assert "other words" in (changed(name, expectedException=other) or "")
    assert "no error" in (changed("a query reads what another one wrote", expectedException=other) or "")
    with pytest.raises(SqlStatementError):
        changed(name, expectedException=None)


def test_the_command_lists_what_failed_and_counts(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    good = next(case for case in cases() if case["id"] == "tables - a group with a null in its key is dropped")
    bad = {**good, "id": "a case that expects too much", "outputs": [{"topic": "N", "key": "x", "value": {"N": 1}}]}
    file = tmp_path / "cases.jsonl"
    file.write_text("".join(json.dumps({**case, "needsTestUdf": False}) + "\n" for case in (good, bad)))
    assert main([str(file), "--no-registry"]) == 1
    assert capsys.readouterr().out.splitlines() == [
        "a case that expects too much: topic 'N': 0 records instead of 1",
        "1 passed, 1 failed",
    ]
    assert main([str(file), "--only", "^tables"]) == 0
    assert capsys.readouterr().out == "1 passed, 0 failed\n"
    assert main([str(file), "--sample", "1"]) == 0
    assert capsys.readouterr().out == "1 passed, 0 failed\n"
