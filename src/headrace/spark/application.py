"""What the workers need of an application, and how it gets to them."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import dataclass
from hashlib import blake2b
from pathlib import Path
from typing import NamedTuple

from pyspark import cloudpickle

from headrace.spark.layout import Layout
from headrace.spark.shipping import pack
from headrace.topics.log import TopicLog

_KEPT = 4


@dataclass(frozen=True)
class Application:
    """The same on all workers, and in all micro-batches of a run."""

    id: str
    layout: Layout
    log: TopicLog
    directory: Path
    """Where its working copies are."""
    changelogs: Mapping[str, Mapping[str, str]]
    """By program: the stores that write a changelog, and its topic in the log."""
    attempts: int
    """How often Spark tries a task."""
    checkpoint: str = ""
    """Random id of the checkpoint, by which what is written is known to belong to it."""


class Payload(NamedTuple):
    """A pickled application. Spark unpickles its functions for every task; this is unpickled once per worker."""

    data: bytes
    digest: str

    @classmethod
    def of(cls, application: Application) -> Payload:
        data = pack(application)
        return cls(data, blake2b(data, digest_size=16).hexdigest())

    def open(self) -> Application:
        found = _opened.get(self.digest)
        if found is None:
            found = _opened[self.digest] = cloudpickle.loads(self.data)
            while len(_opened) > _KEPT:
                _opened.popitem(last=False)
        return found


_opened: OrderedDict[str, Application] = OrderedDict()
