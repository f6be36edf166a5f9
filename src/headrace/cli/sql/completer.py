"""Tab completion at the prompt: keywords of the language, and names that the server knows."""

from __future__ import annotations

import re
import threading
from collections.abc import Iterable, Iterator
from contextlib import suppress

from prompt_toolkit.completion import CompleteEvent, Completer, Completion
from prompt_toolkit.document import Document

from headrace.cli.sql.client import SqlClient, SqlRequestError

_TEXT = """
ADD ADVANCE ALL ALTER AND ARRAY AS ASSERT AT BEGINNING BETWEEN BY CASE CAST CHANGES COLUMN CONNECTOR CONNECTORS CREATE
DEFINE DELETE DESCRIBE DISTINCT DROP ELSE EMIT END ESCAPE EXISTS EXPLAIN EXTENDED FINAL FROM FULL FUNCTION FUNCTIONS
GRACE GROUP HAVING HEADER HEADERS HOPPING IF IN INNER INSERT INTERVAL INTO IS JOIN KEY LEFT LIKE LIMIT LIST MAP NOT NULL
OFFSET ON OR ORDER OUTER PARTITION PAUSE PERIOD PRIMARY PRINT PROPERTIES QUERIES REPLACE RESUME RETENTION RIGHT SAMPLE
SELECT SESSION SET SHOW SINK SIZE SOURCE STREAM STREAMS STRUCT TABLE TABLES TERMINATE THEN TIMEOUT TOPIC TOPICS TUMBLING
TYPE TYPES UNDEFINE UNSET VALUES VARIABLES WHEN WHERE WINDOW WITH WITHIN ZONE
BIGINT BOOLEAN BYTES DATE DECIMAL DOUBLE INTEGER STRING TIME TIMESTAMP VARCHAR
KAFKA_TOPIC KEY_FORMAT VALUE_FORMAT FORMAT PARTITIONS REPLICAS WINDOW_TYPE WINDOW_SIZE WRAP_SINGLE_VALUE
ROWTIME ROWPARTITION ROWOFFSET WINDOWSTART WINDOWEND DAYS HOURS MINUTES SECONDS MILLISECONDS
"""
KEYWORDS = tuple(_TEXT.split())
COMMANDS = ("help", "exit", "quit", "run script '", "spool '", "spool off", "output json", "output table", "history")
_WORD = re.compile(r"[A-Za-z0-9_.$-]+$")
_LISTS = "SHOW STREAMS; SHOW TABLES; SHOW ALL TOPICS; SHOW QUERIES; SHOW FUNCTIONS; DESCRIBE STREAMS; DESCRIBE TABLES;"


class Names:
    """The names that the server knows, asked for in the background."""

    def __init__(self) -> None:
        self.sources: frozenset[str] = frozenset()
        self.columns: frozenset[str] = frozenset()
        self.topics: frozenset[str] = frozenset()
        self.queries: frozenset[str] = frozenset()
        self.functions: frozenset[str] = frozenset()

    def refresh(self, client: SqlClient) -> threading.Thread:
        """Asks the server again; returns the thread that does."""
        thread = threading.Thread(target=self._refresh, args=(client,), name="headrace-sql-names", daemon=True)
        thread.start()
        return thread

    def _refresh(self, client: SqlClient) -> None:
        # Who only types has no use for an error.
        with suppress(SqlRequestError, KeyError, TypeError):
            for entity in client.execute(_LISTS):
                match entity["@type"]:
                    case "streams":
                        self.sources = frozenset(each["name"] for each in entity["streams"])
                    case "tables":
                        self.sources |= {each["name"] for each in entity["tables"]}
                    case "kafka_topics":
                        self.topics = frozenset(each["name"] for each in entity["topics"])
                    case "queries":
                        self.queries = frozenset(each["id"] for each in entity["queries"])
                    case "function_names":
                        self.functions = frozenset(each["name"].upper() for each in entity["functions"])
                    case "source_descriptions":
                        self.columns |= {
                            field["name"] for each in entity["sourceDescriptions"] for field in each["fields"]
                        }


class SqlCompleter(Completer):
    """Offers what begins with the letters before the cursor; names first, then words of the language."""

    def __init__(self, names: Names) -> None:
        self._names = names

    def get_completions(self, document: Document, complete_event: CompleteEvent) -> Iterator[Completion]:
        """Yields what fits."""
        text = document.text_before_cursor
        if text.count("'") % 2:
            return
        found = _WORD.search(text)
        typed = found.group() if found else ""
        before = text[: len(text) - len(typed)].split()
        for word in self.offers(typed, before):
            yield Completion(word, start_position=-len(typed))

    def offers(self, typed: str, before: list[str]) -> Iterator[str]:
        """Yields the words that begin as what was typed; ``before`` is what stands before it."""
        last = before[-1].upper() if before else ""
        names = self._names
        groups: list[Iterable[str]]
        if not before:
            groups = [KEYWORDS, COMMANDS]
        elif last == "PRINT":
            groups = [names.topics]
        elif last in ("TERMINATE", "PAUSE", "RESUME"):
            groups = [names.queries, ("ALL",)]
        elif last in ("FROM", "JOIN", "INTO", "DESCRIBE", "STREAM", "TABLE"):
            groups = [names.sources, KEYWORDS]
        else:
            groups = [names.columns, names.sources, names.functions, KEYWORDS]
        seen: set[str] = set()
        for group in groups:
            for word in sorted(group):
                if word.upper().startswith(typed.upper()) and word not in seen and (typed or group is not KEYWORDS):
                    seen.add(word)
                    # A word of the language is written as the user writes.
                    yield word.lower() if group is KEYWORDS and typed and typed.islower() else word
