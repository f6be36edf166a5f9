"""``ViewNode``: one of several processes that share the views of an application."""

from __future__ import annotations

import logging
import threading
import uuid
from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any

from headrace.config import StreamsConfig
from headrace.errors import RetriableError
from headrace.private_directory import make_directories
from headrace.runtime.task import TaskId
from headrace.topics.log import TopicLog
from headrace.topics.partitioner import StreamPartitioner
from headrace.topology.topology import Topology
from headrace.views.changelog_follower import wall_clock_ms
from headrace.views.membership import Member, MembershipTable, active_keeper, shares
from headrace.views.metadata import HostInfo, KeyQueryMetadata, StreamsMetadata
from headrace.views.peer_authentication import PeerProof
from headrace.views.viewed_stores import ViewedStore, task_name
from headrace.views.views import Views

logger = logging.getLogger(__name__)

_NAME = "member"


@dataclass(frozen=True)
class Lease:
    """Interval of heartbeats, and the silence after which the others take over."""

    heartbeat: timedelta = timedelta(seconds=1)
    length: timedelta = timedelta(seconds=5)

    @property
    def heartbeat_ms(self) -> int:
        return self.heartbeat // timedelta(milliseconds=1)

    @property
    def length_ms(self) -> int:
        return self.length // timedelta(milliseconds=1)


class ViewNode:
    """Keeps its share of the views, and tells the others. Call ``tick`` again and again, or ``run`` it.

    Which tasks are its own follows from who is alive, so nobody decides. It keeps more while those who take over are
    not ready. Its name is kept in its directory: after a restart it has the same share, and the files for it.
    """

    def __init__(
        self,
        topology: Topology,
        config: StreamsConfig,
        log: TopicLog,
        directory: Path,
        *,
        host: HostInfo | None = None,
        name: str | None = None,
        lease: Lease | None = None,
        clock: Callable[[], int] = wall_clock_ms,
    ) -> None:
        self.config = config
        self.log = log
        self.id = _name(directory, name)
        self.host = host or HostInfo.unavailable()
        self.lease = lease or Lease()
        self._clock = clock
        self._standbys = config.num_standby_replicas
        self.membership = MembershipTable(config.application_id, log, PeerProof.of(config.http_token))
        self.membership.create()
        self.views = Views(
            topology, config, log, directory, tasks=(), is_active=self.is_active, clock=clock, keep_unassigned=True
        )
        self._heartbeat_ms = -(1 << 62)
        self._sent_lags: dict[str, int] = {}
        self._members: dict[str, Member] = {}
        self._assigned: frozenset[str] | None = None
        self._stopping = threading.Event()

    @property
    def assigned(self) -> frozenset[str]:
        """The tasks that it keeps."""
        return self._assigned or frozenset()

    def ready_tasks(self) -> list[str]:
        """Returns the tasks that it keeps and that are at the end of a commit."""
        return [task for task in self.assigned if self.views.is_ready(task)]

    def tick(self) -> bool:
        """Reads members, takes and gives up tasks, reads changelogs, announces itself; True if there is more."""
        now_ms = self._clock()
        self.membership.refresh()
        self._members = self.membership.live(now_ms, self.lease.length_ms)
        if self.id not in self._members:
            # New, or silent for so long that others have taken over: it says what it has once that is up to date.
            self.views.step()
            self._tell(now_ms)
            self.membership.refresh()
            self._members = self.membership.live(now_ms, self.lease.length_ms)
        for member in self.membership.members():
            if now_ms - member.heartbeat_ms > _FORGOTTEN * self.lease.length_ms:
                self.membership.leave(member.id, now_ms)
        self._share()
        more = self.views.step()
        lags = self._lags()
        became_ready = any(lag >= 0 and self._sent_lags.get(task, -1) < 0 for task, lag in lags.items())
        if (
            became_ready
            or lags.keys() != self._sent_lags.keys()
            or now_ms - self._heartbeat_ms >= self.lease.heartbeat_ms
        ):
            self._tell(now_ms)
        return more

    def _share(self) -> None:
        held = self._assigned if self._assigned is not None else frozenset()
        mine = frozenset(shares(self.views.tasks, self._members, self._standbys, self.id, held))
        if mine != self._assigned:
            gone, new = held - mine, mine - held
            logger.info("%s keeps %s (new: %s, given up: %s)", self.id, sorted(mine), sorted(new), sorted(gone))
            self.views.assign(mine)
            self._assigned = mine

    def _lags(self) -> dict[str, int]:
        held = self.views.held_tasks()
        return {task: lag if self.views.is_ready(task) else -1 for task, lag in held.items()}

    def _tell(self, now_ms: int) -> None:
        self._sent_lags = self._lags()
        self._heartbeat_ms = now_ms
        self.membership.announce(Member(self.id, self.host, now_ms, self._sent_lags))

    def is_active(self, task: str) -> bool:
        """Tells whether it is the one to be asked for a task, as far as it knows."""
        own = self._members.get(self.id)
        if own is None or self._clock() - own.heartbeat_ms > self.lease.length_ms:
            # The others have taken over.
            return False
        return active_keeper(task, self._members, self._standbys) == self.id

    def run(self, on_tick: Callable[[ViewNode], Any] | None = None) -> None:
        """Ticks until ``stop``."""
        pause = min(self.lease.heartbeat.total_seconds() / 2, _LONGEST_PAUSE_S)
        while not self._stopping.is_set():
            try:
                more = self.tick()
                if on_tick is not None:
                    on_tick(self)
                if not more:
                    self.views.wait_for_changes(pause)
            except RetriableError as error:
                logger.warning("%s will try again: %s", self.id, error)
                self._stopping.wait(self.lease.heartbeat.total_seconds())

    def stop(self) -> None:
        """Lets ``run`` return."""
        self._stopping.set()

    def close(self) -> None:
        """Says goodbye, and gives the files back."""
        self.stop()
        self.membership.leave(self.id, self._clock())
        self.views.close()

    def members(self) -> dict[str, Member]:
        """Returns the members with a valid lease."""
        return dict(self._members)

    def query_metadata_for_key(
        self, store: str, key: Any, *, partitioner: StreamPartitioner | None = None
    ) -> KeyQueryMetadata:
        """Returns the active host of a key, and its standbys."""
        viewed = self.views.viewed(store)
        if viewed.is_global:
            return KeyQueryMetadata(self.host, frozenset(), -1)
        partition = self.views.partition_of(store, key, partitioner)
        return key_metadata(self._members, viewed, partition, self._standbys)

    def metadata_for_all_streams_clients(self) -> list[StreamsMetadata]:
        """Returns what each living process has."""
        return [
            member_metadata(each, self._members, self.views.stores, self._standbys) for each in self._members.values()
        ]


_LONGEST_PAUSE_S = 0.1
_FORGOTTEN = 60
"""Number of leases after which a silent member is removed by any other member."""


def key_metadata(members: dict[str, Member], store: ViewedStore, partition: int, standbys: int) -> KeyQueryMetadata:
    """Returns the live members that have a partition."""
    task = task_name(store, partition)
    active = active_keeper(task, members, standbys)
    if active is None:
        return KeyQueryMetadata(HostInfo.unavailable(), frozenset(), partition)
    others = frozenset(each.host for each in members.values() if each.id != active and each.lags.get(task, -1) >= 0)
    return KeyQueryMetadata(members[active].host, others, partition)


def member_metadata(member: Member, members: dict[str, Member], stores: Any, standbys: int) -> StreamsMetadata:
    """Returns what a member has, as active and as standby."""
    active: set[tuple[str, int]] = set()
    standby: set[tuple[str, int]] = set()
    for task in member.lags:
        own = active if active_keeper(task, members, standbys) == member.id else standby
        subtopology, partition = TaskId.parse(task)
        own |= {(store.name, partition) for store in stores.values() if store.subtopology == subtopology}
    everywhere = {store.name for store in stores.values() if store.is_global}
    return StreamsMetadata(
        member.host,
        frozenset({name for name, _ in active} | everywhere),
        frozenset((stores[name].topic, each) for name, each in active),
        frozenset((stores[name].topic, each) for name, each in standby),
        frozenset(name for name, _ in standby),
    )


def _name(directory: Path, name: str | None) -> str:
    """Returns the name under which a directory is known, and keeps it there."""
    make_directories(directory)
    file = directory / _NAME
    if name is None:
        name = file.read_text(encoding="utf-8").strip() if file.exists() else f"view-{uuid.uuid4().hex[:12]}"
    file.write_text(name, encoding="utf-8")
    return name
