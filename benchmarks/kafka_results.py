"""Figures of the benchmark next to Kafka Streams, kept in a file for plots."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

FILE = Path(__file__).parent / "results" / "kafka.json"
STATELESS_FACTOR, STATEFUL_FACTOR = 1.5, 2.0
"""How many times Kafka Streams' rate Headrace's has to be."""


@dataclass(frozen=True)
class Figures:
    """Results of a side with a program."""

    rate: float
    """Records/s."""
    cpu: float
    """Seconds of processor time per million records."""
    p50: float | None
    """Milliseconds from a record to its result; None if the side was tens of seconds behind when it was measured."""
    p99: float | None
    cores: float
    """Processor time per second, at the rate of the latencies."""
    missed: tuple[str, ...] = ()
    """Targets of latency and cores that were missed."""


@dataclass(frozen=True)
class Result:
    """A program on both sides."""

    name: str
    title: str
    kafka_streams: Figures
    headrace: Figures

    @property
    def ratio(self) -> float:
        """How many times Kafka Streams' rate Headrace has."""
        return self.headrace.rate / self.kafka_streams.rate

    @property
    def wanted_ratio(self) -> float:
        return rate_factor(self.name)


def rate_factor(program: str) -> float:
    """Returns how many times Kafka Streams' rate is wanted of a program."""
    return STATELESS_FACTOR if program == "a" else STATEFUL_FACTOR


def read_results(file: Path = FILE) -> list[Result]:
    """Returns the kept figures of all programs."""
    programs = json.loads(file.read_text(encoding="utf-8"))["programs"]
    return [
        Result(name, found["title"], _figures(found["kafka-streams"]), _figures(found["headrace"]))
        for name, found in sorted(programs.items())
    ]


def _figures(found: dict[str, Any]) -> Figures:
    return Figures(**found | {"missed": tuple(found.get("missed", ()))})


def keep(file: Path, program: str, title: str, side: str, figures: dict[str, Any]) -> None:
    """Puts figures of a side into a file, which is made if it is missing; what else is in it stays."""
    kept: dict[str, Any] = json.loads(file.read_text(encoding="utf-8")) if file.exists() else {"programs": {}}
    kept["programs"].setdefault(program, {"title": title}).setdefault(side, {}).update(figures)
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(json.dumps(kept, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
