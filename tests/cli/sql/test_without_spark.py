"""``headrace[sql]`` at the prompt: what belongs to Spark is not installed, and not missed until Spark is asked for."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

ABSENT = ("pyspark", "py4j", "pandas", "pyarrow", "google", "confluent_kafka")
"""A package that is None among the modules cannot be imported, as if it were not installed."""

SCRIPT = f"""
import sys
sys.modules.update(dict.fromkeys({ABSENT}))
from headrace.cli import main
main(sys.argv[1:], prog_name="headrace")
"""

STATEMENTS = """
CREATE STREAM orders (id INT KEY, customer STRING, price INT)
  WITH (KAFKA_TOPIC='orders', PARTITIONS=2, VALUE_FORMAT='JSON');
CREATE TABLE spent AS SELECT customer, COUNT(*) AS n, SUM(price) AS total FROM orders GROUP BY customer;
INSERT INTO orders VALUES (1, 'ada', 5);
INSERT INTO orders VALUES (2, 'eve', 3);
INSERT INTO orders VALUES (3, 'ada', 2);
"""


def run(directory: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "HEADRACE_STATE_DIR": str(directory)}
    return subprocess.run(
        [sys.executable, "-c", SCRIPT, "sql", *arguments],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
        cwd=Path(__file__).parents[3],
    )


def test_queries_run_in_the_process_of_the_prompt(tmp_path: Path) -> None:
    done = run(tmp_path, "-e", STATEMENTS, "-e", "SELECT * FROM spent ORDER BY customer;")
    assert (done.returncode, done.stderr) == (0, "")
    assert [line.split() for line in done.stdout.splitlines()[-3:]] == [
        ["CUSTOMER", "N", "TOTAL"],
        ["ada", "2", "7"],
        ["eve", "1", "3"],
    ]


def test_spark_that_is_asked_for_is_named_with_what_installs_it(tmp_path: Path) -> None:
    done = run(tmp_path, "--engine", "spark", "-e", STATEMENTS)
    assert done.returncode == 1
    assert "Traceback" not in done.stderr
    found = re.search(r"needs Apache Spark, and the package '(\w+)' is not installed; run `([^`]+)`", done.stderr)
    assert found is not None, done.stderr
    assert found[1] in ABSENT
    assert found[2] == "pip install 'headrace[spark]'"
