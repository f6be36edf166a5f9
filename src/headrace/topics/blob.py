"""A blob: the records of one partition packed together, as the embedded log keeps them and the shuffle carries them.

A header that can be read alone (records, span of offsets, first and last time, checksum), then the columns in msgpack.
Offsets are relative to where the log puts the blob, so a task packs its output once and nobody unpacks it before it is
read. Only blobs with gaps, left by compaction, list their offsets.

Why not Arrow: what counts is the way between bytes and the tuples of the task's loop. Measured with records of about
120 bytes, 20,000 in a blob, each layout with the same header and checksum, by turns in one process on a busy machine;
three runs, best CPU times, in million records/s:

    ======================================= ========= =========
    layout                                       pack    unpack
    ======================================= ========= =========
    columns in msgpack (msgspec), this one    5.7-6.2   7.5-8.9
    Arrow IPC stream                              3.5   8.0-8.2
    rows in msgpack                               7.7   3.6-5.1
    marshal                                   3.9-5.2   7.6-8.7
    lengths, and struct.unpack                3.5-3.6   4.4-4.9
    lengths, and slices                       2.9-3.4   2.6-3.0
    ======================================= ========= =========

So Arrow is as fast to read and slower to write, and nothing else here needs pyarrow. Without the checksum this layout
reads 9 to 10 million. Records that are scattered over a large heap cost more than either: 2 to 4 million, both ways.
"""

from __future__ import annotations

import sys
from array import array
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain, repeat
from struct import Struct
from typing import NamedTuple, TypeAlias
from zlib import crc32

import msgspec

from headrace.errors import LogError, TopicError, describe_value
from headrace.topics.log import Headers, Output, Raw

BLOB_BYTES = 256 * 1024
"""Records are split into blobs of about this size. Larger ones are not faster, and the log must find their pages."""

_FIRST = 1000
_VERSION = 1
_HEADER = Struct("<BxxxIIqqI")
HEADER_BYTES = _HEADER.size

_Columns: TypeAlias = tuple[
    bytes, list[bytes | None], list[bytes | None], list[tuple[tuple[str, bytes | None], ...]] | None, bytes | None
]
_Data: TypeAlias = list[bytes | None]
_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(_Columns).decode


class DamagedBlobError(LogError):
    """Bytes are not the blob that was written; the caller adds the place."""


class BlobInfo(NamedTuple):
    """Content of a blob's header."""

    records: int
    span: int
    """Offsets that the blob takes: its records and the gaps before and between them."""
    min_timestamp_ms: int
    max_timestamp_ms: int
    checksum: int


def pack(outputs: Sequence[Output]) -> bytes:
    """Packs records in their order; they get successive offsets. There must be at least one.

    >>> blob = pack([(None, 5, b"a", b"1", ()), (None, 7, b"b", None, (("h", b"x"),))])
    >>> unpack(blob, 40)
    [(40, 5, b'a', b'1', ()), (41, 7, b'b', None, (('h', b'x'),))]
    >>> info(blob).records, info(blob).max_timestamp_ms
    (2, 7)
    """
    _, timestamps, keys, values, headers = zip(*outputs, strict=True)
    _check_data("key", keys)
    _check_data("value", values)
    if any(headers):
        _check_headers(headers)
    return _pack(timestamps, keys, values, headers, None, len(keys))


def pack_gaps(records: Sequence[Raw], base: int, span: int) -> bytes:
    """Packs records that keep their offsets, at ``base`` and within ``span`` from there.

    >>> unpack(pack_gaps([(41, 5, b"a", b"1", ()), (45, 5, b"b", b"2", ())], 40, 10), 40)
    [(41, 5, b'a', b'1', ()), (45, 5, b'b', b'2', ())]
    """
    offsets, timestamps, keys, values, headers = zip(*records, strict=True)
    if offsets[0] == base and offsets[-1] - base + 1 == len(offsets) == span:
        return _pack(timestamps, keys, values, headers, None, span)
    relative = array("I", [offset - base for offset in offsets])
    return _pack(timestamps, keys, values, headers, _little_endian(relative), span)


def _pack(
    timestamps: Sequence[int],
    keys: Sequence[bytes | None],
    values: Sequence[bytes | None],
    headers: Sequence[Headers],
    offsets: bytes | None,
    span: int,
) -> bytes:
    columns = (_little_endian(array("q", timestamps)), keys, values, headers if any(headers) else None, offsets)
    body = _encode(columns)
    return _HEADER.pack(_VERSION, len(keys), span, min(timestamps), max(timestamps), crc32(body)) + body


def _check_data(what: str, column: Sequence[bytes | None]) -> None:
    """Complains about anything but bytes: it would be packed, and nobody could read the blob again."""
    try:
        # Of all ways to look at each of them it is the fastest. Otherwise text would be taken for base64.
        msgspec.convert(column, _Data, builtin_types=(bytes,))
    except msgspec.ValidationError:
        wrong = next((each for each in column if not isinstance(each, bytes | bytearray | memoryview | None)), None)
        if wrong is not None:
            message = f"the {what} of a record must be bytes or None; found {describe_value(wrong)}; correct its serde"
            raise TopicError(message) from None


def _check_headers(headers: Sequence[Headers]) -> None:
    for name, value in chain.from_iterable(headers):
        if type(name) is str and (value is None or type(value) is bytes):
            continue
        if not isinstance(name, str) or not isinstance(value, bytes | bytearray | memoryview | None):
            found = f"{describe_value(name)} and {describe_value(value)}"
            message = f"a header of a record must be a str and bytes or None; found {found}"
            raise TopicError(message)


def info(blob: bytes | memoryview) -> BlobInfo:
    """Reads the header alone."""
    if len(blob) < HEADER_BYTES or blob[0] != _VERSION:
        message = (
            f"these {len(blob)} bytes are not a blob of version {_VERSION}; the log was written by another version of "
            "Headrace or is damaged"
        )
        raise DamagedBlobError(message)
    return BlobInfo(*_HEADER.unpack_from(blob)[1:])


def check(blob: bytes | memoryview) -> BlobInfo:
    """Reads the header and compares the checksum."""
    head = info(blob)
    if crc32(memoryview(blob)[HEADER_BYTES:]) != head.checksum:
        message = f"a blob of {head.records} records is damaged: its checksum does not fit; restore the log from a copy"
        raise DamagedBlobError(message)
    return head


def unpack(blob: bytes | memoryview, base: int = 0) -> list[Raw]:
    """Returns the records, the first offset of the blob being ``base``.

    >>> unpack(pack([(None, 5, b"a", b"1", ())])[:-1])
    Traceback (most recent call last):
    ...
    headrace.topics.blob.DamagedBlobError: a blob of 1 records is damaged: its checksum does not fit; restore ...
    """
    head = check(blob)
    times, keys, values, headers, relative = _decode(memoryview(blob)[HEADER_BYTES:])
    timestamps = _numbers("q", times)
    # The checksum does not cover the header.
    if not len(keys) == len(timestamps) == head.records or (relative is None and head.span != head.records):
        message = f"a blob of {len(keys)} records is damaged: its header says otherwise; restore the log from a copy"
        raise DamagedBlobError(message)
    offsets: Iterable[int] = range(base, base + head.records)
    if relative is not None:
        offsets = [base + offset for offset in _numbers("I", relative)]
    return list(zip(offsets, timestamps, keys, values, repeat(()) if headers is None else headers, strict=False))


def pack_all(outputs: Sequence[Output], limit: int = BLOB_BYTES) -> Iterator[bytes]:
    """Packs records into as many blobs of about ``limit`` bytes as they need.

    >>> [info(blob).records for blob in pack_all([(None, 0, None, b"x" * 50, ())] * 10, limit=256)]
    [3, 3, 3, 1]
    """
    # Measuring records would cost as much as packing them: each blob tells how many the next one should have.
    start, step = 0, _FIRST
    while start < len(outputs):
        piece = outputs[start : start + step]
        blob = pack(piece)
        step = max(1, len(piece) * limit // len(blob))
        if len(blob) > 2 * limit and len(piece) > 1:
            continue
        yield blob
        start += len(piece)


def _little_endian(numbers: array[int]) -> bytes:
    if sys.byteorder == "big":
        numbers.byteswap()
    return numbers.tobytes()


def _numbers(code: str, data: bytes) -> Sequence[int]:
    if sys.byteorder == "little":
        return memoryview(data).cast(code)  # type: ignore[call-overload, no-any-return]  # the code is a variable
    numbers = array(code, data)
    numbers.byteswap()
    return numbers
