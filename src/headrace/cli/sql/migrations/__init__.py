"""``headrace sql migrations``: files of statements that are carried out once, in order.

``files`` reads them, ``metadata`` knows which of them were carried out, ``command`` has the commands.
"""

from headrace.cli.sql.migrations.command import migrations

__all__ = ["migrations"]
