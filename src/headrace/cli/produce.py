"""``headrace produce``: lines of stdin become records."""

from __future__ import annotations

import sys
import time
from base64 import b64decode
from collections.abc import Callable, Mapping
from typing import Any

import click

from headrace.cli.common_options import CommonOptions, common_options, complete_topic, known_topic
from headrace.cli.formats import Format, FormatName, format_named, parse_json
from headrace.cli.printing import note, plural
from headrace.cli.progress import Counter
from headrace.cli.typed_lines import pieces
from headrace.errors import TopicError, did_you_mean
from headrace.topics.log import Headers, Output, TopicLog

_BATCH = 10_000
_LONGEST_SECONDS = 0.25
_FIELDS = ("key", "value", "timestamp", "headers", "partition")


@click.command()
@click.argument("topic", shell_complete=complete_topic)
@click.option("--records", is_flag=True, help="Lines are JSON objects with key, value, timestamp, headers, partition.")
@click.option("--key-separator", metavar="TEXT", help="Lines are a key, this text, and a value. '\\t' is a tab.")
@click.option("--key-format", type=FormatName(), default="string", show_default=True, help="Name of a format above.")
@click.option("--value-format", type=FormatName(), default="json", show_default=True, help="Name of a format above.")
@click.option("--null", metavar="TEXT", help="A key or value with exactly this text is null; null deletes in a table.")
@click.option(
    "--header", "header_texts", metavar="NAME=VALUE", multiple=True, help="A header of every record. May be repeated."
)
@click.option("--partition", type=click.IntRange(min=0), help="Write to this partition instead of the key's.")
@click.option("--quiet", "-q", is_flag=True, help="Do not say how many records were written.")
@common_options()
@click.pass_obj
def produce(
    common: CommonOptions,
    topic: str,
    key_separator: str | None,
    key_format: str,
    value_format: str,
    null: str | None,
    header_texts: tuple[str, ...],
    partition: int | None,
    *,
    records: bool,
    quiet: bool,
) -> None:
    """Write the lines of stdin to a TOPIC, one record per line.

    A line is a value; or, with --key-separator, a key and a value; or, with --records, an object, whose fields may all
    be left out:

    \b
      {"key": "ada", "value": {"n": 1}, "timestamp": 1714564800000, "headers": {"trace": "7"}, "partition": 0}

    The timestamp is in milliseconds; the time of writing if it is left out. The values of headers are strings,
    {"base64": "…"} for other bytes, or null; those of --header come before them. A value of null is a tombstone, which
    deletes in a table: the JSON null, or what --null says.

    Formats: string, json, long, integer, short, double, float, boolean, uuid, bytes (as base64); windowed-string,
    session-string and so on for keys within windows, as {"key": "ada", "start_ms": 0, "end_ms": 60000}.

    A line that cannot be written ends the command with exit code 1 and the number of the line; all lines before it are
    in the topic.

    \b
      echo 'hello world' | headrace produce lines --value-format string
      printf 'ada:{"age": 36}\\n' | headrace produce users --key-separator :
    """
    keys, values = format_named(key_format), format_named(value_format)
    if records and key_separator is not None:
        message = "--records and --key-separator are two ways to give a key; choose one"
        raise click.UsageError(message)
    headers = tuple(map(_header_of_text, header_texts))
    if records:
        read = _record_reader(keys, values, partition, headers)
    else:
        read = _line_reader(keys, values, key_separator, null, partition, headers)
    with common.log() as log, Counter("records", quiet=quiet) as counter:
        known_topic(log, topic, common)
        _copy(log, topic, read, counter)
    if not quiet:
        note(f"wrote {plural(counter.count, 'record')} to '{topic}'")


Reader = Callable[[bytes, int], Output | None]
"""A line and the time, as a record; None for a line that says nothing. Raises a ValueError."""


def _copy(log: TopicLog, topic: str, read: Reader, counter: Counter) -> None:
    pending: list[Output] = []
    numbers: list[int] = []
    number, written_at = 0, time.monotonic()

    def flush() -> None:
        nonlocal written_at
        if pending:
            _append(log, topic, pending, numbers, counter)
            pending.clear()
            numbers.clear()
        written_at = time.monotonic()

    try:
        for lines in pieces(sys.stdin.buffer):
            now_ms = int(time.time() * 1000)
            for line in lines:
                number += 1
                try:
                    record = read(line, now_ms)
                except ValueError as error:
                    flush()
                    raise _bad_line(number, counter.count, str(error)) from error
                if record is not None:
                    pending.append(record)
                    numbers.append(number)
                    if len(pending) >= _BATCH:
                        flush()
            if not lines or time.monotonic() - written_at > _LONGEST_SECONDS:
                flush()
    except KeyboardInterrupt:
        # What was typed before is meant.
        flush()
        raise
    flush()


def _append(log: TopicLog, topic: str, records: list[Output], numbers: list[int], counter: Counter) -> None:
    try:
        log.append(topic, records)
        counter.add(len(records))
    except TopicError:
        # A batch is written as a whole or not at all: one by one shows which line it is.
        for number, record in zip(numbers, records, strict=True):
            try:
                log.append(topic, [record])
            except TopicError as error:
                raise _bad_line(number, counter.count, str(error)) from error
            counter.add(1)


def _bad_line(number: int, count: int, problem: str) -> click.ClickException:
    message = f"line {number}: {problem}"
    if count:
        message += (
            f"\nthe {plural(count, 'record')} before it {'is' if count == 1 else 'are'} in the topic; correct the line "
            f"and go on from there: tail -n +{number} FILE | headrace produce …"
        )
    else:
        message += "\nnothing was written; correct the line and try again"
    return click.ClickException(message)


def _line_reader(
    keys: Format,
    values: Format,
    separator: str | None,
    null: str | None,
    partition: int | None,
    headers: Headers,
) -> Reader:
    blank_is_nothing = values.name != "string"
    parse_value, parse_key = _from_text("value", values, null), _from_text("key", keys, null, is_key=True)
    if separator is None:

        def read_value(line: bytes, now_ms: int) -> Output | None:
            if blank_is_nothing and not line.strip():
                return None
            return (partition, now_ms, None, parse_value(line), headers)

        return read_value
    between = separator.replace("\\t", "\t").encode()

    def read_pair(line: bytes, now_ms: int) -> Output | None:
        if not line.strip():
            return None
        key, found, value = line.partition(between)
        if not found:
            message = f"there is no separator {separator!r} between key and value in {_short(line)}"
            raise ValueError(message)
        return (partition, now_ms, parse_key(key), parse_value(value), headers)

    return read_pair


def _from_text(
    what: str, format_: Format, null: str | None, *, is_key: bool = False
) -> Callable[[bytes], bytes | None]:
    nothing = None if null is None else null.encode()
    # A value that is JSON already needs to be looked at, not written anew.
    as_it_is = format_.name == "json" and not is_key

    def parse(data: bytes) -> bytes | None:
        if data == nothing:
            return None
        try:
            if as_it_is:
                return None if parse_json(data) is None else data.strip()
            return format_.text_to_bytes(data.decode(), is_key=is_key)
        except UnicodeDecodeError:
            message = f"the {what} is no UTF-8: {_short(data)}; encode it as base64 and say --{what}-format bytes"
            raise ValueError(message) from None
        except ValueError as error:
            hint = "; for plain text say --value-format string" if format_.name == "json" and not is_key else ""
            message = f"the {what} {_short(data)} is no {format_.name}: {error}{hint}"
            raise ValueError(message) from None

    return parse


def _record_reader(keys: Format, values: Format, partition: int | None, headers: Headers) -> Reader:
    def read(line: bytes, now_ms: int) -> Output | None:
        if not line.strip():
            return None
        record = _object(line)
        return (
            _number("partition", record.get("partition"), partition),
            _number("timestamp", record.get("timestamp"), now_ms) or 0,
            _encode("key", keys, record.get("key"), is_key=True),
            _encode("value", values, record.get("value")),
            headers + _headers(record.get("headers") or {}),
        )

    return read


def _object(line: bytes) -> dict[str, Any]:
    try:
        record = parse_json(line)
    except ValueError:
        record = None
    if not isinstance(record, dict):
        message = f'{_short(line)} is no JSON object; with --records a line is {{"key": …, "value": …}}'
        raise ValueError(message)
    for name in record:
        # What `consume --records` prints can be written again.
        if name not in (*_FIELDS, "topic", "offset"):
            hint = did_you_mean(name, _FIELDS) or f"; fields are {', '.join(_FIELDS)}"
            message = f"a record has no field '{name}'{hint}"
            raise ValueError(message)
    return record


def _encode(what: str, format_: Format, value: Any, *, is_key: bool = False) -> bytes | None:
    try:
        return format_.json_to_bytes(value, is_key=is_key)
    except ValueError as error:
        message = f"the {what} is no {format_.name}: {error}"
        raise ValueError(message) from None


def _number(what: str, value: Any, default: int | None) -> int | None:
    if value is None:
        return default
    if type(value) is not int or value < 0:
        message = f"the {what} must be a whole number, at least 0; found {value!r}"
        raise ValueError(message)
    return value


def _headers(headers: Any) -> Headers:
    # A list of pairs can say one name twice.
    pairs = list(headers.items()) if isinstance(headers, Mapping) else headers
    if not isinstance(pairs, list) or not all(
        isinstance(pair, list | tuple) and len(pair) == 2 and isinstance(pair[0], str) for pair in pairs
    ):
        message = f'headers must be an object, or a list of pairs ["name", "value"]; found {headers!r}'
        raise ValueError(message)
    return tuple((name, _header_value(name, value)) for name, value in pairs)


def _header_of_text(text: str) -> tuple[str, bytes]:
    name, equals, value = text.partition("=")
    if not equals or not name:
        message = f"'{text}' is no header; write NAME=VALUE, for example from=web"
        raise click.BadParameter(message, param_hint="--header")
    return name, value.encode()


def _header_value(name: str, value: Any) -> bytes | None:
    match value:
        case None:
            return None
        case str():
            return value.encode()
        case {"base64": str(text)}:
            return b64decode(text)
    message = f"the header '{name}' must be a string, {{\"base64\": …}} or null; found {value!r}"
    raise ValueError(message)


def _short(data: bytes) -> str:
    text = data.decode(errors="backslashreplace")
    return repr(text if len(text) <= 60 else text[:57] + "...")
