"""Record batches of Arrow, made of columns."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from pyspark.sql.types import StructType, TimestampType

from headrace.errors import MissingDependencyError

if TYPE_CHECKING:
    import pyarrow


def require_pyarrow() -> None:
    """Raises if pyarrow is not there."""
    try:
        import pyarrow  # noqa: F401  # only looked for
    except ImportError as error:
        message = "data frames of topics and tables need pyarrow; install it: pip install 'headrace[dataframes]'"
        raise MissingDependencyError(message) from error


class BatchMaker:
    """Makes record batches of a schema."""

    def __init__(self, schema: StructType) -> None:
        from pyspark.sql.pandas.types import to_arrow_schema

        self._times = {each.name for each in schema.fields if isinstance(each.dataType, TimestampType)}
        self._schema = to_arrow_schema(schema, timezone="UTC")
        self.names = schema.fieldNames()

    # Any: what the column's type holds.
    def make(self, columns: Mapping[str, Sequence[Any]]) -> pyarrow.RecordBatch:
        """Returns a batch; timestamps are in milliseconds, everything else is as Arrow takes it."""
        import pyarrow

        arrays = []
        for name, field in zip(self.names, self._schema, strict=True):
            if name in self._times:
                numbers = pyarrow.array(columns[name], pyarrow.int64())
                arrays.append(numbers.cast(pyarrow.timestamp("ms", tz="UTC")).cast(field.type))
            else:
                arrays.append(pyarrow.array(columns[name], field.type))
        return pyarrow.RecordBatch.from_arrays(arrays, schema=self._schema)
