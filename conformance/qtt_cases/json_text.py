"""JSON with exact numbers, both ways."""

from __future__ import annotations

import json
from decimal import Decimal
from typing import Any


def json_bytes(node: Any) -> bytes:
    """Returns a node as JSON, decimals with all the digits that they were written with."""
    return _text(node).encode()


def _text(node: Any) -> str:
    match node:
        case Decimal():
            return str(node)
        case dict():
            return (
                "{"
                + ",".join(f"{json.dumps(key, ensure_ascii=False)}:{_text(value)}" for key, value in node.items())
                + "}"
            )
        case list():
            return "[" + ",".join(map(_text, node)) + "]"
        case _:
            return json.dumps(node, ensure_ascii=False)


def read_json(data: bytes) -> Any:
    """Returns the node that bytes are; numbers with a fraction or an exponent are decimals."""
    return json.loads(data, parse_float=Decimal)
