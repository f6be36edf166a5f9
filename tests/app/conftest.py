from __future__ import annotations

from pathlib import Path

import pytest

from tests.app.kit import make_topics


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """A state directory whose log has the topic ``in`` with two partitions."""
    make_topics(tmp_path, **{"in": 2})
    return tmp_path
