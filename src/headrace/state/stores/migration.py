"""Migration of a store to another serde."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from headrace.arguments.signatures import describe_function, takes
from headrace.errors import TopologyError, describe_value
from headrace.serdes import Serde


@dataclass(frozen=True)
class Migration:
    """The serde that a store's values were written with before, and how a former value becomes a new one.

    `headrace plan-change --apply` rewrites the rows of the store with the serde that it has now. Afterwards the
    migration has no effect, and may be left out.

    >>> from headrace import Materialized, Serdes
    >>> cents = Migration(Serdes.double(), lambda euros: round(euros * 100))
    >>> Materialized("totals", value_serde=Serdes.long(), migrate=cents).migrate.convert(1.25)
    125
    """

    value_serde: Serde[Any]
    """Serde of the values that are there."""
    convert: Callable[[Any], Any] | None = None
    """Takes a former value and returns the new one; None deletes the row. Without it values stay what they are."""

    def __post_init__(self) -> None:
        if not (hasattr(self.value_serde, "deserializer") and hasattr(self.value_serde, "serializer")):
            found = describe_value(self.value_serde)
            message = f"Migration: value_serde must be the serde that values were written with; found {found}"
            raise TopologyError(message)
        if self.convert is not None and not (callable(self.convert) and takes(self.convert, 1)):
            given = self.convert
            found = describe_function(given) if callable(given) else describe_value(given)
            message = f"Migration: convert must be a function (value); found {found}"
            raise TopologyError(message)
