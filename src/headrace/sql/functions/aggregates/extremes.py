"""MIN and MAX."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from headrace.sql.functions.definitions import Aggregate, AggregateFunction, AggregateOverload
from headrace.sql.functions.signatures import signature
from headrace.sql.types import BIGINT, SqlType

_TYPES = ("INT", "BIGINT", "DOUBLE", "DECIMAL", "DATE", "TIME", "TIMESTAMP", "STRING", "BYTES")


@dataclass(frozen=True)
class Extreme(Aggregate):
    """The smallest or largest value; NULL until there is one."""

    result_type: SqlType
    largest: bool

    @property
    def state_type(self) -> SqlType:  # type: ignore[override]  # the value is its own state
        return self.result_type

    def initialize(self) -> Any:
        return None

    def aggregate(self, state: Any, *values: Any) -> Any:
        return self.merge(state, values[0])

    def merge(self, left: Any, right: Any) -> Any:
        if left is None or right is None:
            return right if left is None else left
        return max(left, right) if self.largest else min(left, right)


def _maker(*, largest: bool) -> Callable[[Sequence[SqlType | None], Sequence[Any], Any], Aggregate]:
    return lambda types, constants, settings: Extreme(types[0] or BIGINT, largest)


FUNCTIONS = tuple(
    AggregateFunction(
        name,
        f"Returns the {words} value of a column, NULL values aside.",
        "Aggregate",
        (),
        tuple(AggregateOverload(signature(f"(value {one}) {one}"), _maker(largest=largest)) for one in _TYPES),
    )
    for name, words, largest in (("MAX", "largest", True), ("MIN", "smallest", False))
)
