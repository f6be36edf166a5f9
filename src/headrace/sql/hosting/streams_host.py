"""A host that runs every persistent query as an application of its own."""

from __future__ import annotations

import logging
import re
import threading
import time
from collections import deque
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from datetime import timedelta
from typing import Any, cast

from headrace.app.directories import application_directory, check_default_directory, make_directory
from headrace.app.engine import EngineFactory, missing_spark
from headrace.app.reset import reset_application
from headrace.app.streams import Streams
from headrace.app.streams_state import StreamsState
from headrace.config import StreamsConfig
from headrace.errors import LockError, StreamsError
from headrace.handlers import LogAndContinueExceptionHandler, StreamThreadExceptionResponse
from headrace.metrics.names import Metrics
from headrace.sql.catalog.persistent_query import PersistentQuery
from headrace.sql.hosting.host import QueryFailure, QueryState, QueryStatus
from headrace.sql.hosting.lease import Lease
from headrace.sql.hosting.statement_settings import STREAMS_PREFIX, streams_value
from headrace.topics.embedded import EmbeddedLog
from headrace.topics.embedded.housekeeping import Housekeeping
from headrace.topics.journal import DurableLog
from headrace.topics.shared_waiting import SharedWaiting

logger = logging.getLogger(__name__)

SHUTDOWN_TIMEOUT_MS = "ksql.streams.shutdown.timeout.ms"
"""The setting of how long the end of a query waits for its micro-batch, before that is cancelled."""

_TAKEOVER_SECONDS = 1.0
"""How often it is looked whether the process that runs a query is gone."""
_CANCEL_PATIENCE = timedelta(seconds=30)
"""How long the end of a query waits for its engine, once its micro-batch is cancelled."""
_MOST_STARTING = 8
"""How many queries start at the same time: each restores its state and runs its first micro-batch."""
_START_SECONDS = 10.0
"""After which a query that has not committed anything does not hold back the start of others."""
_FULL_SECONDS = 1.0
"""How often it is looked whether one of them takes too long."""
_KEPT_FAILURES = 10
_FIRST_RETRY_SECONDS, _LAST_RETRY_SECONDS = 1.0, 300.0


def application_id(service_id: str, query_id: str) -> str:
    """Returns the name of the application that runs a query.

    >>> application_id("default_", "CSAS_OUT_0"), application_id("default_", "CSAS_a b_0")
    ('default_query_CSAS_OUT_0', 'default_query_CSAS_a-20-b_0')
    """
    # A quoted name may have any letter, a file may not.
    return re.sub(r"[^A-Za-z0-9._]", lambda match: f"-{ord(match[0]):x}-", f"{service_id}query_{query_id}")


def streams_settings(settings: Mapping[str, object]) -> dict[str, object]:
    """Returns those of a statement's settings that are the business of the application that runs it.

    >>> streams_settings({"ksql.streams.num.standby.replicas": 1, "ksql.query.pull.enabled": "x"})
    {'num.standby.replicas': 1}
    """
    found: dict[str, object] = {}
    for name, value in settings.items():
        if name == SHUTDOWN_TIMEOUT_MS:
            continue
        if name.startswith(STREAMS_PREFIX):
            found.setdefault(name.removeprefix(STREAMS_PREFIX), value)
        elif not name.startswith("ksql."):
            found[name] = value
    found = {name: streams_value(name, value) for name, value in found.items()}
    # Applications know it as one of the consumers that they would have with Kafka.
    reset = found.pop("auto.offset.reset", None)
    return found if reset is None else {**found, "consumer.auto.offset.reset": reset}


class _Hosted:
    """One query: its application, as soon as there is one, and what has become of it."""

    def __init__(self, query: PersistentQuery, *, transient: bool) -> None:
        self.query = query
        self.is_transient = transient
        self.streams: Streams | None = None
        self.lock = threading.Lock()
        self.is_paused = False
        self.is_stopped = False
        self.is_elsewhere = False
        self.has_committed = False
        """Whether it has, since it was started or has failed."""
        self.started_at = 0.0
        self.error: str | None = None
        self.failures: deque[QueryFailure] = deque(maxlen=_KEPT_FAILURES)
        self.restarts = 0
        self.retry_at = 0.0
        self.retry_seconds = _FIRST_RETRY_SECONDS

    def fail(self, error: BaseException) -> None:
        self.error = str(error)
        self.has_committed = False
        self.failures.append(QueryFailure(int(time.time() * 1000), self.error))
        self.restarts += 1

    @property
    def is_starting(self) -> bool:
        """Whether it is busy with its start."""
        is_busy = self.streams is not None and not (self.has_committed or self.is_paused or self.error)
        return is_busy and time.monotonic() - self.started_at < _START_SECONDS

    def put_off(self) -> None:
        self.retry_at = time.monotonic() + self.retry_seconds
        self.retry_seconds = min(2 * self.retry_seconds, _LAST_RETRY_SECONDS)


class StreamsHost:
    """Runs queries as applications of this process: on Spark, in one job per tick, or on the engine that is given.

    ``settings`` are those of all applications. ``patience`` is how long the end of a query waits for its micro-batch,
    in which a function may never return; then the batch is cancelled. A query that another process runs on the same
    directory is taken over as soon as that one is gone, however it ended. With a ``lease`` so are those of a server
    that has another directory; as long as that one holds the lease this host runs transient queries alone, but has
    Spark ready. Of many queries only some start at the same time, the others when those have committed their first
    micro-batch.
    """

    def __init__(
        self,
        log: DurableLog,
        settings: Mapping[str, Any],
        *,
        service_id: str,
        engine: EngineFactory | None = None,
        patience: timedelta = timedelta(seconds=5),
        lease: Lease | None = None,
    ) -> None:
        self._patience = patience
        self._lease = lease
        self._held = ExitStack()
        self._wake_waiting: Callable[[], None] = _do_nothing
        self._prepare: Callable[[], None] | None = None
        self._log = self._share_log(log)
        self._settings = dict(settings)
        self._service_id = service_id
        self._engine = engine or self._shared_engines()
        self.confirm: Callable[[str], bool] = _always
        """Asked before a query is taken over: the process that ran it may have ended it for good."""
        self._lock = threading.Lock()
        self._hosted: dict[str, _Hosted] = {}
        self._wake = threading.Event()
        self._is_closed = False
        if lease is not None:
            lease.tell = self._wake.set
        self._thread = threading.Thread(target=self._tend, name="headrace-sql-queries", daemon=True)
        self._thread.start()

    def _share_log(self, log: DurableLog) -> DurableLog:
        """Returns the log with what all queries have together: one thread that waits, and one that tidies up."""
        if not isinstance(log, EmbeddedLog):
            return log
        self._held.enter_context(Housekeeping(log))
        waiting = SharedWaiting(log)
        self._held.callback(waiting.stop_waiting)
        self._wake_waiting = waiting.wake
        # It has all that the log has.
        return cast("DurableLog", waiting)

    def _shared_engines(self) -> EngineFactory:
        """Returns what makes engines on Spark, all of them in one loop: per tick there is one job for all queries."""
        # Imported here: a server whose queries run in its process needs no pyspark.
        try:
            from headrace.spark.spark_engine import SharedSparkEngines
        except ImportError as error:
            raise missing_spark(error) from error
        config = StreamsConfig.of({**self._settings, "application.id": f"{self._service_id}sql"})
        check_default_directory(config)
        directory = application_directory(config)
        make_directory(directory)
        engines = SharedSparkEngines(config, self._log, directory / "engine")
        self._held.callback(engines.close)
        self._prepare = engines.prepare
        return engines

    def start(self, query: PersistentQuery, *, transient: bool = False) -> None:
        self.stop(query.id)
        with self._lock:
            self._hosted[query.id] = _Hosted(query, transient=transient)
        self._wake.set()

    def stop(self, query_id: str, *, forget: bool = False) -> bool:
        with self._lock:
            hosted = self._hosted.pop(query_id, None)
        if hosted is None:
            return True
        with hosted.lock:
            hosted.is_stopped = True
            if hosted.streams is not None:
                hosted.streams.close(timedelta(0))
                self._wake_waiting()
                if not hosted.streams.close(self._patience) and not hosted.streams.cancel(_CANCEL_PATIENCE):
                    logger.warning(
                        "the query %s has not ended %.0f s after it was cancelled; it ends with its engine, or with "
                        "this process",
                        query_id,
                        _CANCEL_PATIENCE.total_seconds(),
                    )
            return self._forget(hosted.query) if forget and not hosted.is_elsewhere else True

    def _forget(self, query: PersistentQuery) -> bool:
        try:
            Streams(query.topology, self._config(query), log=self._log, engine=self._engine).clean_up(for_good=True)
        except StreamsError as error:
            logger.warning("what the query %s has kept could not be deleted: %s", query.id, error)
            return False
        return True

    def forget(self, query_id: str) -> None:
        config = self._config_of(query_id, {})
        # Who asks for the lock of a directory makes the directory.
        if application_directory(config).exists():
            reset_application(config, self._log, for_good=True)

    def pause(self, query_id: str) -> None:
        self._set_paused(query_id, paused=True)

    def resume(self, query_id: str) -> None:
        self._set_paused(query_id, paused=False)

    def _set_paused(self, query_id: str, *, paused: bool) -> None:
        with self._lock:
            hosted = self._hosted.get(query_id)
        if hosted is not None:
            hosted.is_paused = paused
            streams = hosted.streams
            if streams is not None:
                (streams.pause if paused else streams.resume)()

    def status(self, query_id: str) -> QueryStatus:
        with self._lock:
            hosted = self._hosted.get(query_id)
        if hosted is None:
            return QueryStatus(QueryState.UNKNOWN)
        streams = hosted.streams
        metrics = {} if streams is None else _plain(streams.metrics())
        # One that was just made here, too, and not looked at yet.
        state = QueryState.ELSEWHERE if self._is_others(hosted) else _state_of(hosted)
        return QueryStatus(state, hosted.error, tuple(hosted.failures), hosted.restarts, metrics)

    def metrics(self, query_id: str) -> Metrics | None:
        with self._lock:
            hosted = self._hosted.get(query_id)
        streams = None if hosted is None else hosted.streams
        return None if streams is None else streams.metrics()

    def application_id(self, query_id: str) -> str:
        """Returns the name under which the log knows the progress of a query."""
        return application_id(self._service_id, query_id)

    def close(self) -> None:
        self._is_closed = True
        self._wake.set()
        self._thread.join()
        with self._lock:
            hosted = list(self._hosted.values())
        # All at once: each waits for the end of its micro-batch.
        closing = [threading.Thread(target=self.stop, args=(each.query.id,)) for each in hosted]
        for thread in closing:
            thread.start()
        for thread in closing:
            thread.join()
        self._held.close()

    def _tend(self) -> None:
        while True:
            self._wake.clear()
            # Looked at after that: whoever closes it sets this first, and wakes it then.
            if self._is_closed:
                return
            self._leave_to_others()
            self._get_ready()
            with self._lock:
                waiting = [each for each in self._hosted.values() if each.streams is None]
            for each in waiting:
                if self._is_closed or each.retry_at > time.monotonic() or self._is_others(each):
                    continue
                if self._is_full():
                    break
                if not each.is_elsewhere or self.confirm(each.query.id):
                    self._start(each)
            self._wake.wait(self._rest_seconds())

    def _is_others(self, hosted: _Hosted) -> bool:
        """Whether another server of the service runs it."""
        return self._lease is not None and not self._lease.is_held and not hosted.is_transient

    def _leave_to_others(self) -> None:
        """Ends what another server runs; what of it was not committed is not committed any more."""
        with self._lock:
            others = [each for each in self._hosted.values() if self._is_others(each)]
        for each in others:
            with each.lock:
                streams, each.streams = each.streams, None
                each.is_elsewhere, each.error, each.has_committed = True, None, False
                each.retry_at = 0.0
            if streams is not None:
                streams.close(timedelta(0))
                self._wake_waiting()

    def _get_ready(self) -> None:
        """Starts what queries run on, if there are some that another server runs, so that a takeover is short."""
        prepare = self._prepare
        with self._lock:
            waits = any(self._is_others(each) for each in self._hosted.values())
        if prepare is None or not waits:
            return
        self._prepare = None

        def get_ready() -> None:
            try:
                prepare()
            except Exception as error:
                logger.warning("nothing is ready for queries that this server may take over: %s", error)

        threading.Thread(target=get_ready, name="headrace-sql-readiness", daemon=True).start()

    def _is_full(self) -> bool:
        """Whether as many queries are busy with their start as may be at the same time."""
        with self._lock:
            return sum(each.is_starting for each in self._hosted.values()) >= _MOST_STARTING

    def _rest_seconds(self) -> float | None:
        """Returns for how long there is nothing to start, unless something changes; None is for ever."""
        with self._lock:
            times = [
                each.retry_at for each in self._hosted.values() if each.streams is None and not self._is_others(each)
            ]
        if not times:
            return None
        return max(_FULL_SECONDS if self._is_full() else 0.01, min(times) - time.monotonic())

    def _start(self, hosted: _Hosted) -> None:
        with hosted.lock:
            if hosted.is_stopped:
                return
            hosted.started_at, hosted.has_committed = time.monotonic(), False
            try:
                streams = Streams(hosted.query.topology, self._config(hosted.query), log=self._log, engine=self._engine)
                streams.set_uncaught_exception_handler(lambda error: self._failed(hosted, error))
                streams.set_state_listener(lambda new, _old: self._changed(hosted, new))
                if hosted.is_paused:
                    streams.pause()
                streams.start()
            except LockError:
                hosted.is_elsewhere = True
                hosted.retry_at = time.monotonic() + _TAKEOVER_SECONDS
                return
            except Exception as error:
                logger.warning("the query %s does not start: %s", hosted.query.id, error)
                hosted.fail(error)
                hosted.put_off()
                return
            hosted.streams, hosted.is_elsewhere = streams, False

    def _failed(self, hosted: _Hosted, error: BaseException) -> StreamThreadExceptionResponse:
        hosted.fail(error)
        return StreamThreadExceptionResponse.REPLACE_THREAD

    def _changed(self, hosted: _Hosted, new: StreamsState) -> None:
        if new is StreamsState.RUNNING:
            hosted.has_committed, hosted.error = True, None
            hosted.retry_seconds = _FIRST_RETRY_SECONDS
            # The next one may start.
            self._wake.set()
        elif new is StreamsState.ERROR and not hosted.is_stopped:
            hosted.streams, hosted.has_committed = None, False
            if self._is_others(hosted):
                return
            hosted.put_off()
            self._wake.set()

    def _config(self, query: PersistentQuery) -> StreamsConfig:
        return self._config_of(query.id, query.settings)

    def _config_of(self, query_id: str, settings: Mapping[str, object]) -> StreamsConfig:
        return StreamsConfig.of(
            {
                **_DEFAULTS,
                **self._settings,
                **streams_settings(settings),
                "application.id": application_id(self._service_id, query_id),
            }
        )


def _do_nothing() -> None:
    """Nobody waits in a way that could be ended."""


def _always(_query_id: str) -> bool:
    return True


def _state_of(hosted: _Hosted) -> QueryState:
    if hosted.error is not None:
        return QueryState.ERROR
    if hosted.is_elsewhere:
        return QueryState.ELSEWHERE
    if hosted.is_paused:
        return QueryState.PAUSED
    return QueryState.RUNNING if hosted.has_committed else QueryState.STARTING


def _plain(metrics: Mapping[Any, Any]) -> dict[str, Any]:
    wanted = ("records-consumed-total", "records-produced-total", "lag", "state-rows", "batch-id", "started-ms")
    return {name: metrics[name] for name in wanted if name in metrics}


_DEFAULTS: Mapping[str, Any] = {
    # A record that cannot be read is left out, and told to the processing log.
    "deserialization.exception.handler": LogAndContinueExceptionHandler(),
    "statestore.cache.max.bytes": 0,
}
