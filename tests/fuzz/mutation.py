"""Damage to texts and bytes."""

from __future__ import annotations

import re
from random import Random

ODD = (
    *(
        "'",
        "`",
        '"',
        "${x}",
        "${",
        "\\",
        "²",
        "١",
        "\x00",
        "😀",
        "\u2028",
        "\ufeff",
        "1e999",
        "9" * 400,
        "-0",
        "1.",
        "1e",
    ),
    *("--", "/*", "*/", "x'41'", ";", ",", "(", ")", "[", "]", "->", "=>", ":=", "NULL", "NaN", "Infinity", "%", "_"),
)


def damaged_text(text: str, random: Random, words: tuple[str, ...]) -> str:
    """Returns a text with some of its words cut out, doubled, exchanged or put elsewhere."""
    parts = re.findall(r"\w+|'[^']*'|\s+|\S", text)
    for _ in range(random.randint(1, 4)):
        place = random.randint(0, len(parts))
        match random.randrange(5):
            case 0:
                del parts[place : place + random.randint(1, 3)]
            case 1:
                parts[place:place] = [random.choice(words + ODD)]
            case 2:
                parts[place : place + 1] = [random.choice(words + ODD)]
            case 3:
                parts[place:place] = parts[random.randint(0, len(parts)) :][: random.randint(1, 8)]
            case _:
                other = random.randint(0, len(parts))
                moved = parts[other : other + 1]
                del parts[other : other + 1]
                parts[place:place] = moved
    return "".join(parts)


def damaged_bytes(data: bytes, random: Random) -> bytes:
    """Returns bytes with some of them flipped, cut out, doubled, or with others put in."""
    found = bytearray(data)
    for _ in range(random.randint(1, 4)):
        place = random.randint(0, len(found))
        match random.randrange(5):
            case 0 if found:
                found[min(place, len(found) - 1)] ^= 1 << random.randrange(8)
            case 1:
                del found[place : place + random.randint(1, 8)]
            case 2:
                found[place:place] = random.randbytes(random.randint(1, 8))
            case 3:
                found[place:place] = found[random.randint(0, len(found)) :][:16]
            case _:
                found[place : place + 4] = random.choice(
                    (b"\xff\xff\xff\xff", b"\x00" * 4, b"\x7f\xff\xff\xff", b"[" * 50)
                )
    return bytes(found)
