"""Functions on text that is JSON."""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal
from functools import lru_cache
from typing import Any

from headrace.sql.functions.definitions import CallSite, overload, scalar
from headrace.sql.types import SqlArray, SqlBaseType, SqlMap, SqlStruct, SqlType
from headrace.sql.types.conversions import boolean_text
from headrace.sql.types.java_arithmetic import double_text, plain
from headrace.sql.types.times import date_text, time_text, timestamp_text

CATEGORY = "JSON"
_BLANKS = " \t\r\n"
_write_text = json.JSONEncoder(ensure_ascii=False).encode
_STEP = re.compile(r"\.(?P<name>[^.\[\]]+)|\[(?P<index>-?\d+)\]|\[(?P<quote>['\"])(?P<quoted>.*?)(?P=quote)\]")
_PLAIN_TEXTS: dict[SqlBaseType, Callable[[Any], str]] = {
    SqlBaseType.BOOLEAN: boolean_text,
    SqlBaseType.INTEGER: str,
    SqlBaseType.BIGINT: str,
    SqlBaseType.DOUBLE: double_text,
    SqlBaseType.DECIMAL: plain,
}
_QUOTED_TEXTS: dict[SqlBaseType, Callable[[Any], str]] = {
    SqlBaseType.STRING: str,
    SqlBaseType.DATE: date_text,
    SqlBaseType.TIME: time_text,
    SqlBaseType.TIMESTAMP: timestamp_text,
    SqlBaseType.BYTES: lambda data: base64.b64encode(data).decode(),
}


def _no_constant(name: str) -> Any:
    message = f"JSON has no {name}"
    raise ValueError(message)


# Numbers keep the digits they are written with.
_DECODER = json.JSONDecoder(parse_float=Decimal, parse_constant=_no_constant)


def parsed(text: str) -> Any:
    """Returns the first JSON value of a text; raises ``ValueError`` if there is none.

    What follows it is not looked at, as in ksqlDB; only behind a number there has to be a blank.
    """
    begun = text.lstrip(_BLANKS)
    value, end = _DECODER.raw_decode(begun)
    if begun[end : end + 1] not in ("", *_BLANKS) and not begun.startswith(("{", "[", '"')):
        message = f"Unexpected character '{begun[end]}' behind {begun[:end]}"
        raise ValueError(message)
    return value


def written(value: Any, number: Callable[[Decimal], str] = str) -> str:
    """Returns a value as JSON without blanks, numbers with the digits they were read with."""
    if isinstance(value, dict):
        return "{" + ",".join(f"{_quoted(key)}:{written(one, number)}" for key, one in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ",".join(written(one, number) for one in value) + "]"
    if isinstance(value, str):
        return _quoted(value)
    if value is None:
        return "null"
    if isinstance(value, Decimal):
        return number(value)
    return boolean_text(value) if isinstance(value, bool) else str(value)


def _quoted(text: str) -> str:
    return _write_text(text)


@lru_cache(maxsize=512)
def steps_of(path: str) -> tuple[str | int, ...]:
    """Returns the steps of a path such as ``$.orders[0].id``; raises ``ValueError`` if it is none."""
    steps: list[str | int] = []
    place = 1
    while place < len(path):
        found = _STEP.match(path, place)
        if found is None:
            break
        name = found["name"] or found["quoted"]
        steps.append(int(found["index"]) if name is None else name)
        place = found.end()
    if not path.startswith("$") or place < len(path):
        message = f"Invalid JSON path: {path}"
        raise ValueError(message)
    return tuple(steps)


def extracted(text: str, path: str) -> str | None:
    """Returns the part of a JSON text at a path, NULL if there is none; a null of JSON is the text null."""
    value = parsed(text)
    for step in steps_of(path):
        if isinstance(step, str):
            if not isinstance(value, dict) or step not in value:
                return None
            value = value[step]
        else:
            if not isinstance(value, list) or not 0 <= step < len(value):
                return None
            value = value[step]
    return value if isinstance(value, str) else written(value)


def is_json(text: str | None) -> bool:
    """Whether a text is JSON; NULL is not."""
    try:
        if text is not None:
            parsed(text)
        return text is not None
    except ValueError:
        return False


def array_contains(text: str | None, value: Any) -> bool | None:
    """Whether a JSON array has an item of the same kind and value; NULL if there is no text."""
    if text is None:
        return None
    try:
        array = parsed(text)
    except ValueError:
        return False
    return isinstance(array, list) and any(_same(item, value) for item in array)


def _same(item: Any, value: Any) -> bool:
    if isinstance(item, bool) or isinstance(value, bool):
        return item is value
    if isinstance(value, float):
        return isinstance(item, Decimal) and float(item) == value
    if isinstance(value, int):
        return isinstance(item, int) and item == value
    if isinstance(value, Decimal):
        # As in ksqlDB, which reads numbers with a point as DOUBLE here.
        return False
    return bool(item == value) if item is not None and value is not None else item is value


def array_length(text: str) -> int | None:
    """Returns the number of items of a JSON array, NULL for anything else."""
    array = parsed(text)
    return len(array) if isinstance(array, list) else None


def concatenated(*texts: str | None) -> str | None:
    """Returns JSON values in one: objects as an object, everything else as an array."""
    if not texts or any(text is None for text in texts):
        return None
    values = [parsed(text) for text in texts if text is not None]
    if all(isinstance(value, dict) for value in values):
        result: dict[str, Any] = {}
        for value in values:
            result.update(value)
        return written(result, plain)
    items: list[Any] = []
    for value in values:
        items += value if isinstance(value, list) else [value]
    return written(values[0] if len(values) == 1 else items, plain)


def items(text: str) -> list[str] | None:
    """Returns the items of a JSON array, each as JSON, NULL for anything else."""
    array = parsed(text)
    return [written(item) for item in array] if isinstance(array, list) else None


def keys(text: str) -> list[str] | None:
    """Returns the keys of a JSON object, NULL for anything else."""
    value = parsed(text)
    return list(value) if isinstance(value, dict) else None


def records(text: str) -> dict[str, str] | None:
    """Returns the entries of a JSON object, texts as they are and other values as JSON, NULL for anything else."""
    value = parsed(text)
    if not isinstance(value, dict):
        return None
    return {key: one if isinstance(one, str) else written(one) for key, one in value.items()}


@dataclass(frozen=True, slots=True)
class JsonText:
    """A value of a type as JSON."""

    type: SqlType | None

    def __call__(self, value: Any) -> str:
        return _json(self.type, value)


def _json(sql_type: SqlType | None, value: Any) -> str:
    if value is None or sql_type is None:
        return "null"
    if isinstance(sql_type, SqlArray):
        return "[" + ",".join(_json(sql_type.item, item) for item in value) + "]"
    if isinstance(sql_type, SqlMap):
        entries = (f"{_quoted(str(key))}:{_json(sql_type.value, one)}" for key, one in value.items())
        return "{" + ",".join(entries) + "}"
    if isinstance(sql_type, SqlStruct):
        parts = (f"{_quoted(part.name)}:{_json(part.type, value.get(part.name))}" for part in sql_type.fields)
        return "{" + ",".join(parts) + "}"
    quoted = _QUOTED_TEXTS.get(sql_type.base)
    return _quoted(quoted(value)) if quoted else _PLAIN_TEXTS[sql_type.base](value)


def _json_text(site: CallSite) -> Callable[..., Any]:
    return JsonText(site.types[0])


FUNCTIONS = (
    scalar(
        "extractjsonfield",
        "Returns the part of a JSON text at a path such as $.a[0], NULL if there is none.",
        CATEGORY,
        [("""EXTRACTJSONFIELD('{"a": [7]}', '$.a[0]')""", "'7'")],
        overload("(json STRING, path STRING) STRING", extracted),
    ),
    scalar(
        "is_json_string",
        "Returns whether a text is JSON.",
        CATEGORY,
        [("IS_JSON_STRING('[1]')", "true")],
        overload("(text STRING) BOOLEAN", is_json, strict=False),
    ),
    scalar(
        "json_array_contains",
        "Returns whether a JSON array has an item of the kind and value of the second argument.",
        CATEGORY,
        [("JSON_ARRAY_CONTAINS('[1, 2]', 2)", "true")],
        overload("(array STRING, value T) BOOLEAN", array_contains, strict=False),
    ),
    scalar(
        "json_array_length",
        "Returns the number of items of a JSON array, NULL for anything else.",
        CATEGORY,
        [("JSON_ARRAY_LENGTH('[1, 2]')", "2")],
        overload("(array STRING) INT", array_length),
    ),
    scalar(
        "json_concat",
        "Returns JSON values in one: objects as one object, everything else as one array.",
        CATEGORY,
        [("JSON_CONCAT('[1]', '2')", "'[1,2]'")],
        overload("(texts STRING...) STRING", concatenated, strict=False),
    ),
    scalar(
        "json_items",
        "Returns the items of a JSON array, each as JSON.",
        CATEGORY,
        [("""JSON_ITEMS('[1, "a"]')""", """ARRAY['1', '"a"']""")],
        overload("(array STRING) ARRAY<STRING>", items),
    ),
    scalar(
        "json_keys",
        "Returns the keys of a JSON object.",
        CATEGORY,
        [("""JSON_KEYS('{"a": 1}')""", "ARRAY['a']")],
        overload("(object STRING) ARRAY<STRING>", keys),
    ),
    scalar(
        "json_records",
        "Returns the entries of a JSON object, texts as they are and other values as JSON.",
        CATEGORY,
        [("""JSON_RECORDS('{"a": 1, "b": "x"}')""", "MAP('a' := '1', 'b' := 'x')")],
        overload("(object STRING) MAP<STRING, STRING>", records),
    ),
    scalar(
        "to_json_string",
        "Returns a value of any type as JSON.",
        CATEGORY,
        [("TO_JSON_STRING(ARRAY[1, 2])", "'[1,2]'")],
        overload("(value T) STRING", bind=_json_text, strict=False),
    ),
)
