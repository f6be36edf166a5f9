"""SQL tables as views over their topics: kept on the disk of this process, read as of one moment.

Start with ``view`` (the rows of one topic), then ``following`` (all views of a process).
"""

from __future__ import annotations

from pathlib import Path

from headrace.sql.tables.following import SqlTables
from headrace.topics.log import TopicLog


def open_tables(log: TopicLog, directory: Path) -> SqlTables:
    """Returns the tables of a log, whose views lie in a directory of their own; whoever opens them closes them."""
    return SqlTables(log, directory)


__all__ = ["SqlTables", "open_tables"]
