"""Files of the embedded log with flipped bytes. Each trial reads a damaged copy in a process of its own.

Guaranteed, and a failure of the trial otherwise: damage to the payload of a record is refused with an error that names
the directory. Not guaranteed, because LMDB has no checksums of its own and trusts the pages that it maps: damage to its
pages, and to keys, which are then not found, can crash the process that reads them, or lead to other answers. Those are
counted, so that one sees how often.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from random import Random

from headrace import EmbeddedLog
from headrace.errors import LogError

_MARK = b"payload-of-a-record-"
_SECONDS = 60
_REFUSED, _BROKEN = 3, 4


@contextmanager
def opened(directory: Path) -> Iterator[Callable[[Random], str]]:
    whole = directory / "whole"
    with EmbeddedLog(whole, sync="none") as log:
        for topic in ("a", "b"):
            log.create_topic(topic, partitions=2)
            for part in range(40):
                records = [(None, part, b"k%d" % each, _MARK + b"%d" % each * 20, ()) for each in range(20)]
                log.append(topic, records)
    data = (whole / "data.mdb").read_bytes()
    reader = _Reader()
    try:
        code, right = reader.read(whole)
        assert code == 0, right
        yield lambda random: _trial(reader, directory / "damaged", whole, data, right, random)
    finally:
        reader.close()


def _trial(reader: _Reader, damaged: Path, whole: Path, data: bytes, right: str, random: Random) -> str:
    shutil.rmtree(damaged, ignore_errors=True)
    shutil.copytree(whole, damaged)
    changed = bytearray(data)
    in_payload = random.random() < 0.5
    if in_payload:
        places = [random.choice(_payloads(data))]
    else:
        places = [random.randrange(len(data)) for _ in range(random.choice((1, 1, 3, 20)))]
    for place in places:
        changed[place] ^= 1 << random.randrange(8)
    (damaged / "data.mdb").write_bytes(changed)
    code, said = reader.read(damaged)
    if code == 0:
        outcome = "not noticed: nothing depends on it" if said == right else "WRONG ANSWER"
    elif code == _REFUSED:
        assert str(damaged) in said, f"the error does not name the log: {said}"
        outcome = "refused"
    elif code < 0:
        outcome = f"CRASH by signal {-code}"
    else:
        outcome = "ANOTHER ERROR"
    if in_payload:
        assert outcome == "refused" or said == right, f"{outcome} after a flip of the payload at {places}: {said}"
    else:
        assert outcome != "ANOTHER ERROR", f"after flips at {places}: {said}"
    return f"{'payload' if in_payload else 'anywhere'}: {outcome}"


def _payloads(data: bytes) -> list[int]:
    """Returns where payloads of records are in the file, those too that are in pages that are free again."""
    found, place = [], data.find(_MARK)
    while place >= 0:
        found.append(place + len(_MARK))
        place = data.find(_MARK, place + 1)
    return found


class _Reader:
    """A process that forks another one for each directory that is to be read: what that one dies of, it says."""

    def __init__(self) -> None:
        command = [sys.executable, "-m", "tests.fuzz.log_files"]
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def read(self, directory: Path) -> tuple[int, str]:
        """Returns the exit code of the process that has read everything, and what it said."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(f"{directory}\n")
        self._process.stdin.flush()
        code, said = json.loads(self._process.stdout.readline())
        return code, said

    def close(self) -> None:
        self._process.communicate()


def _serve() -> None:
    for line in sys.stdin:
        reading, writing = os.pipe()
        child = os.fork()
        if child == 0:
            os.close(reading)
            # What hangs is ended by a signal, which is a crash to whoever waits.
            signal.alarm(_SECONDS)
            code, said = _read_all(line.strip())
            with os.fdopen(writing, "w") as pipe:
                pipe.write(said)
            os._exit(code)
        os.close(writing)
        with os.fdopen(reading) as pipe:
            said = pipe.read()
        _, status = os.waitpid(child, 0)
        print(json.dumps([os.waitstatus_to_exitcode(status), said]), flush=True)


def _read_all(directory: str) -> tuple[int, str]:
    try:
        with EmbeddedLog(directory, sync="none") as log:
            found = {
                f"{name}-{partition}": [repr(raw) for raw in _records(log, name, partition)]
                for name in log.topics()
                for partition in range(log.describe_topic(name).partitions)
            }
    except LogError as error:
        return _REFUSED, str(error)
    except Exception:
        return _BROKEN, traceback.format_exc()
    return 0, json.dumps(found)


def _records(log: EmbeddedLog, topic: str, partition: int) -> Iterator[object]:
    offset = log.begin_offsets([(topic, partition)])[topic, partition]
    while found := log.read(topic, partition, offset):
        yield from found
        offset = found[-1][0] + 1


if __name__ == "__main__":
    _serve()
