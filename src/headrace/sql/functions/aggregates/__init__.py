"""Aggregate functions."""

from headrace.sql.functions.aggregates import collecting, counting, extremes, offsets, statistics, top

AGGREGATES = (
    *counting.FUNCTIONS,
    *collecting.FUNCTIONS,
    *extremes.FUNCTIONS,
    *offsets.FUNCTIONS,
    *statistics.FUNCTIONS,
    *top.FUNCTIONS,
)
