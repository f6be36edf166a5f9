"""Dates and times by the patterns of Java, ``yyyy-MM-dd'T'HH:mm:ss.SSSX``."""

from headrace.sql.functions.java_time.formatting import format_date, format_time, format_timestamp
from headrace.sql.functions.java_time.lenient_dates import parse_date
from headrace.sql.functions.java_time.parsing import parse_days, parse_time, parse_timestamp
from headrace.sql.functions.java_time.patterns import pattern_of

__all__ = [
    "format_date",
    "format_time",
    "format_timestamp",
    "parse_date",
    "parse_days",
    "parse_time",
    "parse_timestamp",
    "pattern_of",
]
