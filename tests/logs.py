"""The logs that a test runs on: embedded; Kafka too, or only that, if the test says so."""

import pytest


def run_on_logs(metafunc: pytest.Metafunc, fixture: str) -> None:
    """Lets tests that take a fixture run on each log; marks and ``--log`` choose."""
    if fixture in metafunc.fixturenames:
        marked = [name for name in ("both_logs", "kafka") if metafunc.definition.get_closest_marker(name)]
        usual = {"both_logs": ["embedded", "kafka"], "kafka": ["kafka"]}[marked[0]] if marked else ["embedded"]
        names = usual if "kafka" in marked else metafunc.config.getoption("--log") or usual
        logs = {"embedded": pytest.param("embedded"), "kafka": pytest.param("kafka", marks=pytest.mark.kafka)}
        metafunc.parametrize(fixture, [logs[name] for name in names], indirect=True)
