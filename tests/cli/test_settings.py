from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from typing import Any

import click
import pytest

from headrace import Serdes, StreamsConfig
from headrace.cli.settings import read_settings
from headrace.handlers import Response
from headrace.serdes import StringSerde
from headrace.timestamps import ConsumedRecord

WANTED = {"application.id": "orders", "commit.interval.ms": 200, "spark.master": "local[2,4]"}


def skip(_context: Any, _error: Any) -> Response:
    return Response.resume()


def sent_at(record: ConsumedRecord, _partition_time_ms: int) -> int:
    return int(record.value["sent_at"])


class OwnSerde(StringSerde):
    pass


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("a.json", '{"application.id": "orders", "commit.interval.ms": 200, "spark.master": "local[2,4]"}'),
        ("a.toml", 'application.id = "orders"\ncommit.interval.ms = 200\n[spark]\nmaster = "local[2,4]"'),
        ("a.properties", "! old\napplication.id: orders\ncommit.interval.ms=200\nspark.master=local[2,\\\n4]\n\n"),
    ],
)
def test_kinds_of_files(tmp_path: Path, name: str, text: str) -> None:
    path = tmp_path / name
    path.write_text(text)
    assert StreamsConfig.of(read_settings(path, ())) == StreamsConfig.of(WANTED)


def test_the_command_line_goes_before_the_file(tmp_path: Path) -> None:
    path = tmp_path / "a.properties"
    path.write_text("application.id=one\npoll.ms=5\n")
    assert read_settings(path, ("application.id=two", "topic.x=a=b")) == {
        "application.id": "two",
        "poll.ms": "5",
        "topic.x": "a=b",
    }


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("a.json", "{", "cannot be read as json"),
        ("a.json", "[]", "must hold an object"),
        ("a.toml", "=", "cannot be read as toml"),
        ("a.properties", "one\n", "line 1 is no setting"),
        ("a.yaml", "", "must end with .json, .toml or .properties"),
    ],
)
def test_files_that_cannot_be_read(tmp_path: Path, name: str, text: str, message: str) -> None:
    path = tmp_path / name
    path.write_text(text)
    with pytest.raises(click.UsageError, match=message):
        read_settings(path, ())


def test_environment_goes_before_the_file_and_the_command_line_before_both(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "a.properties"
    path.write_text("commit.interval.ms=1\npoll.ms=2\nmax.batch.records=3\n")
    monkeypatch.setenv("HEADRACE_COMMIT_INTERVAL_MS", "10")
    monkeypatch.setenv("HEADRACE_POLL_MS", "20")
    monkeypatch.setenv("HEADRACE_DEFAULT_VALUE_SERDE", "headrace.serdes:LongSerde")
    monkeypatch.setenv("HEADRACE_BROWSER", "/usr/bin/chromium")
    config = StreamsConfig.of(read_settings(path, ("poll=200",)))
    assert (config.commit_interval_ms, config.poll, config.max_batch_records) == (10, timedelta(milliseconds=200), 3)
    assert config.default_value_serde == Serdes.long()


def test_options_of_the_command_are_no_settings_of_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HEADRACE_STATE_DIR", "elsewhere")
    assert read_settings(None, ()) == {}


def test_a_file_names_handlers_serdes_and_extractors_by_module_and_name(tmp_path: Path) -> None:
    path = tmp_path / "a.properties"
    path.write_text(
        f"deserialization.exception.handler={__name__}:skip\n"
        f"default.value.serde = {__name__}:OwnSerde\n"
        f"default.timestamp.extractor: {__name__}:sent_at\n"
    )
    config = StreamsConfig.of(read_settings(path, ()))
    assert config.deserialization_exception_handler is skip
    assert isinstance(config.default_value_serde, OwnSerde)
    assert config.default_timestamp_extractor is sent_at


def test_the_environment_names_a_handler_by_module_and_name(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HEADRACE_DESERIALIZATION_EXCEPTION_HANDLER", f"{__name__}:skip")
    assert StreamsConfig.of(read_settings(None, ())).deserialization_exception_handler is skip
