"""Values of SQL types: numbers as Java computes them, calendars without limits, conversions."""
