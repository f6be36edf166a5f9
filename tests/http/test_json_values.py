"""Whatever a serde makes, JSON comes out."""

from __future__ import annotations

import json
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from enum import Enum
from typing import Any
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace.http.json_values import formatting, to_json
from headrace.windows import TimeWindow, Windowed


@dataclass
class Order:
    id: int
    parts: list[bytes]


class Colour(Enum):
    RED = "red"


RING: list[Any] = []
RING.append(RING)


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (Order(1, [b"a", b"\xff"]), {"id": 1, "parts": ["a", "/w=="]}),
        (Decimal("1.10"), "1.10"),
        (UUID(int=5), "00000000-0000-0000-0000-000000000005"),
        (datetime(2026, 1, 31, tzinfo=UTC), "2026-01-31T00:00:00+00:00"),
        (timedelta(seconds=90), 90.0),
        (Colour.RED, "red"),
        ({1: 2, None: 3, (1, 2): 4}, {"1": 2, "None": 3, "[1, 2]": 4}),
        ([float("nan"), float("inf"), 1.5], ["nan", "inf", 1.5]),
        ({"a": {3}}, {"a": [3]}),
        (Windowed("k", TimeWindow(0, 5)), {"key": "k", "window": {"start_ms": 0, "end_ms": 5}}),
        ("\ud800", "\ud800"),
        (2**70, 2**70),
    ],
)
def test_values_become_json(value: Any, expected: Any) -> None:
    assert json.loads(to_json(value)) == expected


class Plain:
    def __init__(self) -> None:
        self.id, self.parts, self._own = 1, {2}, 3


class Slotted:
    __slots__ = ("id",)


def test_objects_are_never_shown_as_addresses() -> None:
    assert json.loads(to_json([Plain(), Slotted(), {"at": Plain()}, len])) == [
        {"id": 1, "parts": [2]},
        f"<{__name__}.Slotted object>",
        {"at": {"id": 1, "parts": [2]}},
        "<built-in function len>",
    ]


def test_formatter_shows_what_json_does_not_have() -> None:
    def show(value: Any) -> Any:
        if isinstance(value, Slotted):
            raise ValueError(value)
        return {"order": value.id} if isinstance(value, Order) else NotImplemented

    with formatting(show):
        shown = json.loads(to_json([Order(7, []), Plain(), Slotted(), Windowed(Order(8, []), TimeWindow(0, 5))]))
    assert shown == [
        {"order": 7},
        {"id": 1, "parts": [2]},
        f"<{__name__}.Slotted object>",
        {"key": {"order": 8}, "window": {"start_ms": 0, "end_ms": 5}},
    ]
    assert json.loads(to_json(Order(7, []))) == {"id": 7, "parts": []}


def test_a_ring_has_an_end() -> None:
    json.loads(to_json(RING))


@given(
    st.recursive(
        st.none() | st.booleans() | st.floats() | st.text() | st.binary(),
        lambda each: st.lists(each) | st.dictionaries(st.text() | st.integers() | st.binary(), each),
    )
)
def test_it_never_fails_and_is_ascii(value: Any) -> None:
    text = to_json(value)
    assert text.isascii()
    json.loads(text)
