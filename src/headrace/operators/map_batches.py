"""Batches of records for functions that work on many at once; ``runtime.stages`` has the order of what is around."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from headrace.arguments.signatures import describe_function
from headrace.errors import StreamsError, describe_value
from headrace.operators.base import BatchRecord, Edge, Node, operator
from headrace.topology.operations import MapBatches


@operator.register
def _map_batches(operation: MapBatches, node: Node) -> Edge:
    mapper = operation.mapper
    prepare = (lambda records: records) if operation.schema is None else _table_maker(operation.schema, node.name)

    def answer(records: list[BatchRecord]) -> Sequence[Any]:
        given = prepare(records)
        return _values(mapper(given), len(records), mapper)

    return node.in_batches(answer, operation.max_records)


def _values(result: Any, count: int, mapper: Any) -> Sequence[Any]:
    """Returns the values of a result, if they are as many as there were records."""
    # Arrays of numpy and columns of pandas, then those of pyarrow: their own values are no values for serdes.
    for method in ("tolist", "to_pylist"):
        if hasattr(type(result), method):
            result = getattr(result, method)()
    if isinstance(result, str | bytes | Mapping) or not isinstance(result, Iterable):
        message = (
            f"the function of map_batches must return a list with a value for each of its {count} records; "
            f"{describe_function(mapper)} returned {describe_value(result)}"
        )
        raise StreamsError(message)
    values = list(result)
    if len(values) != count:
        message = (
            f"the function of map_batches must return as many values as it gets records; "
            f"{describe_function(mapper)} got {count} and returned {len(values)}; "
            "use None for a record without a result, and filter afterwards"
        )
        raise StreamsError(message)
    return values


def _table_maker(schema: Any, node: str) -> Callable[[list[BatchRecord]], Any]:
    """Returns what makes a pyarrow table of the values of records; Any: pyarrow is optional."""
    from pyarrow import Table  # a schema was given, so it is there

    names: list[str] = schema.names

    def make_table(records: list[BatchRecord]) -> Any:
        values = [record.value for record in records]
        try:
            columns = {name: [_read(value, name) for value in values] for name in names}
            return Table.from_pydict(columns, schema=schema)
        except Exception as error:
            message = (
                f"node '{node}': the values of {len(values)} records cannot be made a table of the columns "
                f"{', '.join(f'{field.name} ({field.type})' for field in schema)}: {error}; "
                "correct the schema, or convert the values with map_values first"
            )
            raise StreamsError(message) from error

    return make_table


def _read(value: Any, name: str) -> Any:
    """Returns a field of a value: of a dict, or of an object; a record without a value has none."""
    if value is None:
        return None
    return value.get(name) if isinstance(value, Mapping) else getattr(value, name)
