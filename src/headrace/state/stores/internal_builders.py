"""Builders of the stores that the DSL needs for itself."""

from __future__ import annotations

from typing import Any

from headrace.serdes import Serde
from headrace.state.stores.builder import StoreBuilder
from headrace.state.stores.suppliers import InternalSupplier

AnySerde = Serde[Any] | None


def suppress_buffer_builder(name: str, key_serde: AnySerde, value_serde: AnySerde) -> StoreBuilder:
    """Builds a `SuppressBuffer`.

    >>> suppress_buffer_builder("wait", None, None).kind
    'suppress'
    """
    return StoreBuilder("suppress", InternalSupplier(name, persistent=False), key_serde, value_serde)


def time_ordered_buffer_builder(
    name: str, key_serde: AnySerde, value_serde: AnySerde, *, grace_ms: int
) -> StoreBuilder:
    """Builds a `TimeOrderedBuffer`.

    >>> time_ordered_buffer_builder("wait", None, None, grace_ms=10).kind
    'buffer'
    """
    return StoreBuilder("buffer", InternalSupplier(name, grace_ms=grace_ms), key_serde, value_serde)


def unmatched_store_builder(
    name: str,
    key_serde: AnySerde,
    left_value_serde: AnySerde,
    right_value_serde: AnySerde,
    *,
    persistent: bool = True,
) -> StoreBuilder:
    """Builds an `UnmatchedStore`.

    >>> unmatched_store_builder("wait", None, None, None).kind
    'unmatched'
    """
    supplier = InternalSupplier(name, persistent=persistent)
    return StoreBuilder("unmatched", supplier, key_serde, left_value_serde, right_value_serde)


def subscription_store_builder(
    name: str, foreign_key_serde: AnySerde, primary_key_serde: AnySerde, value_serde: AnySerde
) -> StoreBuilder:
    """Builds a `SubscriptionStore`.

    >>> subscription_store_builder("asked", None, None, None).kind
    'subscription'
    """
    return StoreBuilder("subscription", InternalSupplier(name), foreign_key_serde, value_serde, primary_key_serde)
