"""Reading tokens one after the other, and saying what is wrong with one."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import NoReturn, TypeVar

from headrace.sql.errors import Position, SqlParseError
from headrace.sql.syntax.dialect import Kind, Token

T = TypeVar("T")

RESERVED = frozenset(
    (
        "AND",
        "AS",
        "BETWEEN",
        "BY",
        "CASE",
        "CAST",
        "CREATE",
        "DISTINCT",
        "DROP",
        "ELSE",
        "END",
        "FALSE",
        "FROM",
        "FULL",
        "GROUP",
        "HAVING",
        "IN",
        "INNER",
        "INSERT",
        "INTO",
        "IS",
        "JOIN",
        "LEFT",
        "LIKE",
        "LIMIT",
        "NOT",
        "NULL",
        "ON",
        "OR",
        "OUTER",
        "RIGHT",
        "SELECT",
        "THEN",
        "TRUE",
        "VALUES",
        "WHEN",
        "WHERE",
        "WINDOW",
        "WITH",
        "WITHIN",
    )
)
"""Words that are never the name of something unless they are quoted."""


_SOURCE_NAME = re.compile("[a-zA-Z0-9_-]*")
LONGEST_NUMBER = 4000
"""In digits; Python refuses to read more of them, because it takes too long."""


class Reader:
    """The tokens of a text and how far they have been read."""

    def __init__(self, text: str, tokens: Sequence[Token]) -> None:
        self.text = text
        self._tokens = tokens
        self.index = 0
        self.lambda_variables: list[frozenset[str]] = []
        """The parameters of the lambdas around the place that is read."""

    @property
    def token(self) -> Token:
        """The next token."""
        return self._tokens[self.index]

    @property
    def position(self) -> Position:
        """Where the next token stands."""
        return self.token.position

    @property
    def start(self) -> int:
        """Where the next token begins, as an offset into the text."""
        return self.token.start

    @property
    def last_end(self) -> int:
        """Where the last token that was read ends."""
        return self._tokens[self.index - 1].end if self.index else 0

    def peek(self, ahead: int = 1) -> Token:
        """Returns a token further on."""
        return self._tokens[min(self.index + ahead, len(self._tokens) - 1)]

    def advance(self) -> Token:
        """Reads one token."""
        token = self.token
        if token.kind is not Kind.END:
            self.index += 1
        return token

    def at(self, *words: str, ahead: int = 0) -> bool:
        """Says whether exactly these words or signs follow."""
        return all(
            (token := self.peek(ahead + offset)).text == word and token.kind in (Kind.WORD, Kind.SIGN)
            for offset, word in enumerate(words)
        )

    def at_any(self, *words: str) -> bool:
        """Says whether one of these words or signs follows."""
        return any(self.at(word) for word in words)

    def at_end(self) -> bool:
        """Says whether all tokens have been read."""
        return self.token.kind is Kind.END

    def accept(self, *words: str) -> bool:
        """Reads these words if they follow."""
        if not self.at(*words):
            return False
        self.index += len(words)
        return True

    def expect(self, *words: str) -> Token:
        """Reads these words, or fails."""
        token = self.token
        for word in words:
            if not self.accept(word):
                self.fail_expecting(word)
        return token

    def choose(self, *words: str) -> str:
        """Reads one of these words and returns it, or fails."""
        for word in words:
            if self.accept(word):
                return word
        self.fail_expecting(*words)

    def listed(self, item: Callable[[], T], *, close: str | None = None) -> tuple[T, ...]:
        """Reads items separated by commas, and the closing sign if there is one."""
        items = [item()]
        while self.accept(","):
            items.append(item())
        if close is not None and not self.accept(close):
            self.fail_expecting(",", close)
        return tuple(items)

    def at_name(self) -> bool:
        """Says whether a name follows."""
        return self._is_name(self.token)

    @staticmethod
    def _is_name(token: Token) -> bool:
        return token.kind is Kind.QUOTED or (token.kind is Kind.WORD and token.text not in RESERVED)

    def name(self) -> str:
        """Reads the name of something: folded to upper case unless it is quoted."""
        if not self.at_name():
            self._fail_name()
        return self.advance().text

    def _fail_name(self) -> NoReturn:
        written = self.token.written
        if self.token.kind is not Kind.WORD or not self._is_name(self.peek()):
            self.fail()
        self.fail(
            f'"{written}" is a reserved keyword and it can\'t be used as an identifier. '
            f"You can use it as an identifier by escaping it as '{written}'"
        )

    def source_name(self) -> str:
        """Reads the name of a stream or table, or an alias of one: a topic and stores may be named after it."""
        position = self.position
        name = self.name()
        if not _SOURCE_NAME.fullmatch(name):
            message = (
                f"Illegal argument at Line: {position.line}, Col: {position.column}. "
                f"Source names may only contain alphanumeric values, '_' or '-'. Got: '{name}'"
            )
            raise SqlParseError(message, position=position, statement=self.statement())
        return name

    def string(self) -> str:
        """Reads a text in single quotes."""
        if self.token.kind is not Kind.STRING:
            self.fail_expecting("STRING")
        return self.advance().text

    def integer(self) -> int:
        """Reads a number without a fraction."""
        written = self.token.text
        if self.token.kind is not Kind.NUMBER or not written.isdecimal() or len(written) > LONGEST_NUMBER:
            self.fail_expecting("INTEGER_VALUE")
        return int(self.advance().text)

    def written(self, first: int) -> str:
        """Returns what was read since the token ``first``, as it was written, on one line and without comments."""
        parts: list[str] = []
        for index in range(first, self.index):
            is_apart = index > first and self._tokens[index - 1].end < self._tokens[index].start
            parts.append(f"{' ' if is_apart else ''}{self._tokens[index].written}")
        return "".join(parts)

    def fail_expecting(self, *words: str) -> NoReturn:
        """Raises: one of these words or signs should stand here."""
        if words == (")",):
            self.fail(f"missing ')' at {self._shown()}")
        shown = (word if word == "INTEGER_VALUE" else f"'{word}'" for word in words)
        listed = ", ".join(shown)
        self.fail(f"Expecting {listed if len(words) == 1 else '{' + listed + '}'}")

    def fail(self, problem: str | None = None, *, position: Position | None = None) -> NoReturn:
        """Raises: the next token cannot stand here."""
        place = position or self.position
        said = problem or f"Syntax error at or near {self._shown()} at {place}"
        message = f"{place}: Syntax Error\n{said}\nStatement: {self.statement()}"
        error = SqlParseError(message, position=place, statement=self.statement())
        error.locate(self.text, None)
        raise error

    def statement(self) -> str:
        """Returns the text of the statement that is read, with its semicolon."""
        first = self.index
        while first > 0 and not (self._tokens[first - 1].text == ";" and self._tokens[first - 1].kind is Kind.SIGN):
            first -= 1
        last = self.index
        while self._tokens[last].kind is not Kind.END and not (
            self._tokens[last].text == ";" and self._tokens[last].kind is Kind.SIGN
        ):
            last += 1
        return self.text[self._tokens[first].start : self._tokens[last].end].strip()

    def _shown(self) -> str:
        return "<EOF>" if self.token.kind is Kind.END else f"'{self.token.written}'"
