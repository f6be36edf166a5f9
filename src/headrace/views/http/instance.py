"""Instance protocol: a process that serves the stores of an application, with their assignment to hosts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from headrace.topics.log import TopicLog
from headrace.views.metadata import HostInfo
from headrace.views.views import Views


class Instance(Protocol):
    """One of the processes that know the stores of an application."""

    def views(self) -> Views:
        """Returns the views of this process; the first call may take long, and raises while there are none."""
        ...

    @property
    def log(self) -> TopicLog: ...

    @property
    def host(self) -> HostInfo:
        """Where the others reach this one."""
        ...

    def is_active(self, store: str, partition: int) -> bool:
        """Tells whether this is the one to be asked for a partition."""
        ...

    def holders(self, store: str, partition: int) -> Sequence[HostInfo]:
        """Returns the other hosts of a partition, the active one first."""
        ...
