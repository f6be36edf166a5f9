"""``headrace sql``: statements of SQL."""

from headrace.cli.sql.command import sql

__all__ = ["sql"]
