"""Backfills over data frames: rows as records, sorted pages of them, the tasks that merge them, and results as rows."""
