"""Payloads: applications on their way to the workers."""

from __future__ import annotations

from hashlib import blake2b
from typing import NamedTuple

from headrace.batches.application import Application
from headrace.spark.shipping import pack


class Payload(NamedTuple):
    """A pickled application. It is broadcast once, and unpickled once by each worker."""

    digest: str
    data: bytes

    @classmethod
    def of(cls, application: Application) -> Payload:
        data = pack(application)
        return cls(blake2b(data, digest_size=16).hexdigest(), data)
