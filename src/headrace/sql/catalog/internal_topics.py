"""Topics that are not the users' own: those of servers, of applications and of Kafka.

As in ksqlDB, they are left out of ``SHOW TOPICS`` and cannot be written by statements. Those of SQL servers cannot be
read as sources either: what is in the command topic is carried out by every server.
"""

from __future__ import annotations

from headrace.sql.errors import SqlStatementError

_SERVERS = "_headrace"
"""What the names of all topics begin with that SQL servers make for themselves."""
_BEGINNINGS = (_SERVERS, "__", "_confluent")
_ENDS = ("-changelog", "-repartition")
_NAMES = frozenset({"_schemas", "connect-configs", "connect-offsets", "connect-status", "connect-statuses"})
_FOREIGN_KEYS = "-KTABLE-FK-JOIN-SUBSCRIPTION-"


def is_internal(topic: str) -> bool:
    """Tells whether a topic is one that only its application, its server or Kafka itself writes.

    >>> is_internal("_headrace_sql_default__commands"), is_internal("shop-totals-changelog"), is_internal("orders")
    (True, True, False)
    """
    return (
        topic.startswith(_BEGINNINGS)
        or topic.endswith(_ENDS)
        or topic in _NAMES
        or (_FOREIGN_KEYS in topic and topic.endswith("-topic"))
    )


def check_readable(topic: str) -> None:
    """Raises if no stream or table may be made of the topic.

    >>> check_readable("_headrace_sql_default__commands")
    Traceback (most recent call last):
    ...
    headrace.sql.errors.SqlStatementError: Topic '_headrace_sql_default__commands' belongs to the SQL servers ...
    """
    if topic.startswith(_SERVERS):
        message = f"Topic '{topic}' belongs to the SQL servers and is no source of statements; PRINT shows its records."
        raise SqlStatementError(message)


def check_writable(topic: str) -> None:
    """Raises if statements may not make, write or delete the topic.

    >>> check_writable("orders")
    >>> check_writable("shop-totals-changelog")
    Traceback (most recent call last):
    ...
    headrace.sql.errors.SqlStatementError: Topic 'shop-totals-changelog' is internal, and read-only for statements; ...
    """
    check_readable(topic)
    if is_internal(topic):
        message = (
            f"Topic '{topic}' is internal, and read-only for statements; name another one. Internal are "
            f"{', '.join(f'{each}…' for each in _BEGINNINGS)}, {', '.join(f'…{each}' for each in _ENDS)}, "
            f"{', '.join(sorted(_NAMES))}, and the topics of foreign-key joins."
        )
        raise SqlStatementError(message)
