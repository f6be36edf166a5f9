from __future__ import annotations

import pytest

from headrace import Serdes
from headrace.topics.embedded import EmbeddedLog
from tests.cli.conftest import Command


@pytest.fixture(autouse=True)
def topic(log: EmbeddedLog) -> None:
    log.create_topic("in", partitions=2)
    # Partition, timestamp: the values tell the order by time.
    log.append(
        "in", [(0, 10, b"a", b"1", ()), (0, 30, b"b", b"3", ()), (1, 20, b"c", b"2", ()), (1, 40, None, None, ())]
    )


def test_partitions_come_in_the_order_of_time(headrace: Command) -> None:
    assert headrace("consume", "in").lines == ["1", "2", "3", "null"]
    assert headrace("consume", "in", "--from-beginning", "--null", "-").lines == ["1", "2", "3", "-"]


def test_keys(headrace: Command) -> None:
    assert headrace("consume", "in", "--keys").lines == ["a\t1", "c\t2", "b\t3", "null\tnull"]
    assert headrace("consume", "in", "--key-separator", ": ").lines[0] == "a: 1"
    assert headrace("consume", "in", "--key-format", "bytes").lines[0] == "YQ==\t1"


@pytest.mark.parametrize(
    ("options", "values"),
    [
        (("--partition", 1), ["2", "null"]),
        (("--partition", 0, "--offset", 1), ["3"]),
        (("--last", 2), ["3", "null"]),
        (("--last", 0), []),
        (("--last", 9), ["1", "2", "3", "null"]),
        (("--since", 20), ["2", "3", "null"]),
        (("--since", "1970-01-01T00:00:00.040+00:00"), ["null"]),
        (("--since", "2200-01-01"), []),
        (("--max-records", 1), ["1"]),
        (("--max-records", 0), []),
        (("--follow", "--max-records", 4), ["1", "2", "3", "null"]),
        (("--timeout", "1ms"), ["1", "2", "3", "null"]),
    ],
)
def test_where_to_start_and_to_end(headrace: Command, options: tuple[object, ...], values: list[str]) -> None:
    assert headrace("consume", "in", *options).lines == values


def test_last_of_a_compacted_topic_with_gaps(headrace: Command, log: EmbeddedLog) -> None:
    log.create_topic("latest", configs={"cleanup.policy": "compact", "min.cleanable.dirty.ratio": 0})
    log.append("latest", [(0, n, b"x" if 0 < n < 99 else b"%d" % n, b"%d" % n, ()) for n in range(100)])
    log.clean()
    assert headrace("consume", "latest", "--last", 3).lines == ["0", "98", "99"]


def test_last_counts_records_whatever_their_times_are(headrace: Command, log: EmbeddedLog) -> None:
    log.append("in", [(0, 5, None, b"5", ()), (1, 60, None, b"6", ())])
    assert headrace("consume", "in", "--last", 2).lines == ["null", "6"]
    assert headrace("consume", "in", "--last", 1, "--partition", 0).lines == ["5"]


def test_records_can_be_written_again(headrace: Command, log: EmbeddedLog) -> None:
    log.append("in", [(1, 50, b"d", b"{}", (("h", b"x"), ("h", b"\xff"), ("n", None)))])
    printed = headrace("consume", "in", "--records")
    assert printed.rows[0] == {"topic": "in", "partition": 0, "offset": 0, "timestamp": 10, "key": "a", "value": 1}
    assert printed.rows[-1]["headers"] == [["h", "x"], ["h", {"base64": "/w=="}], ["n", None]]
    log.create_topic("copy", partitions=2)
    headrace("produce", "copy", "--records", stdin=printed.out)
    for partition in (0, 1):
        assert log.read("copy", partition, 0) == log.read("in", partition, 0)


def test_json_over_several_lines_is_printed_on_one(headrace: Command, log: EmbeddedLog) -> None:
    log.create_topic("pretty")
    log.append("pretty", [(None, 0, None, b'{\n "a": 1\n}', ())])
    assert headrace("consume", "pretty").lines == ['{"a":1}']


def test_windowed_keys_without_a_size_have_no_end(headrace: Command, log: EmbeddedLog) -> None:
    log.create_topic("windows")
    key = b"ada" + (60_000).to_bytes(8, "big")
    log.append("windows", [(None, 0, key, b"1", ())])
    printed = headrace("consume", "windows", "--key-format", "windowed-string").lines
    assert printed == ['{"key":"ada","start_ms":60000}\t1']


@pytest.mark.parametrize(
    ("data", "hint"),
    [(b"hello", "string"), (Serdes.long().serialize(3) or b"", "long"), (b"\xff\xff\xff", "bytes")],
)
def test_a_value_of_another_format_is_named_with_a_hint(
    headrace: Command, log: EmbeddedLog, data: bytes, hint: str
) -> None:
    log.append("in", [(1, 50, None, data, ())])
    done = headrace("consume", "in", code=1)
    assert "error: partition 1, offset 2: value of topic 'in'" in done.err
    assert f"try --value-format {hint}" in done.err
    # What could be read is there.
    assert done.lines == ["1", "2", "3", "null"]


def test_wrong_usage(headrace: Command) -> None:
    headrace("consume", "in", "--offset", 1, code=2)
    headrace("consume", "in", "--last", 1, "--from-beginning", code=2)
    assert "has offsets 0 to 2; offset 9" in headrace("consume", "in", "--offset", 9, "--partition", 0, code=1).err
    assert "there is no 7" in headrace("consume", "in", "--partition", 7, code=1).err
    assert "did you mean 'string'?" in headrace("consume", "in", "--value-format", "strng", code=2).err
    assert "is no point in time" in headrace("consume", "in", "--since", "lunch", code=2).err
    assert "is no duration" in headrace("consume", "in", "--timeout", "soon", code=2).err
