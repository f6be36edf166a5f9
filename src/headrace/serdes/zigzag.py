"""Whole numbers of variable length, as Kafka and Protobuf write them: twice the number, seven bits a byte."""

from __future__ import annotations


def zigzag(number: int) -> bytes:
    r"""Returns the bytes of a number that is not negative.

    >>> zigzag(1), zigzag(300)
    (b'\x02', b'\xd8\x04')
    """
    number <<= 1
    out = bytearray()
    while number > 0x7F:
        out.append(number & 0x7F | 0x80)
        number >>= 7
    out.append(number)
    return bytes(out)


def read_zigzag(data: bytes, start: int = 0) -> tuple[int, int]:
    r"""Returns the number that begins at ``start``, and where what follows it begins.

    >>> read_zigzag(b"\xd8\x04rest")
    (300, 2)
    """
    number = shift = 0
    while True:
        byte = data[start]
        start += 1
        number |= (byte & 0x7F) << shift
        shift += 7
        if byte < 0x80:
            return (number >> 1) ^ -(number & 1), start
