"""Rows of stores and topics as tables: HTML for notebooks, and data frames of pandas."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import fields, is_dataclass
from datetime import UTC, datetime
from html import escape
from typing import Any, NamedTuple

from headrace.errors import MissingDependencyError
from headrace.record import ValueAndTimestamp
from headrace.windows import Windowed

SHOWN_ROWS = 20
"""How many rows a notebook shows of a table."""
_LAST_MS = 253_402_300_799_999
"""The end of the year 9999: frames cannot print later times, such as the end of a window without end."""
_TIMES = ("window_start", "window_end", "timestamp", "record_timestamp")


class Row(NamedTuple):
    """A row of a store or a record of a topic."""

    key: Any
    value: Any
    timestamp_ms: int | None = None


class Tabular:
    """Base of objects that are shown as a table in a notebook, and become data frames."""

    __slots__ = ()

    # Any: pandas is optional.
    def to_pandas(self) -> Any:
        """Returns all rows as a data frame of pandas, which must be installed.

        Its columns are ``key``, ``value`` and, if known, ``timestamp``. Keys and values with fields (dicts,
        dataclasses, structs) have a column for each of them instead. Windowed keys have ``window_start`` and
        ``window_end``. Times are in UTC; one after the year 9999 is missing.
        """
        return to_data_frame(columns_of(self._read_rows(None)))

    def _repr_html_(self) -> str:
        """Shows the first rows in a notebook, and changes nothing."""
        rows = self._peek_rows(SHOWN_ROWS + 1)
        note = f"The first {SHOWN_ROWS} rows." if len(rows) > SHOWN_ROWS else f"{_counted(len(rows))}."
        return to_html(columns_of(rows[:SHOWN_ROWS]), note)

    def _read_rows(self, count: int | None) -> list[Row]:
        """Returns that many rows, or all."""
        raise NotImplementedError

    def _peek_rows(self, count: int) -> list[Row]:
        """Returns rows that can be read again afterwards."""
        return self._read_rows(count)


def columns_of(rows: Sequence[Row]) -> dict[str, list[Any]]:
    """Returns rows as columns, in which keys and values with fields have one for each field.

    >>> columns_of([Row("a", {"amount": 1}), Row("b", None)])
    {'key': ['a', 'b'], 'amount': [1, None]}
    """
    keys = [row.key.key if isinstance(row.key, Windowed) else row.key for row in rows]
    values = [row.value.value if isinstance(row.value, ValueAndTimestamp) else row.value for row in rows]
    columns = _spread("key", keys)
    if any(isinstance(row.key, Windowed) for row in rows):
        windows = [row.key.window if isinstance(row.key, Windowed) else None for row in rows]
        columns["window_start"] = [None if window is None else window.start_ms for window in windows]
        columns["window_end"] = [None if window is None else window.end_ms for window in windows]
    for name, column in _spread("value", values).items():
        columns[f"value.{name}" if name in columns else name] = column
    times = [row.value.timestamp_ms if isinstance(row.value, ValueAndTimestamp) else row.timestamp_ms for row in rows]
    if any(time_ms is not None for time_ms in times):
        # Fields of the user's keep their names.
        columns["record_timestamp" if "timestamp" in columns else "timestamp"] = times
    return columns


def to_html(columns: Mapping[str, Sequence[Any]], note: str = "") -> str:
    """Returns a table of HTML, in which everything is escaped.

    >>> print(to_html({"key": ["<b>"], "timestamp": [0]}))
    <div><table><thead><tr><th>key</th><th>timestamp</th></tr></thead>
    <tbody>
    <tr><td>&lt;b&gt;</td><td>1970-01-01 00:00:00.000</td></tr>
    </tbody></table></div>
    """
    heads = "".join(f"<th>{escape(name)}</th>" for name in columns)
    shown = [[_text(name, value) for value in column] for name, column in columns.items()]
    lines = ["".join(f"<td>{escape(text)}</td>" for text in row) for row in zip(*shown, strict=True)]
    body = "\n".join(f"<tr>{line}</tr>" for line in lines)
    below = f"<small>{escape(note)}</small>" if note else ""
    return f"<div><table><thead><tr>{heads}</tr></thead>\n<tbody>\n{body}\n</tbody></table>{below}</div>"


# Any: pandas is optional.
def to_data_frame(columns: Mapping[str, Sequence[Any]]) -> Any:
    """Returns columns as a data frame."""
    try:
        import pandas  # optional
    except ImportError as error:
        message = "to_pandas() needs pandas, which is missing; run `pip install pandas`"
        raise MissingDependencyError(message) from error
    frame = pandas.DataFrame(dict(columns))
    for name in _TIMES:
        if name in frame and (times := _milliseconds(columns[name])) is not None:
            frame[name] = pandas.to_datetime(pandas.Series(times, dtype="Int64"), unit="ms", utc=True)
    return frame


def _milliseconds(column: Sequence[Any]) -> list[int | None] | None:
    """Returns a column if it has nothing but times: a field of the user's may have the same name."""
    if not all(value is None or type(value) is int for value in column):
        return None
    return [value if value is not None and 0 <= value <= _LAST_MS else None for value in column]


def _spread(name: str, values: Sequence[Any]) -> dict[str, list[Any]]:
    """Returns values as one column, or as one for each of their fields if all have some or are None."""
    found = [_fields_of(value) for value in values]
    names = list(dict.fromkeys(each for row in found if row is not None for each in row))
    if not names or any(row is None and value is not None for row, value in zip(found, values, strict=True)):
        return {name: list(values)}
    return {each: [None if row is None else row.get(each) for row in found] for each in names}


def _fields_of(value: Any) -> Mapping[str, Any] | None:
    if isinstance(value, Mapping):
        return {str(name): each for name, each in value.items()}
    if is_dataclass(value) and not isinstance(value, type):
        return {field.name: getattr(value, field.name) for field in fields(value)}
    # Structs of msgspec and named tuples say so themselves.
    names: Iterable[str] = getattr(value, "__struct_fields__", None) or getattr(value, "_fields", None) or ()
    return {each: getattr(value, each) for each in names} or None


def _text(name: str, value: Any) -> str:
    if value is None:
        return ""
    if name in _TIMES and type(value) is int and 0 <= value <= _LAST_MS:
        return datetime.fromtimestamp(value / 1000, UTC).isoformat(" ", "milliseconds").removesuffix("+00:00")
    return str(value)


def _counted(rows: int) -> str:
    return "1 row" if rows == 1 else f"{rows} rows"
