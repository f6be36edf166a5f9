from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.cli.conftest import Command

ROOT = Path(__file__).parents[2]
EXAMPLES = ROOT / "examples" / "cases"


def test_cases_of_the_examples_pass(headrace: Command) -> None:
    done = headrace("test", EXAMPLES, "--verbose")
    assert "4 cases passed, 0 failed" in done.out
    assert done.out.count("ok  ") == 4


def write(path: Path, *steps: dict[str, Any], **more: Any) -> Path:
    content = {
        "topology": f"{ROOT}/examples/word_count.py:build",
        "cases": [{"name": "first", "steps": list(steps)}],
        **more,
    }
    path.write_text(json.dumps(content))
    return path


BYTES = {"lines": {"value": "bytes"}}
LINE = {"topic": "lines", "value": "to be", "timestamp_ms": 5}
TO, BE = {"topic": "word-counts", "key": "to", "value": 1}, {"topic": "word-counts", "key": "be", "value": 1}


@pytest.mark.parametrize(
    ("output", "message"),
    [
        ([TO, {**BE, "value": 2}], "record 2: value is 1, expected 2; the record is"),
        ([TO, {**BE, "timestamp_ms": 6}], "record 2: timestamp_ms is 5, expected 6"),
        ([TO, BE, TO], "record 3: expected"),
        ([TO], "record 2: expected nothing more, found"),
        ([BE, TO], 'record 1: key is "to", expected "be"'),
    ],
)
def test_the_first_difference_is_told(headrace: Command, tmp_path: Path, output: list[Any], message: str) -> None:
    path = write(tmp_path / "a.json", {"input": [LINE], "output": output})
    done = headrace("test", path, code=1)
    assert f"FAILED  {path}: first" in done.out
    assert f"step 1: topic 'word-counts', {message}" in done.out
    assert headrace("test", path, "--json", code=1).json[0]["failure"].startswith("step 1")


def test_an_error_of_the_topology_is_a_failure(headrace: Command, tmp_path: Path) -> None:
    path = write(tmp_path / "a.json", {"input": [{"topic": "lnes", "value": "x"}]})
    assert "lines" in headrace("test", path, code=1).out
    path = write(tmp_path / "a.json", {"input": [{"topic": "lines", "value": 5}]})
    assert "it must be str, found int 5" in headrace("test", path, code=1).out


def test_formats_may_be_said(headrace: Command, tmp_path: Path) -> None:
    path = write(tmp_path / "a.json", {"input": [{**LINE, "value": "dG8="}], "output": [TO]}, topics=BYTES)
    headrace("test", path)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("{", "is no JSON"),
        ('{"topology": "x"}', "'cases' is missing"),
        ('{"topology": 5, "cases": []}', "topology must be a text; found 5"),
        ('{"topology": "x", "cases": [{"name": "a", "stepps": []}]}', "did you mean 'steps'?"),
        ('{"topology": "x", "cases": [{"name": "a", "steps": [{"ouput": []}]}]}', "did you mean 'output'?"),
        ('{"topology": "x", "cases": [{"name": "a", "steps": [{"input": [{}]}]}]}', "'topic' is missing"),
    ],
)
def test_a_wrong_file_is_explained(headrace: Command, tmp_path: Path, content: str, message: str) -> None:
    path = tmp_path / "a.json"
    path.write_text(content)
    assert message in headrace("test", path, code=1).err


def test_wrong_usage(headrace: Command, tmp_path: Path) -> None:
    headrace("test", code=2)
    headrace("test", tmp_path / "missing.json", code=2)
    (tmp_path / "other.json").write_text("{}")
    assert "there are no cases in" in headrace("test", tmp_path, code=1).err


@pytest.mark.spark
def test_cases_on_spark(headrace: Command, tmp_path: Path) -> None:
    passes = {"name": "passes", "steps": [{"input": [LINE], "output": [TO, BE]}, {"advance_ms": 5}]}
    differs = {"name": "differs", "steps": [{"input": [LINE]}, {"input": [LINE], "output": [TO, BE]}]}
    unknown = {"name": "unknown", "steps": [{"input": [{"topic": "lnes", "value": "x"}]}]}
    path = write(tmp_path / "text.json", cases=[passes, differs, unknown])
    outcomes = headrace("test", path, EXAMPLES, "--engine", "spark", "--json", code=1).json
    failures = {each["case"]: each["failure"] for each in outcomes}
    assert failures.pop("differs").startswith("step 1: topic 'word-counts', record 1: expected nothing more, found")
    assert failures.pop("unknown").startswith("step 1: CaseError: the topology does not read the topic 'lnes'")
    assert set(failures.values()) == {None}
    assert len(failures) == 5


@pytest.mark.spark
def test_a_case_that_throws_on_spark(headrace: Command, tmp_path: Path) -> None:
    to, no_text = ({**LINE, "value": value} for value in ("dG8=", "/w=="))
    path = write(tmp_path / "a.json", {"input": [to], "output": [TO]}, {"input": [no_text]}, topics=BYTES)
    assert "step 2: DeserializationError: " in headrace("test", path, "--engine", "spark", code=1).out
