"""Settings of Spark come from the configuration, and a session says nothing that the application does not say."""

import os
import socket
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from headrace.config import StreamsConfig
from headrace.errors import ConfigError
from headrace.spark.masters import is_on_this_machine, usable_cores
from headrace.spark.session import check_master, shuffle_partitions, spark_settings, worker_path


def config(**settings: object) -> StreamsConfig:
    dotted = {name.replace("_", "."): value for name, value in settings.items()}
    return StreamsConfig.of({"application.id": "orders"} | dotted)


def settings_of(directory: Path, **settings: object) -> dict[str, str]:
    return spark_settings(config(**settings), partitions=3, directory=directory)


def test_settings_name_the_application_and_its_directory(tmp_path: Path) -> None:
    settings = settings_of(tmp_path)
    assert settings["spark.app.name"] == "orders"
    assert settings["spark.master"] == "local[*,4]"
    assert settings["spark.sql.shuffle.partitions"] == "3"
    assert settings["spark.local.dir"].startswith(str(tmp_path))


def test_memory_of_the_stores_is_bounded(tmp_path: Path) -> None:
    settings = settings_of(tmp_path)
    assert settings["spark.sql.streaming.stateStore.rocksdb.boundedMemoryUsage"] == "true"


def test_own_settings_win(tmp_path: Path) -> None:
    settings = settings_of(tmp_path, spark_ui_enabled=True, spark_driver_memory="4g", spark_master="local[2]")
    assert settings["spark.ui.enabled"] == "true"
    assert settings["spark.driver.memory"] == "4g"
    assert settings["spark.master"] == "local[2]"


def test_own_java_options_come_after_ours(tmp_path: Path) -> None:
    settings = settings_of(tmp_path, spark_driver_extraJavaOptions="-Dmine=1", spark_driver_defaultJavaOptions="-Dd=2")
    assert settings["spark.driver.extraJavaOptions"] == "-Dmine=1"
    assert settings["spark.driver.defaultJavaOptions"].endswith(" -Dd=2")
    assert "-Dlog4j2.configurationFile=" in settings["spark.driver.defaultJavaOptions"]


def test_own_collector_replaces_ours(tmp_path: Path) -> None:
    assert "UseSerialGC" in settings_of(tmp_path)["spark.driver.defaultJavaOptions"]
    settings = settings_of(tmp_path, spark_driver_extraJavaOptions="-XX:+UseG1GC")
    assert "UseSerialGC" not in settings["spark.driver.defaultJavaOptions"]
    assert "UseSerialGC" in settings["spark.executor.defaultJavaOptions"]


def test_java_options_survive_spaces_in_the_directory(tmp_path: Path) -> None:
    options = settings_of(tmp_path / "my streams")["spark.driver.defaultJavaOptions"]
    assert f'"-XX:ErrorFile={tmp_path}/my streams/java-crash-%p.log"' in options


@pytest.mark.parametrize(
    ("checkpoint", "local"),
    [
        (None, True),
        ("/data/checkpoint", True),
        ("file:///data", True),
        ("s3a://bucket/a", False),
        ("hdfs://h/a", False),
    ],
)
def test_fast_file_manager_is_for_local_disks(tmp_path: Path, checkpoint: str | None, local: bool) -> None:  # noqa: FBT001
    settings = settings_of(tmp_path, **({} if checkpoint is None else {"checkpoint_dir": checkpoint}))
    assert ("spark.sql.streaming.checkpointFileManagerClass" in settings) is local


@pytest.mark.parametrize(
    ("master", "tasks", "expected"),
    [
        ("local[2,4]", 8, 2),
        ("local[8]", 3, 3),
        ("local", 8, 1),
        ("local-cluster[2,3,1024]", 64, 6),
        ("spark://localhost:7077", 12, 12),
        ("local[*,4]", 1000, usable_cores()),
        ("local[2]", 0, 1),
    ],
)
def test_partitions_are_the_cores_but_no_more_than_tasks(master: str, tasks: int, expected: int) -> None:
    assert shuffle_partitions(config(spark_master=master), tasks) == expected


def test_partitions_can_be_set() -> None:
    assert shuffle_partitions(config(spark_master="local[2]", spark_sql_shuffle_partitions=16), 4) == 16
    with pytest.raises(ConfigError, match="at least 1, got 'many'"):
        shuffle_partitions(config(spark_sql_shuffle_partitions="many"), 4)


def test_cores_of_a_cluster_can_be_limited() -> None:
    assert shuffle_partitions(config(spark_master="spark://h:7077", spark_cores_max=4), 12) == 4


@pytest.mark.parametrize(
    "master",
    ["local", "local[*]", "local[4,2]", "local-cluster[2,1,1024]", "spark://localhost:7077", "spark://127.0.0.1:7077"],
)
def test_embedded_log_takes_masters_on_this_machine(master: str) -> None:
    check_master(config(spark_master=master))
    check_master(config(spark_master=f"spark://{socket.gethostname()}:7077"))


@pytest.mark.parametrize(
    "master", ["yarn", "k8s://https://host:443", "spark://localhost:7077,192.0.2.77:7077", "local[x]"]
)
def test_embedded_log_refuses_other_masters(master: str) -> None:
    with pytest.raises(ConfigError, match=r"embedded log is on this machine only.*use local\[N,4\]"):
        check_master(config(spark_master=master))
    assert not is_on_this_machine(master)


def test_other_masters_are_for_kafka() -> None:
    check_master(config(spark_master="yarn", bootstrap_servers="kafka:9092"))


def test_workers_import_from_where_the_application_does(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "lib").mkdir()
    path = worker_path(["", "lib", str(tmp_path / "lib"), str(tmp_path / "gone"), os.path.dirname(os.__file__)])
    assert path == [str(tmp_path), str(tmp_path / "lib")]


APPLICATION = """
import signal, sys
from pathlib import Path
from headrace.config import StreamsConfig
from headrace.spark.session import close_session, open_session

def shout(rows):
    for row in rows:
        print("row", row.id)
        yield row.id

before = signal.getsignal(signal.SIGINT), list(sys.path)
for name in ("first", "second"):
    config = StreamsConfig.of({"application.id": name, "spark.master": "local[1,4]"})
    directory = Path(sys.argv[1]) / name
    session = open_session(config, partitions=2, directory=directory)
    other = open_session(config, partitions=3, directory=directory)
    assert session.conf.get("spark.sql.shuffle.partitions") == "2"
    assert other.conf.get("spark.sql.shuffle.partitions") == "3"
    close_session(other)
    assert sorted(session.range(2).rdd.mapPartitions(shout).collect()) == [0, 1]
    assert session.sparkContext.appName == name
    close_session(session)
    assert (directory / "spark.log").exists()
assert (signal.getsignal(signal.SIGINT), list(sys.path)) == before
"""


@pytest.mark.spark
def test_session_is_silent_but_for_the_functions_of_the_application(tmp_path: Path) -> None:
    program = tmp_path / "application.py"
    program.write_text(textwrap.dedent(APPLICATION))
    command = [sys.executable, "-W", "error", str(program), str(tmp_path)]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout == ""
    assert sorted(done.stderr.splitlines()) == ["row 0", "row 0", "row 1", "row 1"]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["application.py", "first", "second"]
