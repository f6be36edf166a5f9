from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.console.kit import Site


@pytest.fixture
def site(tmp_path: Path) -> Iterator[Site]:
    found = Site(tmp_path)
    yield found
    found.close()
