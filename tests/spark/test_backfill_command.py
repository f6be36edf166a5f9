"""The command backfill."""

from __future__ import annotations

from pathlib import Path

import pytest

from headrace import EmbeddedLog
from tests.cli.conftest import Command, headrace, state_dir

__all__ = ["headrace", "state_dir"]
pytestmark = pytest.mark.spark


PROGRAM = """
from headrace import Consumed, Produced, Serdes

def build(builder):
    texts = Consumed(key_serde=Serdes.string(), value_serde=Serdes.string())
    counts = builder.stream("orders", texts).group_by_key().count()
    counts.to_stream().to("counts", Produced(key_serde=Serdes.string(), value_serde=Serdes.long()))
"""

JOINED = """
from headrace import Consumed, Serdes

def build(builder):
    texts = Consumed(key_serde=Serdes.string(), value_serde=Serdes.string())
    builder.stream("orders", texts).left_join(builder.table("users", texts), lambda order, user: order).to("out")
"""


def test_topic_without_files_is_named(spark_context: None, headrace: Command, state_dir: Path, tmp_path: Path) -> None:
    program, history = tmp_path / "joined.py", tmp_path / "history.csv"
    program.write_text(JOINED, encoding="utf-8")
    history.write_text("key,value,timestamp\nann,tea,2\n", encoding="utf-8")
    files = ("--input", f"orders={history}", "--format", "csv", "--option", "header=true", "--option")
    command = ("backfill", f"{program}:build", *files, "inferSchema=true", "--output", tmp_path / "results")
    assert "or --without-history users" in headrace(*command, code=1).err
    twice = headrace(*command, "--without-history", "orders", code=2)
    assert "'orders' has an --input, and is said to be without history" in twice.err
    assert "--seed needs --cut, which says where" in headrace(*command, "--seed", code=2).err
    assert "give --seed, too" in headrace(*command, "--cut", "2026-01-01T00:00:00Z", code=2).err
    assert "out: 1 record" in headrace(*command, "--without-history", "users").err


def test_command_reads_files_and_writes_a_folder_and_topics(
    spark_context: None, headrace: Command, state_dir: Path, tmp_path: Path
) -> None:
    program, history = tmp_path / "shop.py", tmp_path / "history.csv"
    program.write_text(PROGRAM, encoding="utf-8")
    history.write_text("user,item,at\nann,tea,2\nbob,tea,3\nann,milk,1\n", encoding="utf-8")
    columns = ("--key", "user", "--value", "orders=item", "--timestamp", "at", "--set", "statestore.cache.max.bytes=0")
    files = (
        "--input",
        f"orders={history}",
        "--format",
        "csv",
        "--option",
        "header=true",
        "--option",
        "inferSchema=true",
    )
    target = f"{program}:build"
    assert "name a folder with --output" in headrace("backfill", target, *files, code=2).err
    wrong = headrace("backfill", target, *files, "--key", "users=user", "--to-topics", code=2)
    assert "--key names 'users', for which there is no --input" in wrong.err
    done = headrace(
        *("backfill", target, *files, *columns, "--to-topics"),
        *("--output", tmp_path / "results", "--output-format", "json"),
    )
    assert "counts: 3 records" in done.err
    lines = [
        line for part in (tmp_path / "results" / "counts").glob("part-*") for line in part.read_text().splitlines()
    ]
    assert sorted(line[: line.index(',"timestamp')] for line in lines) == [
        '{"key":"ann","value":1',
        '{"key":"ann","value":2',
        '{"key":"bob","value":1',
    ]
    with EmbeddedLog(state_dir / "log") as log:
        found = [(key, value[-1] if value else None) for _, _, key, value, _ in log.read("counts", 0, 0)]
    assert sorted(found) == [(b"ann", 1), (b"ann", 2), (b"bob", 1)]
