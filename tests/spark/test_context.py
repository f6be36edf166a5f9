"""Settings of Spark come from the configuration, and a context says nothing that the application does not say."""

import os
import socket
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from headrace.config import StreamsConfig
from headrace.errors import ConfigError
from headrace.spark.context import attempts, check_master, slots, spark_settings, worker_path
from headrace.spark.masters import is_on_this_machine, usable_cores


def config(**settings: object) -> StreamsConfig:
    dotted = {name.replace("_", "."): value for name, value in settings.items()}
    return StreamsConfig.of({"application.id": "orders"} | dotted)


def settings_of(directory: Path, **settings: object) -> dict[str, str]:
    return spark_settings(config(**settings), directory=directory)


def test_settings_name_the_application_and_its_directory(tmp_path: Path) -> None:
    settings = settings_of(tmp_path)
    assert settings["spark.app.name"] == "orders"
    assert settings["spark.master"] == "local[*,4]"
    assert settings["spark.local.dir"].startswith(str(tmp_path))


def test_nothing_is_set_for_sql(tmp_path: Path) -> None:
    assert not [name for name in settings_of(tmp_path) if name.startswith("spark.sql.")]


@pytest.mark.parametrize(
    ("master", "expected"),
    [("local[2,4]", "true"), ("local-cluster[2,1,1024]", "true"), ("spark://localhost:7077", None), ("yarn", None)],
)
def test_ports_of_local_masters_ask_for_a_secret(tmp_path: Path, master: str, expected: str | None) -> None:
    settings = settings_of(tmp_path, spark_master=master)
    assert settings.get("spark.authenticate") == expected
    # Arguments of a process can be read by everybody.
    assert "spark.authenticate.secret" not in settings
    assert settings_of(tmp_path, spark_authenticate=False)["spark.authenticate"] == "false"


def test_speculation_is_off_whatever_is_set(tmp_path: Path) -> None:
    assert settings_of(tmp_path)["spark.speculation"] == "false"
    assert settings_of(tmp_path, spark_speculation=True)["spark.speculation"] == "false"


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
def test_slots_are_the_cores_but_no_more_than_tasks(master: str, tasks: int, expected: int) -> None:
    assert slots(config(spark_master=master), tasks) == expected


def test_slots_can_be_set() -> None:
    assert slots(config(spark_master="local[2]", spark_default_parallelism=16), 4) == 16
    with pytest.raises(ConfigError, match="at least 1, got 'many'"):
        slots(config(spark_default_parallelism="many"), 4)


@pytest.mark.parametrize(
    ("master", "expected"),
    [("local", 1), ("local[2]", 1), ("local[*,4]", 4), ("local[2, 3]", 3), ("local-cluster[2,1,1024]", 4), ("yarn", 4)],
)
def test_attempts_are_those_of_the_master(master: str, expected: int) -> None:
    assert attempts(config(spark_master=master)) == expected


def test_attempts_can_be_set_for_clusters() -> None:
    assert attempts(config(spark_master="yarn", spark_task_maxFailures=7)) == 7


def test_cores_of_a_cluster_can_be_limited() -> None:
    assert slots(config(spark_master="spark://h:7077", spark_cores_max=4), 12) == 4


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
import logging, signal, sys
from pathlib import Path
from headrace.config import StreamsConfig
from headrace.spark.context import close_context, open_context
from headrace.spark.jobs import Sent, StagedJob

def shout(slot, blobs):
    print("slot", slot)
    yield Sent(1, slot, bytes([slot]))

logging.getLogger("headrace").addHandler(logging.NullHandler())
before = signal.getsignal(signal.SIGINT), list(sys.path)
for name in ("first", "second"):
    config = StreamsConfig.of({"application.id": name, "spark.master": "local[1,4]", "spark.speculation": "true"})
    directory = Path(sys.argv[1]) / name
    context = open_context(config, directory=directory)
    assert open_context(config, directory=directory) is context
    assert context.getConf().get("spark.speculation") == "false"
    assert context.getConf().get("spark.authenticate") == "true"
    close_context(context)
    assert StagedJob(context, [shout], 2).run({}, "a batch") == [bytes([0]), bytes([1])]
    assert context.appName == name
    close_context(context)
    assert context._jsc is None
    assert (directory / "spark.log").exists()
assert (signal.getsignal(signal.SIGINT), list(sys.path)) == before
assert not {"pandas", "pyarrow", "google.protobuf"} & set(sys.modules)
"""


@pytest.mark.spark
def test_context_is_silent_but_for_the_functions_of_the_application(tmp_path: Path) -> None:
    program = tmp_path / "application.py"
    program.write_text(textwrap.dedent(APPLICATION))
    command = [sys.executable, "-W", "error", str(program), str(tmp_path)]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout == ""
    assert sorted(done.stderr.splitlines()) == ["slot 0", "slot 0", "slot 1", "slot 1"]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["application.py", "first", "second"]
