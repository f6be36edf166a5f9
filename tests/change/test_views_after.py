"""Views of stores that a change has renamed or rewritten."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from headrace import Materialized, Migration, Serdes, StreamsBuilder
from headrace.change.topology_change import apply_evolution, plan_evolution
from headrace.change.verdicts import Options
from headrace.topics.journal import DurableLog
from headrace.views import QueryableStoreTypes, StoreQueryParameters
from headrace.views.views import Views
from tests.change.cases import add, stream, zero
from tests.change.kit import Program, write


def before(builder: StreamsBuilder) -> None:
    grouped = stream(builder).group_by_key()
    grouped.count(materialized=Materialized("counts"))
    grouped.aggregate(zero, add, materialized=Materialized("sums", value_serde=Serdes.long()))


def after(builder: StreamsBuilder) -> None:
    grouped = stream(builder).group_by_key()
    grouped.count(materialized=Materialized("totals"))
    option = Materialized[Any, Any]("sums", value_serde=Serdes.json(), migrate=Migration(Serdes.long()))
    grouped.aggregate(zero, add, materialized=option)


def rows(program: Program, directory: Path, *stores: str) -> list[dict[str, Any]]:
    """Returns what a view has of stores; its files stay for the next one."""
    views = Views(program.topology, program.config, program.log, directory)
    try:
        views.catch_up()
        faces = [
            views.store(StoreQueryParameters.from_name_and_type(store, QueryableStoreTypes.key_value_store()))
            for store in stores
        ]
        return [{row.key: row.value for row in face.all()} for face in faces]
    finally:
        views.close()


def test_a_view_has_the_rows_under_the_new_name_and_in_the_new_serde(log: DurableLog, tmp_path: Path) -> None:
    log.create_topic("in", partitions=2)
    old, new = Program(log, tmp_path, before), Program(log, tmp_path, after)
    write(log, "in", [("a", 1, 0), ("b", 2, 1), ("a", 3, 2)])
    old.run()
    assert rows(old, tmp_path / "views", "counts", "sums") == [{"a": 2, "b": 1}, {"a": 4, "b": 2}]
    apply_evolution(plan_evolution(new.topology, new.config, log, Options({"counts": "totals"})), log)
    # Before anything runs, and in the files of the former view.
    assert rows(new, tmp_path / "views", "totals", "sums") == [{"a": 2, "b": 1}, {"a": 4, "b": 2}]
    write(log, "in", [("a", 4, 3)])
    new.run()
    assert rows(new, tmp_path / "views", "totals", "sums") == [{"a": 3, "b": 1}, {"a": 8, "b": 2}]
    assert rows(new, tmp_path / "fresh", "totals", "sums") == [{"a": 3, "b": 1}, {"a": 8, "b": 2}]
