"""Metadata of migrations: a stream in the log that records which ones were applied."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime

from headrace.cli.sql.client import SqlClient
from headrace.cli.sql.migrations.files import Migration

STREAM = "HEADRACE_MIGRATIONS"
_COLUMNS = ("VERSION", "NAME", "STATE", "CHECKSUM", "STARTED", "COMPLETED", "PROBLEM")
_CREATE = f"""
CREATE STREAM IF NOT EXISTS {STREAM} (
  VERSION INTEGER KEY, NAME STRING, STATE STRING, CHECKSUM STRING, STARTED STRING, COMPLETED STRING,
  PROBLEM STRING
) WITH (KAFKA_TOPIC='{STREAM}', PARTITIONS=1, KEY_FORMAT='KAFKA', VALUE_FORMAT='JSON');
"""

RUNNING, MIGRATED, FAILED = "RUNNING", "MIGRATED", "ERROR"


@dataclass(frozen=True)
class Applied:
    """Result of an applied migration."""

    version: int
    name: str
    state: str
    checksum: str
    started: str
    completed: str | None = None
    problem: str | None = None


class Metadata:
    """Reads and writes what became of migrations."""

    def __init__(self, client: SqlClient) -> None:
        self._client = client
        client.execute(_CREATE)

    def applied(self) -> dict[int, Applied]:
        """Returns the migrations that were begun, by version: the last row of each, as the topic has one partition."""
        found: dict[int, Applied] = {}
        with self._client.query(f"SELECT {', '.join(_COLUMNS)} FROM {STREAM};") as answer:
            for pieces in answer.pieces():
                for piece in pieces:
                    if "row" in piece.content:
                        row = Applied(*piece.content["row"]["columns"])
                        found[row.version] = row
        return dict(sorted(found.items()))

    def begin(self, migration: Migration) -> Applied:
        """Notes that a migration is being carried out."""
        row = Applied(migration.version, migration.name, RUNNING, migration.checksum, _now())
        self._write(row)
        return row

    def end(self, begun: Applied, problem: str | None) -> None:
        """Notes what became of it."""
        state = MIGRATED if problem is None else FAILED
        self._write(Applied(begun.version, begun.name, state, begun.checksum, begun.started, _now(), problem))

    def _write(self, row: Applied) -> None:
        texts = (row.name, row.state, row.checksum, row.started, row.completed, row.problem)
        values = ", ".join([str(row.version), *map(_literal, texts)])
        self._client.execute(f"INSERT INTO {STREAM} ({', '.join(_COLUMNS)}) VALUES ({values});")


def _literal(text: str | None) -> str:
    if text is None:
        return "NULL"
    # What looks like a variable stays as it is.
    return "'" + text.replace("'", "''").replace("${", "$${") + "'"


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="milliseconds")
