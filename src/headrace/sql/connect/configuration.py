"""Configuration of a connector from its statement, and the statement's text with secrets masked."""

from __future__ import annotations

from headrace.sql.errors import SqlStatementError
from headrace.sql.syntax.dialect import Kind, Token, tokenize
from headrace.sql.syntax.nodes import Literal
from headrace.sql.syntax.statements import CreateConnector

CONNECTOR_CLASS = "connector.class"

_JDBC_SOURCE = "io.confluent.connect.jdbc.JdbcSourceConnector"
_TRANSFORMS = "org.apache.kafka.connect.transforms"
_MASK = "'[string]'"


def connector_config(statement: CreateConnector) -> dict[str, str]:
    """Returns the configuration of a connector, all of it texts.

    Raises ``SqlStatementError`` for a property that is NULL.
    """
    config = {name: _text(name, value, statement) for name, value in statement.properties}
    if config.get(CONNECTOR_CLASS) == _JDBC_SOURCE:
        config = _jdbc_source(config)
    return {**config, "name": statement.name}


def masked_text(statement: CreateConnector) -> str:
    """Returns the text of a statement; of what it sets, only the class is shown, for anything else may be a secret.

    >>> from headrace.sql.syntax.parser import parse_statement
    >>> text = "CREATE SINK CONNECTOR c WITH ('connector.class' = 'Db', 'db.password' = 'secret')"
    >>> masked_text(parse_statement(text))
    "CREATE SINK CONNECTOR c WITH ('connector.class' = 'Db', 'db.password' = '[string]')"
    """
    text = statement.text
    tokens = tokenize(text)
    parts, done = [], 0
    for index, token in enumerate(tokens):
        if not _is(token, "=") or tokens[index - 1].text == CONNECTOR_CLASS:
            continue
        last = index + 1
        while not (_is(tokens[last + 1], ",") or _is(tokens[last + 1], ")")):
            last += 1
        parts += [text[done : tokens[index + 1].start], _MASK]
        done = tokens[last].end
    return "".join((*parts, text[done:]))


def _is(token: Token, sign: str) -> bool:
    return token.kind is Kind.SIGN and token.text == sign


def _text(name: str, literal: Literal, statement: CreateConnector) -> str:
    value = literal.value
    if value is None:
        message = f"The property '{name}' of a connector cannot be NULL; leave it out, or write '' for an empty text"
        raise SqlStatementError(message, position=statement.position, statement=statement.text)
    return str(value).lower() if isinstance(value, bool) else str(value)


def _jdbc_source(config: dict[str, str]) -> dict[str, str]:
    """Returns the configuration with ksqlDB's shorthand written out: ``key`` is the column that becomes the key."""
    resolved = {"tasks.max": "1", **config}
    key = resolved.pop("key", None)
    if key is not None:
        own = "ksqlCreateKey,ksqlExtractString"
        before = resolved.get("transforms")
        resolved["transforms"] = f"{before},{own}" if before else own
        resolved["transforms.ksqlCreateKey.type"] = f"{_TRANSFORMS}.ValueToKey"
        resolved["transforms.ksqlCreateKey.fields"] = key
        resolved["transforms.ksqlExtractString.type"] = f"{_TRANSFORMS}.ExtractField$Key"
        resolved["transforms.ksqlExtractString.field"] = key
    return resolved
