from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tests.sql.server.kit import SqlPlace


@pytest.fixture
def place(tmp_path: Path) -> Iterator[SqlPlace]:
    """A log without topics, and servers on it."""
    # Imported here: most tests of SQL need no server.
    from tests.sql.server.kit import SqlPlace

    made = SqlPlace(tmp_path)
    yield made
    made.close()
