"""What values of SQL types do: numbers as Java computes them, calendars without limits, conversions."""
