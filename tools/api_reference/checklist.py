"""The public API of Kafka Streams, as a list of types and methods."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

SOURCE = Path(__file__).with_name("kafka_streams.json")


@dataclass(frozen=True, slots=True)
class Method:
    """A method, with its overloads counted together."""

    name: str
    overloads: int = 1
    protected: bool = False
    deprecated: bool = False
    since: str = ""


@dataclass(frozen=True, slots=True)
class KafkaType:
    """A class, interface or enum."""

    package: str
    name: str
    methods: tuple[Method, ...] = ()
    values: tuple[str, ...] = ()
    deprecated: bool = False
    since: str = ""

    @property
    def id(self) -> str:
        """Package and name, as the mapping's sections are called."""
        return f"{self.package}.{self.name}"


@dataclass(frozen=True, slots=True)
class Checklist:
    """All types, and the names of all settings with the version that brought them."""

    types: tuple[KafkaType, ...]
    settings: dict[str, str]

    @property
    def packages(self) -> tuple[str, ...]:
        """The packages, in the order of the list."""
        return tuple(dict.fromkeys(kafka.package for kafka in self.types))


def load(path: Path = SOURCE) -> Checklist:
    """Reads the list."""
    data = json.loads(path.read_text(encoding="utf-8"))
    types = [
        KafkaType(
            package,
            name,
            tuple(_method(method, facts) for method, facts in entry["methods"].items()),
            tuple(entry.get("values", ())),
            deprecated=entry.get("deprecated", False),
            since=entry.get("since", ""),
        )
        for package, entries in data["packages"].items()
        for name, entry in entries.items()
    ]
    return Checklist(tuple(types), data["settings"])


def _method(name: str, facts: str) -> Method:
    overloads, *words = facts.split(",")
    since = "".join(word.removeprefix("since-") for word in words if word.startswith("since-"))
    return Method(name, int(overloads), "protected" in words, "deprecated" in words, since)
