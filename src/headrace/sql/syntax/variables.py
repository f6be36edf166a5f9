"""``${name}`` in a text, replaced by the values that DEFINE gave."""

from __future__ import annotations

import re
from collections.abc import Mapping

from headrace.errors import did_you_mean
from headrace.sql.errors import SqlParseError
from headrace.sql.syntax.dialect import Text

_REFERENCE = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_]*)\}")


def substitute(text: str, variables: Mapping[str, str]) -> str:
    """Returns the text with every ``${name}`` replaced; names are case-insensitive, and ``$${name}`` stays ``${name}``.

    >>> substitute("CREATE STREAM ${s} WITH (KAFKA_TOPIC='${S}');", {"S": "orders"})
    "CREATE STREAM orders WITH (KAFKA_TOPIC='orders');"
    """
    return _REFERENCE.sub(lambda match: _value(text, match, variables), text)


def _value(text: str, match: re.Match[str], variables: Mapping[str, str]) -> str:
    if text[: match.start()].endswith("$"):
        return match.group()[1:]
    name = match.group(1).upper()
    if name in variables:
        return variables[name]
    position = Text(text).position(match.start())
    message = f"{position}: '{match.group(1)}' is not a defined variable{did_you_mean(name, variables)}"
    error = SqlParseError(message, position=position, statement=text)
    error.locate(text, None)
    raise error
