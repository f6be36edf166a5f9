"""A server without its HTTP: the catalogue that follows the command topic, and the queries that run."""

from __future__ import annotations

import logging
import threading
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any

from headrace.errors import StreamsError, TopicError
from headrace.serdes.registry.registry import SchemaRegistry
from headrace.sql.catalog import Catalog
from headrace.sql.catalog.command_log import Command, CommandLog
from headrace.sql.catalog.log_topics import LogTopics, ProposedTopics, RecordedTopics
from headrace.sql.catalog.topic_directory import NewTopic
from headrace.sql.connect.client import ConnectClient
from headrace.sql.errors import SqlError, SqlStatementError
from headrace.sql.functions.registry import FunctionRegistry
from headrace.sql.hosting.host import QueryHost
from headrace.sql.reading.orphaned_queries import OrphanedQueries
from headrace.sql.reading.results import QueryContext
from headrace.sql.reading.tables import open_tables
from headrace.sql.server.open_queries import OpenQueries
from headrace.sql.server.settings import FUNCTION_MODULES, check_function_module, refusal
from headrace.sql.sql_engine import Executed, SqlEngine
from headrace.sql.syntax.parser import parse_statement
from headrace.sql.syntax.statements import ControlQuery, CreateFunction, RunScript, SetProperty, Statement
from headrace.topics.log import TopicLog

logger = logging.getLogger(__name__)

_FOLLOW = timedelta(milliseconds=200)


@dataclass(frozen=True)
class Outcome:
    """Outcome of a command."""

    offset: int
    done: Executed


class SqlService:
    """Statements that change the catalogue, in the order of the command topic; any thread may call it.

    ``directory`` is where it keeps views of tables. The log and the host stay open when it is closed.
    """

    def __init__(
        self,
        log: TopicLog,
        host: QueryHost,
        *,
        directory: Path,
        service_id: str = "default_",
        settings: Mapping[str, object] | None = None,
        functions: FunctionRegistry | None = None,
        registry: SchemaRegistry | None = None,
        connect: ConnectClient | None = None,
    ) -> None:
        self.log = log
        self.host = host
        self.service_id = service_id
        self.connect = connect
        """The worker for connectors; it stays open as well."""
        self._function_modules = str((settings or {}).get(FUNCTION_MODULES, ""))
        self.engine = SqlEngine(functions, settings, topics=LogTopics(log), registry=registry, admit=self._admit)
        self.paused: frozenset[str] = frozenset()
        """The queries that were paused."""
        self.failed_commands = 0
        self.open_queries = OpenQueries()
        """The queries whose rows clients of this server read."""
        self._commands = CommandLog(log, service_id)
        self._lock = threading.RLock()
        self._position = 0
        self._has_commands = True
        self._deleted: dict[str, str] = {}
        """The topics that commands before the start have deleted and none has used since, with their ids."""
        self._awaited = ""
        """The id of the command that this server is writing."""
        self._outcome: Outcome | SqlError | None = None
        """What has become of it."""
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._follow, name="headrace-sql-commands", daemon=True)
        self.tables = open_tables(log, directory / "views")
        self._orphaned_queries = OrphanedQueries(directory / "transient")

    def _admit(self, statement: Statement) -> None:
        """Raises for what no server carries out, whoever has written it to the command topic."""
        match statement:
            case CreateFunction():
                check_function_module(statement.target, self._function_modules)
            case SetProperty():
                found = refusal(statement.name, statement.value)
                if found is not None:
                    raise SqlStatementError(found, position=statement.position, statement=statement.text)
            case RunScript():
                message = "RUN SCRIPT is for prompts: a server reads no files for its clients."
                raise SqlStatementError(message, position=statement.position, statement=statement.text)

    def start(self) -> None:
        """Carries out all commands that are there, starts the queries that are left, and follows."""
        self._orphaned_queries.clean_up(self.host, self.log)
        with self._lock:
            if self._has_commands:
                self._commands.create()
                self._catch_up(running=False)
                self._finish_deletions()
            for query in self.engine.catalog.queries.values():
                self.host.start(query)
            for query_id in self.paused:
                self.host.pause(query_id)
        if self._has_commands:
            self._thread.start()

    def _finish_deletions(self) -> None:
        """Deletes the topics of commands whose server was killed before it had done that."""
        in_use = {source.topic for source in self.engine.catalog.sources.values()}
        for topic, known in self._deleted.items():
            if topic in in_use:
                continue
            try:
                LogTopics(self.log).delete_known({topic: known})
            except StreamsError as error:
                logger.warning("the topic '%s', which was dropped, could not be deleted: %s", topic, error)

    def run_without_commands(self, statements: Iterable[Statement], settings: Mapping[str, object]) -> None:
        """Carries out statements before ``start``, and leaves the command topic alone: they come anew at each start."""
        self._has_commands = False
        with self._lock:
            for statement in statements:
                self.engine.execute(statement, settings)

    def close(self) -> None:
        """Stops to follow; queries are ended by whoever closes the host."""
        self._stopping.set()
        if self._thread.is_alive():
            self._thread.join()
        self.tables.close()

    @property
    def position(self) -> int:
        """The offset of the next command."""
        return self._position

    @property
    def command_topic(self) -> str:
        return self._commands.topic

    def wait_for_command(self, offset: int, timeout: timedelta) -> bool:
        """Waits until a command was carried out here; False when the time is over."""
        if offset < self._position:
            return True
        if self._commands.wait(offset, timeout):
            self.catch_up()
        return offset < self._position

    def catch_up(self) -> None:
        """Carries out what other servers have written."""
        if self._has_commands:
            with self._lock:
                self._catch_up()

    def settings(self, overrides: Mapping[str, object]) -> dict[str, object]:
        """Returns the settings of the server with others over them."""
        return {**self.engine.settings, **overrides}

    def context(self, overrides: Mapping[str, object]) -> QueryContext:
        """Returns what a query is carried out on."""
        engine = self.engine
        return QueryContext(
            engine.catalog,
            engine.functions,
            self.settings(overrides),
            self.log,
            self.host,
            self.tables,
            engine.registry,
            self.service_id,
            self._orphaned_queries,
        )

    def trial(self) -> SqlEngine:
        """Returns an engine on which statements can be tried out: nothing of them is done."""
        with self._lock:
            return self.engine.trial(ProposedTopics(LogTopics(self.log)))

    def change(self, statement: Statement, overrides: Mapping[str, object]) -> Outcome:
        """Carries out a statement that changes the catalogue: here, and on every server that follows.

        Raises what is wrong with it; then it was not written.
        """
        with self._lock:
            self._catch_up()
            if isinstance(statement, ControlQuery) and statement.action != "TERMINATE":
                self._check_control(statement)
                command = Command(statement.text, dict(overrides))
                self._commands.append(command)
                return self._read_back(command)
            topics = ProposedTopics(LogTopics(self.log))
            trial = self.engine.trial(topics)
            done = trial.execute(statement, overrides)[0]
            # Before the command: who finds it finds the topics as well.
            self._create(topics.created, statement)
            deletes = LogTopics(self.log).ids(topics.deleted)
            command = Command(statement.text, dict(overrides), topics.seen, trial.choice.made, deletes)
            expected = self._position
            offset = self._commands.append(command)
            if offset == expected:
                # Nobody came between, so what was tried out is what happens.
                self._position += 1
                self._become(trial)
                outcome = Outcome(offset, done)
            else:
                outcome = self._read_back(command)
            LogTopics(self.log).delete_known(deletes)
            return outcome

    def _create(self, topics: Mapping[str, NewTopic], statement: Statement) -> None:
        try:
            for name, wanted in topics.items():
                LogTopics(self.log).create(name, wanted)
        except TopicError as error:
            raise SqlStatementError(str(error), position=statement.position, statement=statement.text) from error

    def _read_back(self, command: Command) -> Outcome:
        """Carries out what was written up to a command of this server; returns what became of it."""
        self._awaited, self._outcome = command.id, None
        self._catch_up()
        outcome = self._outcome
        if isinstance(outcome, SqlError):
            raise outcome
        assert outcome is not None, "the command was written, so it is read"
        return outcome

    def _catch_up(self, *, running: bool = True) -> None:
        while found := self._commands.read(self._position):
            for offset, command in found:
                if command is not None:
                    outcome = self._carried_out(offset, command, running=running)
                    if command.id == self._awaited:
                        self._outcome = outcome
                self._position = offset + 1

    def _carried_out(self, offset: int, command: Command, *, running: bool) -> Outcome | SqlError:
        try:
            statement = parse_statement(command.text)
            if isinstance(statement, ControlQuery) and statement.action != "TERMINATE":
                return Outcome(offset, self._control(statement, running=running))
            trial = self.engine.trial(RecordedTopics(dict(command.topics)), command.schemas)
            done = trial.execute(statement, self._permitted_properties(offset, command))[0]
        except SqlError as error:
            # Two servers wrote at once what does not go together; all of them come to the same end.
            logger.warning("%s, offset %d: %s was left out: %s", self._commands.topic, offset, command.text, error)
            self.failed_commands += 1
            return error
        except StreamsError as error:
            logger.error("%s, offset %d: %s failed: %s", self._commands.topic, offset, command.text, error)
            self.failed_commands += 1
            return SqlStatementError(str(error), statement=command.text)
        self._become(trial, running=running)
        if not running:
            # A topic that a later statement has found and used is not to go any more.
            left = {topic: known for topic, known in self._deleted.items() if topic not in command.topics}
            self._deleted = {**left, **command.deletes}
        return Outcome(offset, done)

    def _permitted_properties(self, offset: int, command: Command) -> dict[str, object]:
        """Returns the settings of a command without those that no statement may give."""
        found: dict[str, object] = {}
        for name, value in command.settings.items():
            reason = refusal(name, value)
            if reason is None:
                found[name] = value
            else:
                logger.warning("%s, offset %d: '%s' is not set: %s", self._commands.topic, offset, name, reason)
        return found

    def _become(self, trial: SqlEngine, *, running: bool = True) -> None:
        before = self.engine.catalog
        self.engine.adopt(trial)
        after = self.engine.catalog
        self.paused &= after.queries.keys()
        for topic in {each.topic for each in before.sources.values()} - {each.topic for each in after.sources.values()}:
            self.tables.forget(topic)
        if running:
            self._run_queries(before, after)

    def _run_queries(self, before: Catalog, after: Catalog) -> None:
        for query_id in before.queries:
            if query_id not in after.queries:
                self.host.stop(query_id, forget=True)
        for query_id, query in after.queries.items():
            if before.queries.get(query_id) is not query:
                self.host.start(query)

    def _check_control(self, statement: ControlQuery) -> None:
        if statement.query_id is not None and statement.query_id not in self.engine.catalog.queries:
            message = f"Unknown queryId: {statement.query_id}"
            raise SqlStatementError(message, position=statement.position, statement=statement.text)

    def _control(self, statement: ControlQuery, *, running: bool) -> Executed:
        self._check_control(statement)
        known = self.engine.catalog.queries
        meant = list(known) if statement.query_id is None else [statement.query_id]
        pausing = statement.action == "PAUSE"
        self.paused = self.paused | set(meant) if pausing else self.paused - set(meant)
        if running:
            for query_id in meant:
                (self.host.pause if pausing else self.host.resume)(query_id)
        return Executed(statement, "Query paused." if pausing else "Query resumed.")

    def is_wanted(self, query_id: str) -> bool:
        """Tells whether a query is still to run, as far as the command topic says now."""
        self.catch_up()
        return query_id in self.engine.catalog.queries

    def _follow(self) -> None:
        while not self._stopping.is_set():
            try:
                if self._commands.wait(self._position, _FOLLOW):
                    self.catch_up()
            except Exception:
                logger.exception("%s cannot be followed", self._commands.topic)
                self._stopping.wait(1.0)

    # Any: numbers and texts by name.
    def figures(self) -> dict[str, Any]:
        """Returns what a check of health looks at."""
        return {
            "position": self._position,
            "failed": self.failed_commands,
            "following": not self._has_commands or self._thread.is_alive(),
        }
