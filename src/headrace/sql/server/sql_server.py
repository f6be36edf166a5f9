"""``SqlServer``: log, host, service and HTTP together, started and stopped as one."""

from __future__ import annotations

import logging
import threading
from collections.abc import Mapping
from contextlib import ExitStack
from datetime import timedelta
from pathlib import Path
from typing import Any, Self

from headrace.app.directories import open_log
from headrace.app.engine import EngineFactory
from headrace.app.lock import lock_directory
from headrace.config import StreamsConfig
from headrace.errors import ConfigError, LockError
from headrace.http.server import Listening, Server
from headrace.serdes.registry.registry import SchemaRegistry
from headrace.sql.catalog.schema_inference import REGISTRY_URL
from headrace.sql.connect.client import ConnectClient
from headrace.sql.connect.settings import ConnectSettings
from headrace.sql.functions.registry import FunctionRegistry
from headrace.sql.hosting.lease import Lease, server_id
from headrace.sql.hosting.streams_host import SHUTDOWN_TIMEOUT_MS, StreamsHost, streams_settings
from headrace.sql.server.asgi_application import sql_application
from headrace.sql.server.service import SqlService
from headrace.sql.server.settings import KNOWN
from headrace.topics.journal import DurableLog

logger = logging.getLogger(__name__)

SERVICE_ID = "ksql.service.id"
_OFFSET_RESET = "auto.offset.reset"


class SqlServer:
    """A server of SQL statements at an address of this machine.

    ``settings`` are those of the language (``ksql.…``) and of the applications that run queries. ``engine`` runs them;
    without it Spark does. ``log`` is a log that is open already and stays open. With a ``token``, which the setting
    ``http.token`` gives as well, or a ``user`` as ``name:password``, only those are answered who send one of them.
    ``http.tls.certificate`` and ``http.tls.key`` switch on TLS.
    """

    def __init__(
        self,
        settings: Mapping[str, Any] | None = None,
        *,
        listen: str = "localhost:8088",
        log: DurableLog | None = None,
        engine: EngineFactory | None = None,
        functions: FunctionRegistry | None = None,
        registry: SchemaRegistry | None = None,
        token: str | None = None,
        user: str | None = None,
        accepts_statements: bool = True,
    ) -> None:
        settings = dict(settings or {})
        service_id = str(settings.pop(SERVICE_ID, "default_"))
        url = settings.get(REGISTRY_URL)
        own = {name: value for name, value in settings.items() if name.startswith("ksql.") or name == _OFFSET_RESET}
        others = streams_settings(settings)
        config = StreamsConfig.of({**others, "application.id": "sql"})
        token = token if token is not None else config.http_token
        patience = _duration(SHUTDOWN_TIMEOUT_MS, own)
        listening = Listening.of(listen, config)
        self._asked = threading.Event()
        self._held = ExitStack()
        with ExitStack() as held:
            self.log = open_log(config) if log is None else log
            if log is None:
                held.callback(self.log.close)
            directory = _own_directory(Path(config.state_dir).expanduser() / f"{service_id}sql", held)
            self._lease = Lease(self.log, service_id, server_id(directory))
            held.callback(self._lease.close)
            self._host = StreamsHost(
                self.log, others, service_id=service_id, engine=engine, patience=patience, lease=self._lease
            )
            held.callback(self._host.close)
            connect = _connect(own)
            if connect is not None:
                held.callback(connect.close)
            self.service = SqlService(
                self.log,
                self._host,
                directory=directory,
                service_id=service_id,
                settings=own,
                functions=functions,
                registry=registry or (SchemaRegistry(str(url)) if url else None),
                connect=connect,
            )
            held.callback(self.service.close)
            self._host.confirm = self.service.is_wanted
            self.application = sql_application(
                self.service,
                token=token,
                user=user,
                hosts=listening.hosts(token or user),
                accepts_statements=accepts_statements,
            )
            self._server = Server(self.application, listening, http2=True)
            held.callback(self._server.stop)
            self._held = held.pop_all()
        if (danger := listening.exposure(token or user)) is not None:
            logger.warning("%s: %s", self.url, danger)

    @property
    def url(self) -> str:
        """Where it answers."""
        return self._server.url

    @property
    def host(self) -> StreamsHost:
        """What runs its queries."""
        return self._host

    def start(self) -> Self:
        """Replays the command topic, starts the queries, or leaves them to the server that runs them, then answers."""
        self._lease.start()
        self.service.start()
        self._server.start()
        return self

    def ask_to_stop(self) -> None:
        """Makes ``wait`` return."""
        self._asked.set()

    def wait(self) -> None:
        """Waits until somebody asks it to stop."""
        self._asked.wait()

    def stop(self) -> None:
        """Ends everything; the next start goes on where this one was. A second call does nothing."""
        self._held.close()

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(self, *_error: object) -> None:
        self.stop()


def _connect(settings: Mapping[str, object]) -> ConnectClient | None:
    found = ConnectSettings.of(settings)
    return None if found is None else ConnectClient(found)


def _duration(name: str, settings: Mapping[str, Any]) -> timedelta:
    given = settings.get(name, KNOWN[name])
    if not str(given).isdecimal():
        message = f"{name} must be a whole number of milliseconds, got '{given}'"
        raise ConfigError(message)
    return timedelta(milliseconds=int(str(given)))


def _own_directory(directory: Path, held: ExitStack) -> Path:
    """Returns a folder that no other server on this machine has: what is kept in it is only there to be fast."""
    number = 0
    while True:
        path = directory / str(number)
        try:
            lock = lock_directory(path, "sql")
        except LockError:
            number += 1
            continue
        held.callback(lock.release)
        return path
