from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.views.kit import Place


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Place]:
    """A log with a topic ``in`` of three partitions."""
    made = Place(tmp_path, **{"in": 3})
    yield made
    made.close()
