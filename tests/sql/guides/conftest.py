from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.sql.guides.kit import Guide, guide_on


@pytest.fixture
def guide(tmp_path: Path) -> Iterator[Guide]:
    with guide_on(tmp_path, {"ksql.functions.python.modules": "tests.sql.guides.formulas"}) as made:
        yield made
