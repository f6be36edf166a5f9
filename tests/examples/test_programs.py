"""Common rules of all examples: they run as programs, and they name what a later version must find again."""

import importlib
import re
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest

from headrace import StreamsBuilder, StreamsConfig

EXAMPLES = Path(__file__).parents[2] / "examples"
NAMES = sorted(path.stem for path in EXAMPLES.glob("*.py"))


def load(name: str) -> ModuleType:
    return importlib.import_module(f"examples.{name}")


def test_there_are_nine_examples() -> None:
    assert len(NAMES) == 9


@pytest.mark.parametrize("name", NAMES)
def test_example_explains_itself(name: str) -> None:
    assert len((load(name).__doc__ or "").splitlines()) > 2


@pytest.mark.parametrize("name", NAMES)
def test_main_prints_results(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    load(name).main()
    assert capsys.readouterr().out.strip()


def test_example_runs_as_a_program_from_the_project_root() -> None:
    command = [sys.executable, "examples/word_count.py"]
    done = subprocess.run(command, cwd=EXAMPLES.parent, capture_output=True, text=True, check=True)
    assert "'Hello, Kafka Streams' -> hello=1, kafka=2, streams=2" in done.stdout


@pytest.mark.parametrize("name", NAMES)
def test_every_operator_store_and_internal_topic_has_a_name_of_its_own(name: str) -> None:
    config = StreamsConfig(application_id=name, ensure_explicit_internal_resource_naming=True)
    builder = StreamsBuilder()
    load(name).build(builder)
    generated = re.findall(r"\S*-\d{10}\S*", str(builder.build(config).describe()))
    assert generated == []


@pytest.mark.parametrize("name", NAMES)
def test_readme_lists_the_example(name: str) -> None:
    assert f"]({name}.py)" in (EXAMPLES / "README.md").read_text(encoding="utf-8")
