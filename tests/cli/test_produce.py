from __future__ import annotations

import pytest

from headrace.topics.embedded import EmbeddedLog
from tests.cli.conftest import Command


@pytest.fixture(autouse=True)
def topic(log: EmbeddedLog) -> None:
    log.create_topic("in")
    log.create_topic("two", partitions=2)
    log.create_topic("compacted", configs={"cleanup.policy": "compact"})


def pairs(log: EmbeddedLog, topic: str = "in", partition: int = 0) -> list[tuple[bytes | None, bytes | None]]:
    return [(key, value) for _, _, key, value, _ in log.read(topic, partition, 0)]


def test_a_line_is_a_json_value(headrace: Command, log: EmbeddedLog) -> None:
    done = headrace("produce", "in", stdin='{"a": 1}\n\n[1, 2]\nnull\n"x"')
    assert pairs(log) == [(None, b'{"a": 1}'), (None, b"[1, 2]"), (None, None), (None, b'"x"')]
    assert done.err == "wrote 4 records to 'in'\n"


def test_a_line_is_text(headrace: Command, log: EmbeddedLog) -> None:
    headrace("produce", "in", "--value-format", "string", "--null", "-", stdin="one\r\n\n-\nÄ\n", code=0)
    assert pairs(log) == [(None, b"one"), (None, b""), (None, None), (None, "Ä".encode())]


@pytest.mark.parametrize(
    ("form", "text", "data"),
    [
        ("long", "-1", b"\xff" * 8),
        ("integer", "1", b"\0\0\0\1"),
        ("short", "1", b"\0\1"),
        ("double", "1.5", b"\x3f\xf8" + bytes(6)),
        ("boolean", "true", b"\1"),
        ("bytes", "AP8=", b"\x00\xff"),
        ("uuid", "00000000-0000-0000-0000-000000000001", b"00000000-0000-0000-0000-000000000001"),
    ],
)
def test_formats(headrace: Command, log: EmbeddedLog, form: str, text: str, data: bytes) -> None:
    headrace("produce", "in", "--value-format", form, stdin=text)
    assert pairs(log) == [(None, data)]
    printed = headrace("consume", "in", "--value-format", form).out
    assert printed == f"{text}\n"


def test_key_and_value_with_a_separator(headrace: Command, log: EmbeddedLog) -> None:
    headrace("produce", "in", "--key-separator", "\\t", "--key-format", "long", stdin="7\t{}\n")
    assert pairs(log) == [(bytes(7) + b"\7", b"{}")]


def test_records_with_everything(headrace: Command, log: EmbeddedLog) -> None:
    line = '{"key": "k", "value": {"n": 1}, "timestamp": 5, "headers": {"h": "v", "b": {"base64": "/w=="}, "n": null}, '
    headrace("produce", "two", "--records", stdin=line + '"partition": 1}\n{}\n')
    headers = (("h", b"v"), ("b", b"\xff"), ("n", None))
    assert log.read("two", 1, 0, max_records=1) == [(0, 5, b"k", b'{"n":1}', headers)]


def test_headers_of_every_record(headrace: Command, log: EmbeddedLog) -> None:
    headrace("produce", "in", "--header", "from=web", "--header", "sum=1=1", stdin="5\n")
    headrace("produce", "in", "--records", "--header", "from=web", stdin='{"value": 5, "headers": {"from": "app"}}\n')
    assert [raw[4] for raw in log.read("in", 0, 0)] == [
        (("from", b"web"), ("sum", b"1=1")),
        (("from", b"web"), ("from", b"app")),
    ]
    assert "'web' is no header; write NAME=VALUE" in headrace("produce", "in", "--header", "web", code=2).err


def test_windowed_keys_go_in_and_out(headrace: Command) -> None:
    line = '{"key":{"key":"ada","start_ms":60000,"end_ms":120000},"value":1}'
    for form in ("windowed-string", "session-string"):
        headrace("produce", "in", "--records", "--key-format", form, stdin=line)
        done = headrace("consume", "in", "--records", "--key-format", form, "--window-size", "1m", "--last", 1)
        assert done.rows[0]["key"] == {"key": "ada", "start_ms": 60000, "end_ms": 120000}


@pytest.mark.parametrize(
    ("options", "line", "message"),
    [
        ((), "nope", "for plain text say --value-format string"),
        (("--value-format", "long"), "1.5", "is no long"),
        (("--value-format", "long"), "9" * 30, "is no long"),
        (("--value-format", "bytes"), "?", "it must be base64"),
        (("--key-separator", ":"), "{}", "no separator ':'"),
        (("--records",), "[]", "is no JSON object"),
        (("--records",), '{"kee": 1}', "did you mean 'key'?"),
        (("--records",), '{"timestamp": -1}', "the timestamp must be a whole number, at least 0"),
        (("--records",), '{"headers": 5}', "headers must be an object"),
        (("--records",), '{"headers": {"a": 5}}', "the header 'a' must be a string"),
        (("--records",), '{"key": 5}', "the key is no string: it must be str, found int 5"),
        (("--records",), '{"partition": 3}', "a record was written to partition 3"),
    ],
)
def test_a_bad_line_is_named_and_nothing_before_it_is_lost(
    headrace: Command, log: EmbeddedLog, options: tuple[str, ...], line: str, message: str
) -> None:
    good = {"--key-separator": "k:1", "--records": '{"value": 1}'}.get(options[0] if options else "", "1")
    if "bytes" in options:
        good = "AA=="
    done = headrace("produce", "in", *options, stdin=f"{good}\n{good}\n{line}\n{good}\n", code=1)
    assert "error: line 3: " in done.err
    assert message in done.err
    assert "the 2 records before it are in the topic" in done.err
    assert log.end_offsets([("in", 0)]) == {("in", 0): 2}


def test_text_that_is_no_utf_8(headrace: Command) -> None:
    done = headrace("produce", "in", "--value-format", "string", stdin=b"\xff\n", code=1)
    assert "no UTF-8" in done.err
    assert "nothing was written" in done.err
    headrace("produce", "in", stdin=b'"\xff"\n', code=1)


def test_a_compacted_topic_wants_keys(headrace: Command) -> None:
    assert "its records need keys" in headrace("produce", "compacted", stdin="1\n", code=1).err


def test_missing_topic(headrace: Command) -> None:
    assert "headrace topics create inn" in headrace("produce", "inn", stdin="", code=1).err


def test_two_ways_to_give_a_key(headrace: Command) -> None:
    headrace("produce", "in", "--records", "--key-separator", ":", stdin="", code=2)


def test_many_lines_keep_their_order(headrace: Command, log: EmbeddedLog) -> None:
    headrace("produce", "in", "--quiet", stdin="".join(f"{number}\n" for number in range(25_000)))
    assert [int(value or b"") for _, value in pairs(log)] == list(range(25_000))
