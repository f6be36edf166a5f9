"""``Streams``: an application that runs."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import timedelta
from types import TracebackType
from typing import Any, Self

from headrace.app.application_server import ApplicationServer, ApplicationView
from headrace.app.backoff import Backoff
from headrace.app.callbacks import Callbacks, check_callback
from headrace.app.directories import open_log
from headrace.app.engine import Batch, BatchListener, Engine, EngineFactory, spark_engine
from headrace.app.failure_watch import failure_watch
from headrace.app.latch import Latch
from headrace.app.progress import state_word
from headrace.app.reset import reset_application
from headrace.app.signals import closing_on_signals
from headrace.app.start_line import start_line
from headrace.app.startup import ApplicationResources
from headrace.app.store_queries import OwnViews, Queries
from headrace.app.streams_arguments import checked_config, checked_topology, seconds_of
from headrace.app.streams_state import StateChanges, StateListener, StreamsState
from headrace.app.uncaught_exceptions import ask, shut_down_client
from headrace.batches.failure_note import take_failure_note
from headrace.batches.reports import TaskReport
from headrace.batches.restore_events import RESTORE_CALLS, SUSPENDED, RestoreEvent, RestoreEvents, StateRestoreListener
from headrace.batches.working_copy import restoring
from headrace.config import StreamsConfig
from headrace.errors import FencedError, IllegalStateError, StreamsError, without_quotes
from headrace.handlers import StreamsUncaughtExceptionHandler, StreamThreadExceptionResponse
from headrace.metrics.names import MetricName, Metrics
from headrace.metrics.recording import BatchFigures, Recording
from headrace.topics.journal import DurableLog
from headrace.topology.queryable_stores import logged_stores
from headrace.topology.topology import Topology

logger = logging.getLogger(__name__)


class Streams(Queries):
    """Runs a topology on Spark until it is closed; Kafka Streams calls it ``KafkaStreams``.

    It runs in a thread of its own; ``run()`` waits for it and closes it when the process is asked to stop. As a context
    manager it is started and closed. State, progress and results survive any end: the next start continues after the
    last committed micro-batch. ``log`` is an open log, which stays open; without it the log of the configuration is
    opened. ``http`` serves stores, metrics and the console at an address such as ``localhost:8080``, instead of the
    address of the configuration.

    >>> from headrace import StreamsBuilder
    >>> builder = StreamsBuilder()
    >>> builder.stream("words").to("out")
    >>> streams = Streams(builder.build(), {"application.id": "copy"})
    >>> streams.state
    <StreamsState.CREATED: 'CREATED'>
    """

    def __init__(
        self,
        topology: Topology,
        config: StreamsConfig | Mapping[str, Any],
        *,
        log: DurableLog | None = None,
        engine: EngineFactory | None = None,
        http: str | None = None,
    ) -> None:
        self._topology = checked_topology(topology)
        self._config = checked_config(config)
        self._log = log
        self._make_engine = engine
        self._callbacks = Callbacks()
        self._changes = StateChanges(self._callbacks)
        self._own_views = OwnViews(self._topology, self._config, lambda: self.state)
        self._handler: StreamsUncaughtExceptionHandler = shut_down_client
        self._batch_listeners: list[BatchListener] = []
        self._restore_listener: StateRestoreListener | None = None
        self._restores = RestoreEvents()
        self._alone = threading.Lock()
        self._engine_lock = threading.Lock()
        self._engine: Engine | None = None
        self._opened: ApplicationResources | None = None
        self._paused = False
        self._stopping = Latch()
        self._backoff = Backoff()
        self._started_ms: int | None = None
        client_id = self._config.client_id or self._config.application_id
        self._recording = Recording(client_id)
        seen = ApplicationView(self, self._own_views, lambda: (self.state.name, self._changes.since_ms), _now_ms)
        self._serving = ApplicationServer(seen, http if http is not None else self._config.http_listen)
        self._failures = 0
        self._failure: BaseException | None = None

    def __repr__(self) -> str:
        return f"<Streams '{self._config.application_id}': {self.state.name}>"

    @property
    def config(self) -> StreamsConfig:
        """The settings of the application."""
        return self._config

    @property
    def topology(self) -> Topology:
        """The topology that runs."""
        return self._topology

    @property
    def state(self) -> StreamsState:
        """The state that the application is in."""
        return self._changes.state

    def set_state_listener(self, listener: StateListener | None) -> None:
        """Sets the function ``(new, old)`` that is called at every change of state; before ``start()`` only.

        It may call ``close()``, which then does not wait. What it raises is logged and changes nothing.
        """
        self._check_created("set_state_listener()")
        if listener is not None:
            check_callback("the state listener", listener, "(new, old)")
        self._changes.listener = listener

    def set_uncaught_exception_handler(self, handler: StreamsUncaughtExceptionHandler) -> None:
        """Sets the function ``(error)`` that decides what a failure leads to; before ``start()`` only.

        ``REPLACE_THREAD`` continues from the last commit, after a pause that grows while it keeps failing.
        ``SHUTDOWN_CLIENT``, the default, and ``SHUTDOWN_APPLICATION`` stop: an application has one instance.
        """
        self._check_created("set_uncaught_exception_handler()")
        check_callback("the uncaught-exception handler", handler, "(error)")
        self._handler = handler

    def set_global_state_restore_listener(self, listener: StateRestoreListener | None) -> None:
        """Sets the listener of state restores; before ``start()`` only.

        What it raises is logged and changes nothing.
        """
        self._check_created("set_global_state_restore_listener()")
        if listener is not None:
            for method, call in RESTORE_CALLS.items():
                check_callback(f"{method} of the restore listener", getattr(listener, method, None), call)
            if hasattr(listener, SUSPENDED):
                call = RESTORE_CALLS["on_restore_end"]
                check_callback(f"{SUSPENDED} of the restore listener", getattr(listener, SUSPENDED), call)
        self._restore_listener = listener

    def add_batch_listener(self, listener: BatchListener) -> None:
        """Adds a function ``(batch)`` that is called for every committed micro-batch.

        It is called between batches, so it must be quick. What it raises is logged.
        """
        check_callback("a batch listener", listener, "(batch)")
        self._batch_listeners.append(listener)

    def start(self, *, until_end: bool = False) -> Self:
        """Checks everything that can be checked, then starts to run in another thread, and returns.

        With ``until_end`` the application stops by itself when it has processed what is in its input topics now.
        An error that is raised here has changed nothing: do what it says and start again.
        """
        with self._exclusively("start()"):
            self._check_created("start()")
            make_engine = self._make_engine or spark_engine()
            self._serving.check()
            self._opened = ApplicationResources.by(self._topology, self._config, self._log)
            try:
                self._launch(make_engine, self._opened, until_end=until_end)
            except BaseException:
                self._serving.close()
                self._opened.close()
                raise
        return self

    def _launch(self, make_engine: EngineFactory, opened: ApplicationResources, *, until_end: bool) -> None:
        engine = make_engine(
            self._topology,
            self._config,
            opened.log,
            listener=self,
            directory=opened.directory,
        )
        with self._engine_lock:
            self._engine = engine
            if self._paused:
                engine.pause()
        self._own_views.open(opened.log, opened.directory)
        self._serving.open(opened.log, opened.directory)
        if self._changes.become(StreamsState.REBALANCING) is None:
            message = f"application '{self._config.application_id}' was closed while it started; make a new Streams"
            raise IllegalStateError(message)
        self._started_ms = _now_ms()
        # Not a daemon: a program that forgets to wait must not kill its engine in the middle of a batch.
        name = f"headrace-{self._config.application_id}"
        thread = threading.Thread(target=self._live, args=(engine, opened, until_end), name=name, daemon=False)
        try:
            failure_watch.add(opened.directory)
            thread.start()
        except RuntimeError as error:
            self._end(opened, error)
            raise

    def _live(self, engine: Engine, opened: ApplicationResources, until_end: bool) -> None:  # noqa: FBT001 - a thread's target
        failure: BaseException | None = None
        try:
            while not self._stopping.is_set:
                try:
                    self._run_once(engine, until_end=until_end)
                    break
                except Exception as error:
                    if not self._goes_on_after(error):
                        raise
        except BaseException as error:
            failure = error
        self._end(opened, failure)

    def _run_once(self, engine: Engine, *, until_end: bool) -> None:
        engine.run(until_end=until_end)
        if not until_end and not self._stopping.is_set:
            message = (
                f"application '{self._config.application_id}': the engine has stopped, and nobody has asked it to; "
                "look at its log, and start again"
            )
            raise StreamsError(message)

    def _goes_on_after(self, error: Exception) -> bool:
        """Asks what a failure leads to; True once it is time to try again."""
        self._failures += 1
        if self._opened is not None:
            take_failure_note(self._opened.directory)
        self._serving.seen.failed(error)
        # With its traceback only at level DEBUG: wait(), or leaving the context, raises it.
        logger.error("application '%s' failed: %s", self._config.application_id, without_quotes(error))
        logger.debug("application '%s' failed", self._config.application_id, exc_info=error)
        if self._stopping.is_set or isinstance(error, FencedError):
            # Two instances that take over from each other in turns would do nothing else.
            return False
        with self._callbacks.entered():
            answer = ask(self._handler, error)
        if answer is not StreamThreadExceptionResponse.REPLACE_THREAD:
            return False
        self._changes.become(StreamsState.REBALANCING)
        self._tell_restores(self._restores.suspend())
        seconds = self._backoff.next()
        logger.warning("application '%s' goes on in %.1f s", self._config.application_id, seconds)
        self._stopping.wait(seconds)
        return True

    def _end(self, opened: ApplicationResources, failure: BaseException | None) -> None:
        self._failure = failure
        failure_watch.remove(opened.directory)
        self._tell_restores(self._restores.suspend())
        # After close() a failure does not change where this leads; it is told by wait() and by leaving the context.
        if failure is not None and self._changes.become(StreamsState.PENDING_ERROR) is not None:
            last = StreamsState.ERROR
        else:
            self._changes.become(StreamsState.PENDING_SHUTDOWN)
            last = StreamsState.NOT_RUNNING
        # A listener that hears of the last state may start the next instance.
        self._serving.close()
        self._own_views.close()
        opened.close()
        self._changes.become(last)

    def on_started(self) -> None:
        """The engine's call: its first micro-batch is done; tasks that are being restored are still waited for."""
        if self.state is StreamsState.REBALANCING and not self._restores.waiting:
            self._changes.become(StreamsState.RUNNING)

    def on_moves(self, tasks: Collection[str]) -> None:
        """The engine's call: tasks with work go on elsewhere now."""
        if tasks and self.state is StreamsState.RUNNING:
            self._changes.become(StreamsState.REBALANCING)

    def on_restores(self, tasks: Sequence[TaskReport]) -> None:
        """The engine's call: how far the stores of tasks are restored, and which tasks take part."""
        events = self._restores.of(tasks)
        if events or self._restores.waiting:
            self.on_moves([task.task for task in tasks])
        self._tell_restores(events)

    def _tell_restores(self, events: Iterable[RestoreEvent]) -> None:
        for event in events:
            method = getattr(self._restore_listener, event.method, None)
            if method is not None:
                self._callbacks.call("the restore listener", method, *event.arguments)

    def on_batch(self, batch: Batch) -> None:
        """The engine's call: a micro-batch is committed."""
        self._backoff.reset()
        if isinstance(batch, BatchFigures):
            tasks = getattr(batch, "tasks", ())
            self._recording.add(batch, tasks)
            for task in tasks:
                for kind, figures in task.engines.items():
                    self._recording.add_state(task.task, kind, figures)
            self._serving.on_batch(batch)
        self.on_started()
        for listener in tuple(self._batch_listeners):
            self._callbacks.call("a batch listener", listener, batch)

    def close(self, timeout: timedelta | None = None) -> bool:
        """Stops after the micro-batch that is running; True once it has ended, False when the time is over.

        From a listener or a handler of this application it returns at once, because the end waits for them to return.
        """
        seconds = seconds_of("close()", timeout)
        self._stopping.set()
        before = self._changes.become(StreamsState.PENDING_SHUTDOWN)
        if before is StreamsState.CREATED:
            self._changes.become(StreamsState.NOT_RUNNING)
        elif (engine := self._engine) is not None and not self.state.has_completed_shutdown:
            engine.stop()
        return self._changes.ended.is_set if self._callbacks.inside else self._changes.ended.wait(seconds)

    def cancel(self, timeout: timedelta | None = None) -> bool:
        """Stops in the middle of the micro-batch that is running.

        It is for an application that ``close()`` cannot end, because one of its functions never returns. What was
        committed stays. Nothing of the batch is written, except on Kafka: tasks that have committed their part stay
        committed, and the next start finishes the batch.

        From a listener or a handler of this application it only asks to close, as ``close()`` does.
        """
        seconds = seconds_of("cancel()", timeout)
        if not self.close(timedelta(0)) and not self._callbacks.inside and (engine := self._engine) is not None:
            logger.warning("application '%s' is ended in the middle of a micro-batch", self._config.application_id)
            engine.cancel()
        return self._changes.ended.is_set if self._callbacks.inside else self._changes.ended.wait(seconds)

    def wait(self, timeout: timedelta | None = None) -> bool:
        """Waits until the application has ended; False when the time is over. Raises what it failed of."""
        seconds = seconds_of("wait()", timeout)
        self._check(not self.state.has_not_started, "wait()", "call start() first")
        self._check(not self._callbacks.inside, "wait()", "a listener cannot wait for the end, which waits for it")
        if not self._changes.ended.wait(seconds):
            return False
        if self._failure is not None:
            raise self._failure
        return True

    def run(self, *, until_end: bool = False) -> None:
        """Starts, and waits for the end. SIGINT and SIGTERM close the application cleanly, a second Ctrl-C at once.

        Signal handlers belong to the main thread: in another thread they are not set. On a terminal a line shows the
        progress, as ``headrace run`` does, unless the program has set up logging.
        """
        line = start_line(self._config.application_id, lambda: state_word(self.state.name))
        with closing_on_signals(self.close) as received, line as counts:
            if counts is not None:
                self._batch_listeners.append(counts.add)
            try:
                self.start(until_end=until_end)
            except IllegalStateError:
                if received and self.state is StreamsState.NOT_RUNNING:
                    return
                raise
            self.wait()

    def clean_up(self, *, for_good: bool = False) -> None:
        """Deletes what the application has saved: positions, state, internal topics; only while it does not run.

        The next start begins as the first one did. The topics that it reads and writes stay. With ``for_good`` there is
        no next start: on Kafka its internal topics are deleted then, where otherwise they are emptied.
        """
        with self._exclusively("clean_up()"):
            stopped = self.state.has_not_started or self.state.has_completed_shutdown
            self._check(stopped, "clean_up()", "close the application first")
            application = self._config.application_id
            internal = {
                *self._topology.internal_topics(application),
                *logged_stores(self._topology, application).values(),
            }
            log = self._log or open_log(self._config)
            try:
                reset_application(self._config, log, sorted(internal), topology=self._topology, for_good=for_good)
            finally:
                if log is not self._log:
                    log.close()

    def pause(self) -> None:
        """Starts no new micro-batches until ``resume()``; can be called before ``start()``, and outlives a failure."""
        self._set_paused(paused=True)

    def resume(self) -> None:
        """Continues after ``pause()``."""
        self._set_paused(paused=False)

    def _set_paused(self, *, paused: bool) -> None:
        with self._engine_lock:
            self._paused = paused
            self._serving.seen.paused()
            if self._engine is not None:
                (self._engine.pause if paused else self._engine.resume)()

    @property
    def is_paused(self) -> bool:
        """Whether `pause` was called, and `resume` not since."""
        return self._paused

    @property
    def http_address(self) -> str | None:
        """Where the console, the stores and the metrics are served; None if they are not."""
        return self._serving.url

    def metrics(self) -> Metrics:
        """Returns all metrics by `MetricName`, under Kafka Streams' names.

        Those of the whole application also have plain names: ``metrics()["records-consumed-total"]``.
        """
        engine, recording = self._engine, self._recording
        summary = {
            **({} if engine is None else engine.metrics()),
            **recording.summary(),
            "application-id": self._config.application_id,
            "state": self.state.name,
            "is-paused": self._paused,
            "started-ms": self._started_ms,
            "failures-total": self._failures,
        }
        own: dict[MetricName, Any] = {
            recording.client_metric(name): value
            for name, value in (
                ("application-id", self._config.application_id),
                ("state", self.state.name),
                ("paused", int(self._paused)),
                ("failed-stream-threads", self._failures),
                ("alive-stream-threads", int(self.state.is_running_or_rebalancing)),
                ("start-time-ms", self._started_ms or 0),
            )
        }
        if self._opened is not None:
            for task, rows in restoring(self._opened.directory).items():
                own[recording.task_metric("restore-remaining-records-total", task)] = rows
        return Metrics(recording.values() | own, summary)

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
        if error is None and self._failure is not None:
            raise self._failure

    @contextmanager
    def _exclusively(self, call: str) -> Iterator[None]:
        self._check(self._alone.acquire(blocking=False), call, "start() or clean_up() is under way in another thread")
        try:
            yield
        finally:
            self._alone.release()

    def _check_created(self, call: str) -> None:
        remedy = "it has been started; an application is started once"
        if self.state.has_started_or_finished_shutting_down:
            remedy = "it was closed, or has ended; make a new Streams"
        self._check(self.state.has_not_started, call, remedy)

    def _check(self, holds: bool, call: str, remedy: str) -> None:  # noqa: FBT001 - a condition
        if not holds:
            where = f"application '{self._config.application_id}'"
            message = f"{where}: {call} is not possible in state {self.state.name}: {remedy}"
            raise IllegalStateError(message)


def _now_ms() -> int:
    return int(time.time() * 1000)
