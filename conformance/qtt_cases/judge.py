"""Judges a case: the error it expects, the records it expects, and what it says about the catalogue."""

from __future__ import annotations

import base64
import re
from dataclasses import dataclass
from typing import Any

from headrace.errors import ProductionError, StreamsError
from headrace.sql.catalog import SourceDefinition
from headrace.sql.errors import SqlError, SqlParseError, SqlStatementError
from headrace.sql.formats import format_named
from headrace.sql.syntax.parser import parse_statement
from headrace.sql.syntax.statements import CreateSource
from headrace.sql.syntax.type_grammar import resolve_type
from headrace.sql.types.schema import Column, Namespace, Schema
from headrace.topics.log import Output
from qtt_cases.case import Case
from qtt_cases.compare import same_json, same_value
from qtt_cases.driving import Run, RunQuery, drive, prepare
from qtt_cases.wire import Wire

_ERRORS: dict[str, type[Exception]] = {
    "ParseFailedException": SqlParseError,
    "KsqlStatementException": SqlStatementError,
    "KsqlException": SqlError,
    "StreamsException": StreamsError,
}


@dataclass(frozen=True)
class Judged:
    """A case that is decided before anything runs."""

    difference: str | None


def judge(case: Case, run_query: RunQuery) -> str | None:
    """Returns the first difference between a case and what happened; None if there is none."""
    outcome = judge_statements(case)
    if isinstance(outcome, Judged):
        return outcome.difference
    expected = case["expectedException"]
    try:
        drive(case, outcome, run_query)
    except StreamsError as error:
        if expected is None:
            raise
        return judge_error(expected, error)
    return judge_run(case, outcome)


def judge_statements(case: Case) -> Run | Judged:
    """Carries out the statements; returns what is to run, or the judgement if they were to fail."""
    expected = case["expectedException"]
    try:
        run = prepare(case)
    except StreamsError as error:
        if expected is None:
            raise
        return Judged(judge_error(expected, error))
    if expected is not None and not expected["type"].endswith("StreamsException"):
        return Judged(f"no error; expected {expected['type'].rpartition('.')[2]}: {expected.get('message')}")
    return run


def judge_run(case: Case, run: Run) -> str | None:
    """Compares what the queries wrote, and the catalogue, with what the case expects."""
    expected = case["expectedException"]
    if expected is not None:
        return f"no error at run time; expected {expected.get('message')}"
    return _compare_records(case, run) or _compare_post(case, run)


def judge_error(expected: dict[str, Any], error: StreamsError) -> str | None:
    """Compares an error with the expected one: its class, and that the message contains the expected one."""
    name = expected["type"].rpartition(".")[2]
    shown = f"{type(error).__name__}: {error}"
    if not isinstance(error, _ERRORS[name]):
        return f"{shown!r} is no {name}; expected {expected.get('message')!r}"
    if name == "StreamsException":
        return _compare_cause(expected, error)
    text = str(error)
    if isinstance(error, SqlError) and error.statement is not None:
        text += f"\nStatement: {error.statement}"
    if expected.get("message", "") not in text:
        return f"message {text!r}; expected {expected['message']!r}"
    return None


def _compare_cause(expected: dict[str, Any], error: BaseException) -> str | None:
    """At run time the outer message is the engine's own; what went wrong is in the cause."""
    wanted = expected.get("causeMessage")
    if wanted is None:
        return None
    if wanted == "Unable to serialize record" and isinstance(error, ProductionError):
        return None
    current: BaseException | None = error
    while current is not None:
        if wanted in str(current):
            return None
        current = current.__cause__ or current.__context__
    return f"{error!r}; expected a cause {wanted!r}"


def _compare_records(case: Case, run: Run) -> str | None:
    exact = str(case["properties"].get("use.exact.numeric.comparison", "true")).lower() != "false"
    expected: dict[str, list[dict[str, Any]]] = {}
    for record in case["outputs"]:
        expected.setdefault(record["topic"], []).append(record)
    if not case["outputs"]:
        # Upstream nothing is checked then; here the sinks have to be empty.
        expected = {query.sink_topic: [] for query in run.queries}
    for topic, records in expected.items():
        actual = run.produced.get(topic, [])
        wire = run.wire(topic)
        if wire is None:
            return f"topic '{topic}': no source writes it"
        for number, (wanted, found) in enumerate(zip(records, actual, strict=False)):
            difference = _compare_record(wanted, found, wire, exact=exact)
            if difference is not None:
                return f"topic '{topic}', record {number}: {difference}"
        if len(records) != len(actual):
            more = actual[len(records)] if len(actual) > len(records) else None
            shown = "" if more is None else f"; first superfluous: {_shown(more, wire)}"
            return f"topic '{topic}': {len(actual)} records instead of {len(records)}{shown}"
    return None


def _shown(output: Output, wire: Wire) -> str:
    key, window = wire.split_key(output[2])
    return f"{wire.read_key(key)!r} {window or ''} {wire.read_value(output[3])!r} @{output[1]}"


def _compare_record(wanted: dict[str, Any], found: Output, wire: Wire, *, exact: bool) -> str | None:
    _, timestamp_ms, key_bytes, value_bytes, headers = found
    key_bytes, window = wire.split_key(key_bytes)
    key, value = wire.read_key(key_bytes), wire.read_value(value_bytes)
    source = wire.source
    if not _same(wanted.get("key"), key, source.key_format, exact=exact):
        return f"key {key!r} instead of {wanted.get('key')!r}"
    if not _same(wanted.get("value"), value, source.value_format, exact=exact):
        return f"value {value!r} instead of {wanted.get('value')!r} (key {key!r})"
    if wanted.get("timestamp") is not None and int(wanted["timestamp"]) != timestamp_ms:
        return f"timestamp {timestamp_ms} instead of {wanted['timestamp']} (value {value!r})"
    if _window(wanted.get("window")) != _window(window):
        return f"window {window} instead of {wanted.get('window')} (value {value!r})"
    expected_headers = [(header["KEY"], header["VALUE"]) for header in wanted.get("headers") or ()]
    actual_headers = [(name, None if data is None else base64.b64encode(data).decode()) for name, data in headers]
    if expected_headers != actual_headers:
        return f"headers {actual_headers} instead of {expected_headers}"
    return None


def _same(expected: Any, actual: Any, format: str, *, exact: bool) -> bool:
    if format == "JSON":
        return same_json(expected, actual, exact=exact)
    return same_value(expected, actual)


def _window(window: dict[str, Any] | None) -> tuple[int, int, str] | None:
    if window is None:
        return None
    return int(window["start"]), int(window["end"]), str(window["type"]).lower()


def _compare_post(case: Case, run: Run) -> str | None:
    post = case["post"] or {}
    for wanted in post.get("sources", ()):
        found = run.engine.catalog.find(wanted["name"])
        if found is None:
            return f"post: there is no source {wanted['name']}"
        difference = _compare_source(wanted, found, run)
        if difference is not None:
            return f"post: {wanted['name']}: {difference}"
    topics = post.get("topics") or {}
    for wanted in topics.get("topics", ()):
        found = next((source for source in run.sources if source.topic == wanted["name"]), None)
        if found is not None:
            difference = _compare_topic(wanted, found, run)
            if difference is not None:
                return f"post: topic {wanted['name']}: {difference}"
    pattern = topics.get("blacklist")
    if pattern is not None:
        for topic in internal_topics(run):
            if re.fullmatch(pattern, topic):
                return f"post: there is an internal topic {topic}"
    return None


def _compare_source(wanted: dict[str, Any], found: SourceDefinition, run: Run) -> str | None:
    if wanted["type"].upper() != found.kind:
        return f"is a {found.kind} instead of a {wanted['type']}"
    if wanted.get("schema") is not None:
        schema = _schema(wanted["schema"], run)
        if schema.key != found.schema.key or schema.value != found.schema.value:
            return f"schema {found.schema} instead of {schema}"
    if wanted.get("isSource", False) and not found.is_source:
        return "is no SOURCE"
    difference = _compare_key_format(wanted.get("keyFormat"), found)
    if difference is not None:
        return difference
    value_format = wanted.get("valueFormat")
    if isinstance(value_format, str) and value_format != found.value_format:
        return f"value format {found.value_format} instead of {value_format}"
    features = wanted.get("valueFeatures")
    if features is not None and len(found.schema.value) == 1:
        unwrapped = "UNWRAP_SINGLES" in features
        if unwrapped == found.value_options.wrapped:
            return f"value features {features}, wrapped {found.value_options.wrapped}"
    return None


def _compare_key_format(wanted: dict[str, Any] | None, found: SourceDefinition) -> str | None:
    if wanted is None:
        return None
    if wanted["format"] != found.key_format:
        return f"key format {found.key_format} instead of {wanted['format']}"
    kind = wanted.get("windowType")
    if kind != (None if found.window is None else found.window.kind):
        return f"window {found.window} instead of {kind}"
    size = wanted.get("windowSize")
    if size is not None and found.window is not None:
        actual = None if found.window.size is None else int(found.window.size.total_seconds() * 1000)
        if actual != size:
            return f"window size {actual} instead of {size}"
    return None


def _schema(text: str, run: Run) -> Schema:
    statement = parse_statement(f"CREATE STREAM X ({text}) WITH (KAFKA_TOPIC='x')")
    assert isinstance(statement, CreateSource)
    columns = [
        Column(
            element.name,
            resolve_type(element.type, run.engine.catalog.types),
            Namespace.KEY if "KEY" in element.role else Namespace.VALUE,
        )
        for element in statement.elements
    ]
    return Schema(tuple(columns))


def _compare_topic(wanted: dict[str, Any], found: SourceDefinition, run: Run) -> str | None:
    for side, name in (("key", found.key_format), ("value", found.value_format)):
        format = (wanted.get(f"{side}Format") or {}).get("format")
        if format is not None and format != name:
            return f"{side} format {name} instead of {format}"
        schema = wanted.get(f"{side}Schema")
        if schema is not None and run.registry is not None and format_named(name).infers_schemas:
            difference = run.registry.compare(found, side, schema)
            if difference is not None:
                return difference
    partitions = wanted.get("partitions")
    if partitions is not None and int(partitions) != found.partitions:
        return f"{found.partitions} partitions instead of {partitions}"
    return None


def internal_topics(run: Run) -> list[str]:
    """Returns the names of the repartition topics of all queries."""
    texts = (str(query.topology.describe()) for query in run.queries)
    return [topic for text in texts for topic in re.findall(r"[^\s(\[,:]+-repartition\b", text)]
