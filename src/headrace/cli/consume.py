"""``headrace consume``: records become lines of stdout."""

from __future__ import annotations

import sys
from base64 import b64encode
from collections.abc import Callable, Iterator
from datetime import timedelta
from typing import Any

import click

from headrace.cli.common_options import CommonOptions, common_options, complete_topic, known_topic
from headrace.cli.formats import Format, FormatName, format_named, json_bytes, likely_format
from headrace.cli.times import Duration, Moment
from headrace.errors import DeserializationError
from headrace.topics.log import Headers, Offsets, Raw, ReadableLog, Topic
from headrace.topics.tail import merge_partitions, read_rounds


@click.command()
@click.argument("topic", shell_complete=complete_topic)
@click.option("--from-beginning", is_flag=True, help="Start with the first record; this is the default.")
@click.option("--offset", type=click.IntRange(min=0), help="Start at this offset of a partition.")
@click.option("--last", type=click.IntRange(min=0), metavar="N", help="Start N records before the end; 0: at the end.")
@click.option("--since", type=Moment(), metavar="TIME", help="Start at the first record of this time or later.")
@click.option("--partition", type=click.IntRange(min=0), help="Read this partition alone.")
@click.option("--follow", "-f", is_flag=True, help="Go on with what is written later, until Ctrl-C.")
@click.option("--timeout", type=Duration(), help="Like --follow, until nothing has come for so long (10s, 1m).")
@click.option("--max-records", "-n", type=click.IntRange(min=0), metavar="N", help="End after N records.")
@click.option("--records", is_flag=True, help="Print JSON objects with key, timestamp, headers, partition and offset.")
@click.option("--keys", is_flag=True, help="Print the key before the value, with a tab between.")
@click.option("--key-separator", metavar="TEXT", help="Print the key before the value, with this text between.")
@click.option("--key-format", type=FormatName(), help="What keys are; prints them, too. [default: string]")
@click.option("--value-format", type=FormatName(), default="json", show_default=True, help="What values are.")
@click.option("--window-size", type=Duration(), help="Length of windows, to print where windowed keys end.")
@click.option("--null", metavar="TEXT", default="null", show_default=True, help="How null is printed.")
@common_options()
@click.pass_obj
def consume(
    common: CommonOptions,
    topic: str,
    offset: int | None,
    last: int | None,
    since: int | None,
    partition: int | None,
    timeout: timedelta | None,
    max_records: int | None,
    key_separator: str | None,
    key_format: str | None,
    value_format: str,
    window_size: timedelta | None,
    null: str,
    *,
    from_beginning: bool,
    follow: bool,
    records: bool,
    keys: bool,
) -> None:
    """Print the records of a TOPIC, one per line, the oldest first.

    A line is the value. With --keys or --key-separator the key stands before it. With --records a line is an object
    that 'headrace produce --records' can write again:

    \b
      {"topic": "users", "partition": 0, "offset": 7, "timestamp": 1714564800000, "key": "ada", "value": {"n": 1}}

    Formats: string, json, long, integer, short, double, float, boolean, uuid, bytes (as base64). Keys within windows
    are windowed-string, session-string and so on; they print as {"key": "ada", "start_ms": 0, "end_ms": 60000}, where
    the end needs --window-size.

    Without --follow or --timeout it ends at the end of the topic. Records of several partitions come in the order of
    their timestamps, as far as they are there.

    \b
      headrace consume word-counts --key-format string --value-format long
      headrace consume purchases --last 10 --records
      headrace consume orders --follow --since 10m
    """
    if sum((from_beginning, offset is not None, last is not None, since is not None)) > 1:
        message = "--from-beginning, --offset, --last and --since each say where to start; choose one"
        raise click.UsageError(message)
    size_ms = None if window_size is None else window_size // timedelta(milliseconds=1)
    formats = format_named(key_format or "string", size_ms), format_named(value_format)
    if records:
        line = _object_line(topic, *formats)
    else:
        separator = key_separator if key_separator is not None else "\t" if keys or key_format else None
        line = _plain_line(topic, *formats, separator, null.encode())
    with common.log() as log:
        found = known_topic(log, topic, common)
        positions = _start(log, found, partition, offset, last, since)
        rounds = read_rounds(log, positions, follow=follow, timeout=timeout)
        try:
            _print(topic, rounds, line, max_records)
        except KeyboardInterrupt:
            # This is how one ends --follow.
            if not follow:
                raise


Line = Callable[[int, Raw], bytes]


def _start(
    log: ReadableLog, topic: Topic, partition: int | None, offset: int | None, last: int | None, since: int | None
) -> Offsets:
    name = topic.name
    targets = [(name, each) for each in ([partition] if partition is not None else range(topic.partitions))]
    begins, ends = log.begin_offsets(targets), log.end_offsets(targets)
    if offset is not None:
        if len(targets) > 1:
            message = f"'{name}' has {topic.partitions} partitions, whose offsets differ; name one with --partition"
            raise click.UsageError(message)
        return dict.fromkeys(targets, offset)
    if since is not None:
        found = log.offsets_for_time(dict.fromkeys(targets, since))
        return {target: ends[target] if at is None else at for target, at in found.items()}
    return begins if last is None else _before_end(log, begins, ends, last)


def _before_end(log: ReadableLog, begins: Offsets, ends: Offsets, last: int) -> Offsets:
    """Returns where the last records of all partitions together begin."""
    span = last
    while True:
        # Compaction leaves gaps, so that the last N offsets may hold fewer records.
        starts = {target: max(begins[target], end - span) for target, end in ends.items()}
        tail = list(merge_partitions(log, starts, ends))
        if len(tail) >= last or starts == begins:
            break
        span *= 4
    positions = dict(ends)
    (name,) = {name for name, _ in ends}
    for partition, raw in reversed(tail[len(tail) - last :] if last < len(tail) else tail):
        # What is printed last is a last part of each partition, too, so the first offset comes last here.
        positions[(name, partition)] = raw[0]
    return positions


def _print(topic: str, rounds: Iterator[Iterator[tuple[int, Raw]]], line: Line, max_records: int | None) -> None:
    stream = sys.stdout.buffer
    left = -1 if max_records is None else max_records
    if not left:
        return
    for records in rounds:
        for partition, raw in records:
            try:
                stream.write(line(partition, raw) + b"\n")
            except DeserializationError as error:
                stream.flush()
                raise _unreadable(topic, partition, raw, error) from error
            left -= 1
            if not left:
                break
        stream.flush()
        if not left:
            return


def _unreadable(topic: str, partition: int, raw: Raw, error: DeserializationError) -> click.ClickException:
    what = "key" if str(error).startswith("key") else "value"
    data = raw[2] if what == "key" else raw[3]
    message = (
        f"partition {partition}, offset {raw[0]}: {error}; try --{what}-format {likely_format(data or b'')}, or go on "
        f"behind it with --partition {partition} --offset {raw[0] + 1}"
    )
    return click.ClickException(message)


def _plain_line(topic: str, keys: Format, values: Format, separator: str | None, null: bytes) -> Line:
    print_key, print_value = keys.printer(topic, is_key=True), values.printer(topic, is_key=False)
    if separator is None:
        return lambda _partition, raw: null if raw[3] is None else print_value(raw[3])
    between = separator.replace("\\t", "\t").encode()

    def line(_partition: int, raw: Raw) -> bytes:
        key = null if raw[2] is None else print_key(raw[2])
        return key + between + (null if raw[3] is None else print_value(raw[3]))

    return line


def _object_line(topic: str, keys: Format, values: Format) -> Line:
    def line(partition: int, raw: Raw) -> bytes:
        offset, timestamp_ms, key, value, headers = raw
        record: dict[str, Any] = {
            "topic": topic,
            "partition": partition,
            "offset": offset,
            "timestamp": timestamp_ms,
            "key": keys.bytes_to_json(key, topic=topic, is_key=True),
            "value": values.bytes_to_json(value, topic=topic),
        }
        if headers:
            record["headers"] = _headers(headers)
        return json_bytes(record)

    return line


def _headers(headers: Headers) -> Any:
    pairs = [(name, _header_value(value)) for name, value in headers]
    # An object cannot say one name twice.
    return dict(pairs) if len(dict(pairs)) == len(pairs) else [list(pair) for pair in pairs]


def _header_value(value: bytes | None) -> Any:
    if value is None:
        return None
    try:
        return value.decode()
    except UnicodeDecodeError:
        return {"base64": b64encode(value).decode()}
