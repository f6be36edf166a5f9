"""``headrace sql migrations``: files of statements that are carried out once, in order."""

from __future__ import annotations

from pathlib import Path

import pytest

from headrace.cli.sql.embedded import ServerConnection
from tests.cli.conftest import Command, Done


@pytest.fixture
def migrations(headrace: Command, server: ServerConnection, tmp_path: Path) -> Command:
    def run(name: str, *args: object, code: int = 0) -> Done:
        to_server = () if name == "create" else ("--server", server.address, "--token", server.token)
        return headrace("sql", "migrations", name, *args, "--directory", tmp_path / "m", *to_server, code=code)

    return run


def create(migrations: Command, words: str, text: str) -> Path:
    path = Path(migrations("create", words).out.strip())
    path.write_text(text, encoding="utf-8")
    return path


def test_migrations_are_carried_out_once(migrations: Command) -> None:
    stream = "WITH (KAFKA_TOPIC='${topic}', PARTITIONS=1, VALUE_FORMAT='JSON');"
    first = create(migrations, "the first one", f"CREATE STREAM a (k INT KEY, v STRING) {stream}")
    assert first.name == "V000001__the_first_one.sql"
    bad = create(migrations, "a bad one!", "CREATE STREAM b AS SELECT * FROM a; CREATE STREAM c AS SELECT * FROM no;")
    assert [row["state"] for row in migrations("info", "--json").json] == ["PENDING", "PENDING"]
    assert migrations("apply", "--dry-run").err.splitlines() == ["1: the first one", "2: a bad one"]
    failed = migrations("apply", "--define", "topic=t", code=1)
    assert failed.out == "Stream created\n"
    assert "V000002__a_bad_one.sql': NO does not exist" in failed.err
    found = migrations("info", "--json").json
    assert [row["state"] for row in found] == ["MIGRATED", "ERROR"]
    assert "NO does not exist" in found[1]["problem"]
    # Nothing of the file was carried out, so it can be mended.
    bad.write_text("CREATE STREAM b AS SELECT * FROM a;", encoding="utf-8")
    assert migrations("apply").err.splitlines() == ["2: a bad one"]
    assert migrations("apply").err == "there is nothing to do\n"
    assert migrations("validate").out == "2 migrations carried out, all as their files say\n"

    text = first.read_text(encoding="utf-8")
    first.write_text(text + " ", encoding="utf-8")
    assert "was changed after it was carried out" in migrations("validate", code=1).err
    first.unlink()
    assert "its file is gone" in migrations("apply", code=1).err


def test_a_file_that_comes_too_late_and_names_that_are_wrong(migrations: Command, tmp_path: Path) -> None:
    assert "there is no directory" in migrations("info", code=1).err
    create(migrations, "x", "")
    assert "cannot be made" in migrations("create", "y", "--version", 1, code=1).err
    assert "no word" in migrations("create", "!", code=1).err
    (tmp_path / "m" / "V000001__other.sql").write_text("", encoding="utf-8")
    assert "have the same version" in migrations("info", code=1).err
    (tmp_path / "m" / "V000001__other.sql").rename(tmp_path / "m" / "other.sql")
    assert "name it as V000001__some_words.sql" in migrations("info", code=1).err
