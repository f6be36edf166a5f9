from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import pytest


@dataclass(frozen=True)
class FakeStoreBuilder:
    """All that a topology asks of a builder."""

    name: str
    kind: str = "key_value"
    logging: bool = True

    def with_logging_disabled(self) -> FakeStoreBuilder:
        return replace(self, logging=False)


StoreFactory = Callable[..., FakeStoreBuilder]


@pytest.fixture
def store() -> StoreFactory:
    return FakeStoreBuilder
