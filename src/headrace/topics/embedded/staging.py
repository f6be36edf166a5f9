"""What a task has written before the driver commits it: in the receipt if it is little, else in a file per attempt.

A file is a row of frames (topic, partition, blob). It is not forced to the disk: a batch is either committed from it
while the machine runs, or run again. A file that no receipt names is an orphan and goes with the next commit or start.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from io import BufferedWriter, BytesIO
from pathlib import Path
from secrets import token_hex
from struct import Struct
from types import TracebackType
from typing import IO, Self
from urllib.parse import quote
from zlib import crc32

from headrace.errors import BatchError, LogError
from headrace.topics.blob import check, info, pack_all
from headrace.topics.embedded.environment import explain
from headrace.topics.log import Output, Receipt, Topic, TopicPartition
from headrace.topics.spread import Sticky, spread

INLINE_BYTES = 64 * 1024
"""Up to here outputs travel in the receipt."""

_FRAME = Struct("<HII")
_SUFFIX = ".staged"


class StagingArea:
    """The directory for what is staged, with a folder per application."""

    def __init__(self, directory: str) -> None:
        self._root = Path(directory) / "staging"

    def folder(self, application: str) -> Path:
        return self._root / quote(application, safe="")

    def frames(self, receipt: Receipt) -> Iterator[tuple[str, int, bytes]]:
        """Returns topic, partition and blob of everything that a receipt names."""
        if not receipt.file:
            yield from _frames(BytesIO(receipt.inline), receipt)
            return
        path = self.folder(receipt.application) / receipt.file
        try:
            with path.open("rb") as file:
                yield from _frames(file, receipt)
        except OSError as error:
            message = (
                f"the output of task {receipt.task} in batch {receipt.batch_id} of application '{receipt.application}' "
                f"cannot be read from '{path}': {error}; nothing of the batch was committed; run it again"
            )
            raise LogError(message) from error

    def discard(self, application: str, up_to: int | None = None) -> int:
        """Deletes files of batches up to ``up_to``, or all of them; returns how many there were."""
        count = 0
        for path in self.folder(application).glob(f"*{_SUFFIX}"):
            batch = path.name.partition("-")[0]
            if up_to is None or (batch.isdigit() and int(batch) <= up_to):
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
            f"the output of task {receipt.task} in batch {receipt.batch_id} of application '{receipt.application}' is "
            f"not complete: {receipt.size} bytes were staged, {read} were found; nothing of the batch was committed; "
            "run it again"
        )
        raise BatchError(message)


class StageWriter:
    """Packs a task's outputs and keeps them until the receipt is committed. See the ``Stage`` protocol."""

    def __init__(
        self,
        area: StagingArea,
        topic: Callable[[str], Topic],
        application: str,
        batch_id: int,
        task: str,
        attempt: int,
    ) -> None:
        self._area = area
        self._topic = topic
        self._identity = (application, batch_id, task, attempt)
        # A replay spreads keyless records in the same way.
        self._sticky = Sticky(batch_id + crc32(task.encode()))
        self._frames: list[bytes] = []
        self._buffered = 0
        self._size = 0
        self._records = 0
        self._path: Path | None = None
        self._file: BufferedWriter | None = None
        self._is_open = True

    def write(self, topic: str, outputs: Sequence[Output]) -> None:
        if not self._is_open:
            message = f"the output of task {self._identity[2]} in batch {self._identity[1]} is finished; stage it anew"
            raise BatchError(message)
        name = topic.encode()
        for partition, part in spread(self._topic(topic), outputs, self._sticky):
            for blob in pack_all(part):
                self._frames += (_FRAME.pack(len(name), partition, len(blob)), name, blob)
                self._buffered += _FRAME.size + len(name) + len(blob)
                self._records += info(blob).records
        if self._buffered + self._size > INLINE_BYTES:
            self._flush()

    def finish(self, positions: Mapping[TopicPartition, int]) -> Receipt:
        """Closes what was staged and returns the receipt for it."""
        if self._path is not None:
            self._flush()
            self._close()
        self._is_open = False
        application, batch_id, task, attempt = self._identity
        return Receipt(
            application=application,
            batch_id=batch_id,
            task=task,
            attempt=attempt,
            records=self._records,
            positions=dict(positions),
            file="" if self._path is None else self._path.name,
            size=self._size if self._path is not None else self._buffered,
            inline=b"".join(self._frames),
        )

    def discard(self) -> None:
        """Forgets everything that was staged."""
        self._is_open = False
        self._frames.clear()
        if self._file is not None:
            self._file.close()
        if self._path is not None:
            self._path.unlink(missing_ok=True)

    def _flush(self) -> None:
        application, batch_id, task, attempt = self._identity
        folder = self._area.folder(application)
        try:
            if self._file is None:
                folder.mkdir(parents=True, exist_ok=True)
                # A worker that was given up may still write: no two attempts ever share a name.
                self._path = folder / f"{batch_id}-{quote(task, safe='')}-{attempt}-{token_hex(4)}{_SUFFIX}"
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

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._is_open:
            self.discard()
