"""Errors as clients know them: a status of HTTP, a number, a sentence, and the statement if it was one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from headrace.sql.errors import Position, SqlError
from headrace.sql.server.entities.entity import Entity

BAD_REQUEST = 40000
BAD_STATEMENT = 40001
USE_QUERY_ENDPOINT = 40002
TOO_MANY_PUSH_QUERIES = 40003
NOT_FOUND = 40400
NOT_ACCEPTABLE = 40600
TOO_LARGE = 41300
ASSERTION_FAILED = 41700
NO_SCHEMA_REGISTRY = 42801
SERVER_ERROR = 50000
COMMANDS_TIMED_OUT = 50301
SHUTTING_DOWN = 50303


class RequestError(Exception):
    """A request that fails. The status of HTTP is the first three digits of the number."""

    def __init__(
        self,
        code: int,
        message: str,
        *,
        statement: str | None = None,
        entities: Sequence[Entity] = (),
        position: Position | None = None,
        excerpt: str | None = None,
    ) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.statement = statement
        self.entities = tuple(entities)
        self.position = position
        self.excerpt = excerpt

    @property
    def status(self) -> int:
        return self.code // 100

    def to_json(self) -> dict[str, Any]:
        """Returns the error as it is sent: that of a statement has its text, and what came before it.

        Beyond ksqlDB, it has the line and the column at which it is wrong, and an excerpt of the text.

        >>> RequestError(40001, "X does not exist.", statement="DROP TYPE X;").to_json()["@type"]
        'statement_error'
        """
        content: dict[str, Any] = {"@type": "generic_error", "error_code": self.code, "message": self.message}
        if self.position is not None:
            content |= {"line": self.position.line, "column": self.position.column}
        if self.excerpt is not None:
            content["excerpt"] = self.excerpt
        if self.statement is None:
            return content
        entities = [entity.to_json() for entity in self.entities]
        return {**content, "@type": "statement_error", "statementText": self.statement, "entities": entities}


def of_statement(error: SqlError, text: str, entities: Sequence[Entity] = ()) -> RequestError:
    """Returns the error of a statement that cannot be carried out."""
    return RequestError(
        BAD_STATEMENT,
        error.message,
        statement=terminated(text),
        entities=entities,
        position=error.position,
        excerpt=error.excerpt,
    )


def terminated(text: str) -> str:
    """Returns a statement with its semicolon.

    >>> terminated("SHOW STREAMS"), terminated("SHOW STREAMS;")
    ('SHOW STREAMS;', 'SHOW STREAMS;')
    """
    text = text.strip()
    return text if text.endswith(";") else f"{text};"
