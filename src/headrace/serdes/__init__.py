"""Serdes: how keys and values become bytes and come back, in the layouts that Kafka's own serdes use."""

from headrace.serdes.base import BaseSerde, Serde
from headrace.serdes.custom import CustomSerde
from headrace.serdes.factories import Serdes
from headrace.serdes.json import JsonSerde, TypedJsonSerde
from headrace.serdes.lists import ListSerde
from headrace.serdes.primitives import (
    BooleanSerde,
    BytesSerde,
    DoubleSerde,
    FloatSerde,
    IntegerSerde,
    LongSerde,
    ShortSerde,
    StringSerde,
    UuidSerde,
    VoidSerde,
)
from headrace.serdes.windowed import SessionWindowedSerde, TimeWindowedSerde

__all__ = [
    "BaseSerde",
    "BooleanSerde",
    "BytesSerde",
    "CustomSerde",
    "DoubleSerde",
    "FloatSerde",
    "IntegerSerde",
    "JsonSerde",
    "ListSerde",
    "LongSerde",
    "Serde",
    "Serdes",
    "SessionWindowedSerde",
    "ShortSerde",
    "StringSerde",
    "TimeWindowedSerde",
    "TypedJsonSerde",
    "UuidSerde",
    "VoidSerde",
]
