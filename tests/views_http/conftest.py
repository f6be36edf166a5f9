from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.views_http.running import Running


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    """An application with a store of every kind, served, with some records in it."""
    found = Running(tmp_path_factory.mktemp("running"))
    yield found
    found.close()
