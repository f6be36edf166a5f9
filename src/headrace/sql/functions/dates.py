"""Functions on dates and times."""

from __future__ import annotations

from collections.abc import Callable

from headrace.runtime.task_clock import task_clock_ms
from headrace.sql.functions.definitions import ScalarFunction, overload, scalar
from headrace.sql.functions.java_time import (
    format_date,
    format_time,
    format_timestamp,
    parse_date,
    parse_days,
    parse_time,
    parse_timestamp,
)
from headrace.sql.types.times import DAY_MS, between_zones

CATEGORY = "Date and time"
_UNIT_MS = {"DAYS": DAY_MS, "HOURS": 3_600_000, "MINUTES": 60_000, "SECONDS": 1000, "MILLISECONDS": 1}


def same(value: int) -> int:
    """Returns the value."""
    return value


def current_days() -> int:
    """Returns the days since 1970-01-01, by the clock of the query."""
    return task_clock_ms() // DAY_MS


def current_millis() -> int:
    """Returns the milliseconds since 1970-01-01, by the clock of the query."""
    return task_clock_ms()


def date_plus(unit: str, interval: int, days: int) -> int:
    """Returns a date some time later; parts of a day do not count."""
    change = abs(interval) * _UNIT_MS[unit] // DAY_MS
    return days + (change if interval >= 0 else -change)


def date_minus(unit: str, interval: int, days: int) -> int:
    """Returns a date some time earlier; parts of a day do not count."""
    return date_plus(unit, -interval, days)


def time_plus(unit: str, interval: int, millis: int) -> int:
    """Returns a time of day some time later, on that day or another."""
    return (millis + interval * _UNIT_MS[unit]) % DAY_MS


def time_minus(unit: str, interval: int, millis: int) -> int:
    """Returns a time of day some time earlier, on that day or another."""
    return time_plus(unit, -interval, millis)


def timestamp_plus(unit: str, interval: int, epoch_ms: int) -> int:
    """Returns an instant some time later."""
    return epoch_ms + interval * _UNIT_MS[unit]


def timestamp_minus(unit: str, interval: int, epoch_ms: int) -> int:
    """Returns an instant some time earlier."""
    return timestamp_plus(unit, -interval, epoch_ms)


def _shifted(
    name: str, what: str, word: str, function: Callable[[str, int, int], int], example: tuple[str, str]
) -> ScalarFunction:
    return scalar(
        name,
        f"Returns a {what} some time {word}: DAYS, HOURS, MINUTES, SECONDS or MILLISECONDS.",
        CATEGORY,
        [example],
        overload(f"(unit INTERVALUNIT, interval INT, value {what}) {what}", function),
    )


FUNCTIONS = (
    scalar(
        "convert_tz",
        "Returns the local time in one zone for a local time in another.",
        CATEGORY,
        [
            (
                "CAST(CONVERT_TZ(CAST('2021-01-01T12:00' AS TIMESTAMP), 'UTC', '+02:00') AS STRING)",
                "'2021-01-01T14:00:00.000'",
            )
        ],
        overload("(timestamp TIMESTAMP, fromZone STRING, toZone STRING) TIMESTAMP", between_zones),
    ),
    _shifted(
        "dateadd",
        "DATE",
        "later",
        date_plus,
        ("DATEADD(DAYS, 1, CAST('2021-02-28' AS DATE))", "CAST('2021-03-01' AS DATE)"),
    ),
    _shifted(
        "datesub",
        "DATE",
        "earlier",
        date_minus,
        ("DATESUB(DAYS, 1, CAST('2021-03-01' AS DATE))", "CAST('2021-02-28' AS DATE)"),
    ),
    _shifted(
        "timeadd", "TIME", "later", time_plus, ("TIMEADD(HOURS, 2, CAST('23:30' AS TIME))", "CAST('01:30' AS TIME)")
    ),
    _shifted(
        "timesub",
        "TIME",
        "earlier",
        time_minus,
        ("TIMESUB(MINUTES, 5, CAST('00:03' AS TIME))", "CAST('23:58' AS TIME)"),
    ),
    _shifted(
        "timestampadd",
        "TIMESTAMP",
        "later",
        timestamp_plus,
        ("TIMESTAMPADD(SECONDS, 5, CAST('2021-01-01' AS TIMESTAMP))", "CAST('2021-01-01T00:00:05' AS TIMESTAMP)"),
    ),
    _shifted(
        "timestampsub",
        "TIMESTAMP",
        "earlier",
        timestamp_minus,
        ("TIMESTAMPSUB(SECONDS, 5, CAST('2021-01-01' AS TIMESTAMP))", "CAST('2020-12-31T23:59:55' AS TIMESTAMP)"),
    ),
    scalar(
        "datetostring",
        "Returns a number of days since 1970-01-01 as text, by a pattern of Java's DateTimeFormatter.",
        CATEGORY,
        [("DATETOSTRING(18628, 'dd.MM.yyyy')", "'01.01.2021'")],
        overload("(days INT, pattern STRING) STRING", format_date),
    ),
    scalar(
        "format_date",
        "Returns a date as text, by a pattern of Java's DateTimeFormatter.",
        CATEGORY,
        [("FORMAT_DATE(CAST('2021-01-02' AS DATE), 'd MMM yyyy')", "'2 Jan 2021'")],
        overload("(date DATE, pattern STRING) STRING", format_date),
    ),
    scalar(
        "format_time",
        "Returns a time of day as text, by a pattern of Java's DateTimeFormatter.",
        CATEGORY,
        [("FORMAT_TIME(CAST('13:45' AS TIME), 'hh:mm a')", "'01:45 PM'")],
        overload("(time TIME, pattern STRING) STRING", format_time),
    ),
    scalar(
        "format_timestamp",
        "Returns an instant as text, by a pattern of Java's DateTimeFormatter, in UTC or a zone.",
        CATEGORY,
        [("FORMAT_TIMESTAMP(CAST('2021-01-01' AS TIMESTAMP), 'HH:mm', '+01:00')", "'01:00'")],
        overload("(timestamp TIMESTAMP, pattern STRING) STRING", format_timestamp),
        overload("(timestamp TIMESTAMP, pattern STRING, zone STRING) STRING", format_timestamp),
    ),
    scalar(
        "from_days",
        "Returns the date of a number of days since 1970-01-01.",
        CATEGORY,
        [("FROM_DAYS(1)", "CAST('1970-01-02' AS DATE)")],
        overload("(days INT) DATE", same),
    ),
    scalar(
        "from_unixtime",
        "Returns the instant of a number of milliseconds since 1970-01-01.",
        CATEGORY,
        [("FROM_UNIXTIME(1000)", "CAST('1970-01-01T00:00:01' AS TIMESTAMP)")],
        overload("(millis BIGINT) TIMESTAMP", same),
    ),
    scalar(
        "parse_date",
        "Returns the date that a text means by a pattern of Java's SimpleDateFormat.",
        CATEGORY,
        [("PARSE_DATE('2 Jan 2021', 'd MMM yyyy')", "CAST('2021-01-02' AS DATE)")],
        overload("(text STRING, pattern STRING) DATE", parse_date),
    ),
    scalar(
        "parse_time",
        "Returns the time of day that a text means by a pattern of Java's DateTimeFormatter.",
        CATEGORY,
        [("PARSE_TIME('01:45 PM', 'hh:mm a')", "CAST('13:45' AS TIME)")],
        overload("(text STRING, pattern STRING) TIME", parse_time),
    ),
    scalar(
        "parse_timestamp",
        "Returns the instant that a text means by a pattern of Java's DateTimeFormatter, in UTC or a zone.",
        CATEGORY,
        [("PARSE_TIMESTAMP('2021', 'yyyy')", "CAST('2021-01-01' AS TIMESTAMP)")],
        overload("(text STRING, pattern STRING) TIMESTAMP", parse_timestamp),
        overload("(text STRING, pattern STRING, zone STRING) TIMESTAMP", parse_timestamp),
    ),
    scalar(
        "stringtodate",
        "Returns the days since 1970-01-01 of the date that a text means by a pattern of Java's DateTimeFormatter.",
        CATEGORY,
        [("STRINGTODATE('02.01.1970', 'dd.MM.yyyy')", "1")],
        overload("(text STRING, pattern STRING) INT", parse_days),
    ),
    scalar(
        "stringtotimestamp",
        "Returns the milliseconds since 1970-01-01 of the instant that a text means by a pattern.",
        CATEGORY,
        [("STRINGTOTIMESTAMP('1970-01-01 00:01', 'yyyy-MM-dd HH:mm')", "CAST(60000 AS BIGINT)")],
        overload("(text STRING, pattern STRING) BIGINT", parse_timestamp),
        overload("(text STRING, pattern STRING, zone STRING) BIGINT", parse_timestamp),
    ),
    scalar(
        "timestamptostring",
        "Returns a number of milliseconds since 1970-01-01 as text, by a pattern, in UTC or a zone.",
        CATEGORY,
        [("TIMESTAMPTOSTRING(0, 'yyyy-MM-dd HH:mm:ss')", "'1970-01-01 00:00:00'")],
        overload("(millis BIGINT, pattern STRING) STRING", format_timestamp),
        overload("(millis BIGINT, pattern STRING, zone STRING) STRING", format_timestamp),
    ),
    scalar(
        "unix_date",
        "Returns the days since 1970-01-01, of today or of a date.",
        CATEGORY,
        [("UNIX_DATE(CAST('1970-01-03' AS DATE))", "2")],
        overload("() INT", current_days),
        overload("(date DATE) INT", same),
    ),
    scalar(
        "unix_timestamp",
        "Returns the milliseconds since 1970-01-01, of now or of an instant.",
        CATEGORY,
        [("UNIX_TIMESTAMP(CAST('1970-01-01T00:00:01' AS TIMESTAMP))", "CAST(1000 AS BIGINT)")],
        overload("() BIGINT", current_millis),
        overload("(timestamp TIMESTAMP) BIGINT", same),
    ),
)
