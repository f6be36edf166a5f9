"""Queries of an application to its own stores: views in its process, opened by the first query."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

from headrace.app.streams_state import StreamsState
from headrace.config import StreamsConfig
from headrace.errors import IllegalStateError, StreamsNotStartedError, StreamsStoppedError
from headrace.state.stores.read_only import ReadOnlyStore
from headrace.topics.log import TopicLog
from headrace.topics.partitioner import StreamPartitioner
from headrace.topology.topology import Topology
from headrace.views.membership import Member, MembershipTable
from headrace.views.metadata import HostInfo, KeyQueryMetadata, LagInfo, StreamsMetadata
from headrace.views.peer_authentication import PeerProof
from headrace.views.queryable_store_types import QueryableStoreType, StoreQueryParameters
from headrace.views.requests import StateQueryRequest
from headrace.views.results import StateQueryResult
from headrace.views.view_node import Lease, member_metadata
from headrace.views.viewed_stores import task_name
from headrace.views.views import Views

logger = logging.getLogger(__name__)

R = TypeVar("R")
F = TypeVar("F", bound=ReadOnlyStore)


class OwnViews:
    """Views that are made by the first question, and kept from then on until the application ends."""

    def __init__(self, topology: Topology, config: StreamsConfig, state: Callable[[], StreamsState]) -> None:
        self._topology = topology
        self._config = config
        self._state = state
        self._lock = threading.Lock()
        self._place: tuple[TopicLog, Path] | None = None
        self._views: Views | None = None
        self._membership: MembershipTable | None = None

    def open(self, log: TopicLog, directory: Path) -> None:
        """The application has its log and its directory; nothing is made yet."""
        self._place = log, directory / "views" / "own"

    def views(self, *, modern: bool = False) -> Views:
        """Returns the views, once they have caught up with the commits before the first query."""
        self._check_running(modern=modern)
        views = self._views
        if views is None or views.has_failed:
            with self._lock:
                views = self._views
                if views is None or views.has_failed:
                    views = self._make()
        return views

    def _make(self) -> Views:
        if self._place is None:
            raise StreamsStoppedError(self._message("has stopped, and its stores are closed; start a new one"))
        begun = time.perf_counter()
        log, directory = self._place
        if self._views is not None:
            self._views.close()
        views = Views(self._topology, self._config, log, directory)
        views.catch_up()
        views.start()
        self._views = views
        seconds = time.perf_counter() - begun
        logger.info("views of application '%s' were made in %.3f s", self._config.application_id, seconds)
        return views

    def _check_running(self, *, modern: bool) -> None:
        state = self._state()
        if state.is_running_or_rebalancing:
            return
        if state.has_not_started:
            raise StreamsNotStartedError(self._message("has not been started; call start() first"))
        message = self._message(f"is in state {state.name}: its stores are closed; start a new one")
        # As in Kafka Streams, where each generation of queries has its own.
        raise StreamsStoppedError(message) if modern else IllegalStateError(message)

    def _message(self, what: str) -> str:
        return f"application '{self._config.application_id}' {what}"

    @property
    def standbys(self) -> int:
        return self._config.num_standby_replicas

    def own_host(self) -> HostInfo:
        return HostInfo.build_from_endpoint(self._config.application_server) or HostInfo.unavailable()

    def others(self) -> dict[str, Member]:
        """Returns the living processes that keep views besides this one."""
        self._check_running(modern=False)
        with self._lock:
            if self._place is None:
                return {}
            if self._membership is None:
                proof = PeerProof.of(self._config.http_token)
                self._membership = MembershipTable(self._config.application_id, self._place[0], proof)
            self._membership.refresh()
            return self._membership.live(int(time.time() * 1000), Lease().length_ms)

    def close(self) -> None:
        with self._lock:
            views, self._views, self._place = self._views, None, None
            if views is not None:
                try:
                    views.close()
                except Exception:
                    # They can be built anew; the application ends all the same.
                    logger.exception("the views of '%s' could not be closed", self._config.application_id)


class Queries:
    """The part of ``Streams`` that answers questions about its stores."""

    _own_views: OwnViews

    def store(
        self,
        parameters: StoreQueryParameters[F] | str,
        store_type: QueryableStoreType[F] | None = None,
        *,
        partition: int | None = None,
    ) -> F:
        """Returns a store to read, across its partitions, as one of `QueryableStoreTypes`.

        It shows what was committed, a whole micro-batch at a time, and stays valid until the application ends. The
        first question makes the views, which takes as long as reading the changelogs does; later ones take well below a
        millisecond. Iterators see one moment; close them, or read them to the end.
        """
        if isinstance(parameters, str):
            if store_type is None:
                message = f"store('{parameters}'): name its type, for example QueryableStoreTypes.key_value_store()"
                raise TypeError(message)
            wanted = StoreQueryParameters.from_name_and_type(parameters, store_type)
        else:
            wanted = parameters
        if partition is not None:
            wanted = wanted.with_partition(partition)
        return self._own_views.views().store(wanted)

    def query(self, request: StateQueryRequest[R]) -> StateQueryResult[R]:
        """Answers a query partition by partition, all of them at the same moment; see `StateQueryRequest`.

        With the position of one's own write as its bound, a query never shows what was before it; ``waiting`` lets it
        wait until the write has been processed and committed.
        """
        return self._own_views.views(modern=True).query(request)

    def query_metadata_for_key(
        self, store: str, key: Any, *, partitioner: StreamPartitioner | None = None
    ) -> KeyQueryMetadata:
        """Returns the partition of a key, and its hosts: this application, and view processes as its standbys.

        The partition is that of the key's hash, or what ``partitioner`` says, which must be the one that the records
        that feed the store were written with.
        """
        views = self._own_views.views()
        viewed, own = views.viewed(store), self._own_views.own_host()
        if viewed.is_global:
            return KeyQueryMetadata(own, frozenset(), -1)
        partition = views.partition_of(store, key, partitioner)
        task = task_name(viewed, partition)
        ready = (each.host for each in self._own_views.others().values() if each.lags.get(task, -1) >= 0)
        return KeyQueryMetadata(own, frozenset(ready), partition)

    def metadata_for_all_streams_clients(self) -> list[StreamsMetadata]:
        """Returns what this application and each living view process has."""
        views = self._own_views.views()
        stores = views.stores
        everything = frozenset(
            (stores[name].topic, partition) for parts in views.tasks.values() for name, partition in parts
        )
        own = StreamsMetadata(self._own_views.own_host(), frozenset(stores), everything)
        others = self._own_views.others()
        standbys = self._own_views.standbys
        return [own, *(member_metadata(each, others, stores, standbys) for each in others.values())]

    def streams_metadata_for_store(self, store: str) -> list[StreamsMetadata]:
        """Returns the instances that have some of a store."""
        self._own_views.views().viewed(store)
        return [
            each
            for each in self.metadata_for_all_streams_clients()
            if store in each.state_store_names or store in each.standby_state_store_names
        ]

    def all_local_store_partition_lags(self) -> dict[str, dict[int, LagInfo]]:
        """Returns how far the views of this process are behind the changelogs, by store and partition."""
        return self._own_views.views().lags()
