"""The state of one task where there is no Spark to keep it."""

from __future__ import annotations

from headrace.spark.chunks import Head


class MemoryCells:
    """What Spark's state store is elsewhere; see ``headrace.spark.chunks.Cells``."""

    def __init__(self, head: Head | None = None, chunks: dict[int, bytes] | None = None) -> None:
        self.head = head
        self.chunks = {} if chunks is None else chunks

    def read_head(self) -> Head | None:
        return self.head

    def write_head(self, head: Head) -> None:
        self.head = head

    def read(self, sequence: int) -> bytes | None:
        return self.chunks.get(sequence)

    def write(self, sequence: int, data: bytes) -> None:
        self.chunks[sequence] = data

    def remove(self, sequence: int) -> None:
        del self.chunks[sequence]
