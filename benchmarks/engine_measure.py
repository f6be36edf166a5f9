"""What a measurement of the engine's benchmark is, and what both sides are compared by."""

from __future__ import annotations

import json
import statistics
import zlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Self

from benchmarks.engine_load import Load
from benchmarks.engine_programs import Program
from headrace.topics.log import Raw, TopicLog


@dataclass(frozen=True)
class Answer:
    """What came out, in a form that does not depend on the order."""

    rows: int
    """Records, or keys where only the last count of a key matters."""
    total: int
    """The sum of all counts."""
    digest: int | None = None
    """Of all keys and values; None where results are not written as bytes."""

    def agrees_with(self, other: Answer) -> bool:
        same_bytes = self.digest is None or other.digest is None or self.digest == other.digest
        return same_bytes and (self.rows, self.total) == (other.rows, other.total)


def check_answers(name: str, answers: Mapping[str, Answer]) -> None:
    """Ends the benchmark if the sides, by their names, do not give the same answer."""
    first = next(iter(answers))
    for side, answer in answers.items():
        if not answer.agrees_with(answers[first]):
            message = f"({name}): {side} gave {answer}, {first} gave {answers[first]}"
            raise SystemExit(message)


@dataclass(frozen=True)
class Batch:
    records: int
    end: float
    """When it was done, in seconds."""
    duration_ms: float


@dataclass(frozen=True)
class Measured:
    """The rate of a program once it is warm."""

    rate: float
    """Records/s."""
    batch_records: int
    """The usual size of a batch."""
    batch_ms: float
    """How long such a batch takes."""
    answer: Answer
    series: list[tuple[int, float]] = field(default_factory=list)
    """Records and milliseconds of every batch, the first ones included."""

    def to_json(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def of_json(cls, found: dict[str, Any]) -> Self:
        return cls(**{**found, "answer": Answer(**found["answer"])})


def steady(batches: Sequence[Batch], warm_up: int, total: int, answer: Answer) -> Measured:
    """Returns the rate after the warm-up, by the clock from the end of one batch to the end of the last.

    A last batch that is smaller than the one before it is left out: it has what remains, not what a batch may read.
    """
    full = [batch for batch in batches if batch.records]
    read = sum(batch.records for batch in full)
    if read != total:
        message = f"{total:,} records were there to be read; {read:,} were; {len(full)} batches"
        raise SystemExit(message)
    left, first = warm_up, 0
    while first < len(full) - 2 and left > 0:
        left -= full[first].records
        first += 1
    # At least the first batch is left out: it starts the workers.
    first = max(1, first)
    if len(full) <= first:
        message = f"{len(full)} batches are too few to measure; take more records or smaller batches"
        raise SystemExit(message)
    measured = full[first:]
    if len(measured) > 1 and measured[-1].records < measured[-2].records:
        measured.pop()
    seconds = measured[-1].end - full[first - 1].end
    return Measured(
        sum(batch.records for batch in measured) / seconds,
        round(statistics.median(batch.records for batch in measured)),
        statistics.median(batch.duration_ms for batch in measured),
        answer,
        [(batch.records, round(batch.duration_ms, 1)) for batch in batches],
    )


def records_of(log: TopicLog, topic: str) -> Iterator[Raw]:
    for partition in range(log.describe_topic(topic).partitions):
        start = 0
        while part := log.read(topic, partition, start):
            yield from part
            start = part[-1][0] + 1


def answer_in(log: TopicLog, topic: str, program: Program) -> Answer:
    """Returns what a program has written."""
    if program.counts:
        counts = {key: value for _, _, key, value, _ in records_of(log, topic)}
        total = sum(int.from_bytes(value or b"", "big") for value in counts.values())
        return Answer(len(counts), total, sum(_digest(key, value) for key, value in counts.items()))
    rows = digest = 0
    for _, _, key, value, _ in records_of(log, topic):
        rows += 1
        digest += _digest(key, value)
    return Answer(rows, 0, digest)


def _digest(key: bytes | None, value: bytes | None) -> int:
    return zlib.crc32(value or b"", zlib.crc32(key or b""))


def read_load(directory: Path) -> Load:
    return Load(**json.loads((directory / "load.json").read_text()))


def inputs_of(log: TopicLog, program: Program) -> int:
    """Returns how many records a program has to read."""
    partitions = [
        (topic, partition) for topic in program.inputs for partition in range(log.describe_topic(topic).partitions)
    ]
    return sum(log.end_offsets(partitions).values())
