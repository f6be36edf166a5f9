from __future__ import annotations

from typing import Any

import pytest

from headrace.sql.functions.java_time import format_timestamp, parse_timestamp, pattern_of
from tests.sql.expressions.rows import value

SUNDAY = 1_600_000_000_123  # 2020-09-13T12:26:40.123Z


@pytest.mark.parametrize(
    ("pattern", "expected"),
    [
        ("yyyy-MM-dd'T'HH:mm:ss.SSSX", "2020-09-13T12:26:40.123Z"),
        ("yy/M/d", "20/9/13"),
        ("EEE, d MMM yyyy", "Sun, 13 Sep 2020"),
        ("EEEE MMMM", "Sunday September"),
        ("h:mm a", "12:26 PM"),
        ("k K", "12 0"),
        ("D w Q e", "257 38 3 1"),
        ("SSSSSS S", "123000 1"),
        ("'o''clock'", "o'clock"),
        ("G", "AD"),
    ],
)
def test_patterns_write(pattern: str, expected: str) -> None:
    assert format_timestamp(SUNDAY, pattern) == expected


@pytest.mark.parametrize(
    ("pattern", "zone", "expected"),
    [
        ("HH:mm z", "America/New_York", "08:26 EDT"),
        ("HH:mm VV", "Europe/Rome", "14:26 Europe/Rome"),
        ("HHX", "+05:30", "17+0530"),
        ("XXX", "+05:30", "+05:30"),
        ("Z", "-03:00", "-0300"),
        ("O", "+02:00", "GMT+2"),
    ],
)
def test_patterns_write_local_times(pattern: str, zone: str, expected: str) -> None:
    assert format_timestamp(SUNDAY, pattern, zone) == expected


@pytest.mark.parametrize(
    ("text", "pattern", "expected"),
    [
        ("2020-09-13T12:26:40.123Z", "yyyy-MM-dd'T'HH:mm:ss.SSSX", SUNDAY),
        ("2020-09-13T14:26:40.123+02:00", "yyyy-MM-dd'T'HH:mm:ss.SSSXXX", SUNDAY),
        ("20200913122640", "yyyyMMddHHmmss", SUNDAY - 123),
        ("13 SEP 2020", "d MMM yyyy", 1_599_955_200_000),
        ("2020-09-13 05:26:40 America/Los_Angeles", "yyyy-MM-dd HH:mm:ss VV", SUNDAY - 123),
        ("2020-09-13 05:26:40 PST", "yyyy-MM-dd HH:mm:ss zzz", SUNDAY - 123),
        ("1970-01", "yyyy-MM[-dd]", 0),
        ("1970-01-02", "yyyy-MM[-dd]", 86_400_000),
        ("2021-02-31", "yyyy-MM-dd", 1_614_470_400_000),
    ],
)
def test_patterns_read(text: str, pattern: str, expected: int) -> None:
    assert parse_timestamp(text, pattern) == expected


@pytest.mark.parametrize("pattern", ["yyyy-bb", "'open", "T"])
def test_what_is_no_pattern_is_refused(pattern: str) -> None:
    with pytest.raises(ValueError, match=r"Unknown pattern letter|incomplete string literal"):
        pattern_of(pattern)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("DATEADD(HOURS, 47, FROM_DAYS(1))", 2),
        ("DATESUB(DAYS, 2, FROM_DAYS(1))", -1),
        ("TIMEADD(MINUTES, -90, clock)", 84_600_000),
        ("TIMESTAMPSUB(MILLISECONDS, 1, at)", 1_599_999_999_999),
        ("CONVERT_TZ(at, 'Europe/Rome', 'Asia/Tokyo')", 1_600_000_000_000 + 7 * 3_600_000),
        ("FORMAT_DATE(day, 'HH')", None),
        ("FORMAT_TIME(clock, 'yyyy')", None),
        ("PARSE_DATE('12:00', 'HH:mm')", None),
        ("PARSE_DATE('00:00', 'HH:mm')", 0),
        ("PARSE_DATE('1971', 'yyyy')", 365),
        ("PARSE_DATE('1971-2', 'yyyy-MM')", 396),
        ("PARSE_DATE('19710201', 'yyyyMMdd')", 396),
        ("PARSE_DATE('1 feb 71 at noon', 'dd MMMM yy')", 396),
        ("PARSE_DATE('1970-13-01', 'yyyy-MM-dd')", 365),
        ("PARSE_DATE('1970-02-30', 'yyyy-MM-dd')", 60),
        ("PARSE_DATE('71-032', 'yy-DDD')", 396),
        ("PARSE_DATE('Thursday, Jan 1, 1970', 'EEE, MMM d, yyyy')", 0),
        ("PARSE_DATE('1970-01-02T02:00+0200', 'yyyy-MM-dd''T''HH:mmZ')", 1),
        ("PARSE_DATE('1970-01-02 12 AM', 'yyyy-MM-dd hh a')", 1),
        ("PARSE_DATE('1970-01-02 PM', 'yyyy-MM-dd a')", None),
        ("PARSE_DATE('1970/01', 'yyyy-MM')", None),
        ("PARSE_DATE('1970-Q1', 'yyyy-''Q''Q')", None),
        ("PARSE_DATE('', '')", None),
        ("PARSE_TIME('13 PM', 'hh a')", 46_800_000),
        ("PARSE_TIME('13', 'HH')", 46_800_000),
        ("PARSE_TIME('01', 'hh')", None),
        ("PARSE_TIME('30:05', 'mm:ss')", None),
        ("STRINGTODATE('nope', 'yyyy')", None),
        ("STRINGTODATE('1971', 'yyyy')", None),
        ("STRINGTODATE('1971-02', 'yyyy-MM')", None),
        ("STRINGTODATE('1971-002', 'yyyy-DDD')", 366),
        ("TIMESTAMPTOSTRING(0, 'HH:mm', 'Nowhere/None')", None),
        ("STRINGTOTIMESTAMP('00:30', 'HH:mm', 'Europe/Rome')", -1_800_000),
        ("at AT TIME ZONE 'Europe/Rome'", 1_600_000_000_000 + 7_200_000),
    ],
)
def test_date_functions(text: str, expected: Any) -> None:
    assert value(text) == expected
