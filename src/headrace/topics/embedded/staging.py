"""Staging of a task's uncommitted output: small output in the receipt, the rest in a file per attempt.

A file is a row of frames (topic, partition, blob). It is not forced to the disk: a batch is either committed from it
while the machine runs, or run again. A file that no receipt names is an orphan and goes with the next commit or start.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from io import BufferedWriter, BytesIO
from pathlib import Path
from secrets import token_hex
from struct import Struct
from typing import IO
from urllib.parse import quote
from zlib import crc32

from headrace.errors import BatchError, LogError
from headrace.topics.blob import check, pack_all
from headrace.topics.embedded.environment import explain
from headrace.topics.journal import Receipt, TaskRecord
from headrace.topics.log import Output, Topic
from headrace.topics.record_partitioning import Sticky, spread

INLINE_BYTES = 64 * 1024
"""Up to here outputs travel in the receipt."""

_FRAME = Struct("<HII")
_SUFFIX = ".staged"


class StagingArea:
    """Staging directory, with a folder per application."""

    def __init__(self, directory: str) -> None:
        self._root = Path(directory) / "staging"

    def folder(self, application: str) -> Path:
        return self._root / quote(application, safe="")

    def frames(self, application: str, receipt: Receipt) -> Iterator[tuple[str, int, bytes]]:
        """Returns topic, partition and blob of everything that a receipt names."""
        if not receipt.file:
            yield from _frames(BytesIO(receipt.inline), receipt)
            return
        path = self.folder(application) / receipt.file
        try:
            with path.open("rb") as file:
                yield from _frames(file, receipt)
        except OSError as error:
            message = (
                f"the output of task {receipt.task} in batch {receipt.batch_id} of application '{application}' "
                f"cannot be read from '{path}': {error}; nothing of the batch was committed; run it again"
            )
            raise LogError(message) from error

    def discard(self, application: str, incarnation: int, up_to: int = -1) -> int:
        """Deletes files of earlier incarnations, and those of this one's batches up to ``up_to``; returns how many."""
        count = 0
        for path in self.folder(application).glob(f"*{_SUFFIX}"):
            owner, batch = path.name.split("-")[:2]
            if owner.isdigit() and (int(owner) < incarnation or (int(owner) == incarnation and int(batch) <= up_to)):
                path.unlink(missing_ok=True)
                count += 1
        return count


def _frames(file: IO[bytes], receipt: Receipt) -> Iterator[tuple[str, int, bytes]]:
    read = 0
    while header := file.read(_FRAME.size):
        if len(header) < _FRAME.size:
            break
        name_length, partition, length = _FRAME.unpack(header)
        topic, blob = file.read(name_length).decode(), file.read(length)
        read += _FRAME.size + name_length + len(blob)
        if read > receipt.size or len(blob) < length:
            break
        check(blob)
        yield topic, partition, blob
    if read != receipt.size:
        message = (
            f"the output of task {receipt.task} in batch {receipt.batch_id} is not complete: {receipt.size} bytes were "
            f"staged, {read} were found; nothing of the batch was committed; run it again"
        )
        raise BatchError(message)


class StageWriter:
    """Packs a task's outputs and keeps them until the receipt is committed."""

    def __init__(
        self,
        area: StagingArea,
        topic: Callable[[str], Topic],
        application: str,
        incarnation: int,
        task: str,
        record: TaskRecord,
        *,
        make_folder: bool = True,
    ) -> None:
        self._area = area
        self._make_folder = make_folder
        self._topic = topic
        self._application = application
        self._incarnation = incarnation
        self._task = task
        self._record = record
        self._sticky = Sticky(record.batch_id + crc32(task.encode()))
        self._frames: list[bytes] = []
        self._buffered = 0
        self._size = 0
        self._path: Path | None = None
        self._file: BufferedWriter | None = None

    def write(self, topic: str, outputs: Sequence[Output]) -> None:
        name = topic.encode()
        for partition, part in spread(self._topic(topic), outputs, self._sticky):
            for blob in pack_all(part):
                self._frames += (_FRAME.pack(len(name), partition, len(blob)), name, blob)
                self._buffered += _FRAME.size + len(name) + len(blob)
        if self._buffered + self._size > INLINE_BYTES:
            self._flush()

    def finish(self) -> Receipt:
        """Closes the staged output and returns its receipt."""
        if self._path is not None:
            self._flush()
            self._close()
        return replace(
            Receipt.of(self._task, self._incarnation, self._record),
            record=self._record.pack(),
            file="" if self._path is None else self._path.name,
            size=self._size if self._path is not None else self._buffered,
            inline=b"".join(self._frames),
        )

    def discard(self) -> None:
        """Forgets everything that was staged."""
        self._frames.clear()
        if self._file is not None:
            # On a full disk it fails once more: it still has what could not be written.
            with suppress(OSError):
                self._file.close()
        if self._path is not None:
            self._path.unlink(missing_ok=True)

    def _flush(self) -> None:
        folder = self._area.folder(self._application)
        try:
            if self._file is None:
                if self._make_folder:
                    folder.mkdir(parents=True, exist_ok=True)
                # A worker that was given up may still write: no two attempts ever share a name.
                name = f"{self._incarnation}-{self._record.batch_id}-{quote(self._task, safe='')}-{token_hex(4)}"
                self._path = folder / f"{name}{_SUFFIX}"
                self._file = self._path.open("xb")
            self._file.writelines(self._frames)
        except OSError as error:
            self.discard()
            raise explain(str(folder), error, "written") from error
        self._frames.clear()
        self._size += self._buffered
        self._buffered = 0

    def _close(self) -> None:
        assert self._file is not None, "there is a path only with a file"
        try:
            self._file.close()
        except OSError as error:
            self.discard()
            raise explain(str(self._path), error, "written") from error
