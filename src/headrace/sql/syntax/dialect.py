"""The words and signs of the language: sqlglot's tokenizer with a dialect of ours, and tokens that know their place."""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass
from enum import Enum
from typing import ClassVar

from sqlglot.dialects.dialect import Dialect
from sqlglot.errors import TokenError
from sqlglot.tokenizer_core import TokenType
from sqlglot.tokens import Tokenizer as SqlglotTokenizer

from headrace.sql.errors import Position, SqlParseError


class Kind(Enum):
    """Kind of a token."""

    WORD = "word"
    QUOTED = "quoted identifier"
    STRING = "string"
    NUMBER = "number"
    SIGN = "sign"
    END = "end of input"


@dataclass(frozen=True, slots=True)
class Token:
    """A word, a literal or a sign. ``text`` of a word is in upper case; quotes are taken off."""

    kind: Kind
    text: str
    written: str
    position: Position
    start: int
    end: int


class Ksql(Dialect):
    """The dialect: no keywords of sqlglot's own, because most of ours are also names of columns."""

    class Tokenizer(SqlglotTokenizer):
        """Words stay words; only signs of several characters are keywords to sqlglot."""

        QUOTES: ClassVar[list[str | tuple[str, str]]] = ["'"]
        IDENTIFIERS: ClassVar[list[str | tuple[str, str]]] = ["`", '"']
        STRING_ESCAPES: ClassVar[list[str]] = ["'"]
        COMMENTS: ClassVar[list[str | tuple[str, str]]] = ["--", ("/*", "*/")]
        NESTED_COMMENTS = False
        HINT_START = ""
        COMMANDS: ClassVar[set[TokenType]] = set()
        VAR_SINGLE_TOKENS: ClassVar[set[str]] = {"@"}
        NUMERIC_LITERALS: ClassVar[dict[str, str]] = {}
        KEYWORDS: ClassVar[dict[str, TokenType]] = {
            "->": TokenType.ARROW,
            "=>": TokenType.FARROW,
            ":=": TokenType.COLON_EQ,
            "||": TokenType.DPIPE,
            "<=": TokenType.LTE,
            ">=": TokenType.GTE,
            "<>": TokenType.NEQ,
            "!=": TokenType.NEQ,
        }


_LITERALS = {
    TokenType.STRING: Kind.STRING,
    TokenType.IDENTIFIER: Kind.QUOTED,
    TokenType.NUMBER: Kind.NUMBER,
    TokenType.VAR: Kind.WORD,
}


class Text:
    """A text and where its lines begin."""

    def __init__(self, text: str) -> None:
        self.text = text
        self._starts = [0, *(index + 1 for index, character in enumerate(text) if character == "\n")]

    def position(self, offset: int) -> Position:
        """Returns the line and column of a character of the text."""
        line = bisect_right(self._starts, offset) - 1
        return Position(line + 1, offset - self._starts[line] + 1)


def tokenize(text: str) -> list[Token]:
    """Returns the tokens of the text, the last of them the end of the input.

    >>> [token.text for token in tokenize("select a->`b` from s -- why")]
    ['SELECT', 'A', '->', 'b', 'FROM', 'S', '']
    """
    place = Text(text)
    try:
        found = Ksql().tokenize(text)
    except TokenError as error:
        end = place.position(len(text))
        message = f"{end}: Syntax Error\nA quoted text or a comment is not closed.\nStatement: {text}"
        failure = SqlParseError(message, position=end, statement=text)
        failure.locate(text, None)
        raise failure from error
    tokens: list[Token] = []
    for token in found:
        kind = _LITERALS.get(token.token_type, Kind.SIGN)
        written = text[token.start : token.end + 1]
        if kind is Kind.WORD and not written.replace("_", "a").replace("@", "a").isalnum():
            kind = Kind.SIGN
        word = token.text.upper() if kind is Kind.WORD else token.text
        joined = _join_tokens(tokens, kind, token.start)
        if joined is not None:
            tokens[-1] = Token(
                Kind.WORD, joined.text + word, joined.written + written, joined.position, joined.start, token.end + 1
            )
            continue
        tokens.append(Token(kind, word, written, place.position(token.start), token.start, token.end + 1))
    tokens.append(Token(Kind.END, "", "<EOF>", place.position(len(text)), len(text), len(text)))
    return tokens


def _join_tokens(tokens: list[Token], kind: Kind, start: int) -> Token | None:
    """Returns the number directly before a word: together they are one name, such as ``1ST``."""
    if kind is not Kind.WORD or not tokens:
        return None
    last = tokens[-1]
    return last if last.kind is Kind.NUMBER and last.end == start and last.text.isdigit() else None
