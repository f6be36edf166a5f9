"""SQL tables as views over their topics: kept on the disk of this process, read as of one moment.

Start with ``view`` (the rows of one topic), then ``table_views`` (all views of a process).
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from headrace.sql.reading.tables.table_views import SqlTables
from headrace.topics.log import TopicLog
from headrace.views.changelog_follower import wall_clock_ms


def open_tables(log: TopicLog, directory: Path, *, clock: Callable[[], int] = wall_clock_ms) -> SqlTables:
    """Returns the tables of a log, whose views lie in a directory of their own; whoever opens them closes them.

    ``clock`` tells the time in milliseconds by which rows with ``TTL_CLOCK='WALL_CLOCK'`` expire.
    """
    return SqlTables(log, directory, clock=clock)


__all__ = ["SqlTables", "open_tables"]
