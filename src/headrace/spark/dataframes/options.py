"""Options of the data source ``headrace``, checked, as a value that travels to the workers."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Any

from headrace.app.directories import log_directory, open_log
from headrace.config import StreamsConfig
from headrace.errors import ConfigError, LogError, describe_value, did_you_mean
from headrace.topics.journal import DurableLog

_TARGETS = ("topic", "store", "table", "stream")
_NAMES = frozenset(
    {
        *_TARGETS,
        "application",
        "server",
        "server_token",
        "server_user",
        "key",
        "value",
        "window_size",
        "starting_offsets",
        "ending_offsets",
        "starting_time",
        "ending_time",
        "partitioner",
        "records_per_task",
    }
)
_RANGES = ("starting_offsets", "ending_offsets", "starting_time", "ending_time")
_OFFSET_WORDS = ("earliest", "latest")
_RECORDS_PER_TASK = 500_000
_LOG_SETTINGS = ("log_dir", "log.dir", "state_dir", "state.dir", "bootstrap_servers", "bootstrap.servers")

Offsets = str | Mapping[int, int]
"""``earliest``, ``latest``, or an offset for each partition."""


@dataclass(frozen=True, kw_only=True)
class Options:
    """Values of the ``option`` calls."""

    settings: Mapping[str, str] = field(default_factory=dict)
    """Where the log is, and how its clients are made: settings of ``StreamsConfig``."""
    topic: str | None = None
    application: str | None = None
    store: str | None = None
    server: str | None = None
    server_token: str | None = None
    server_user: str | None = None
    table: str | None = None
    stream: str | None = None
    key: str | None = None
    value: str | None = None
    window_size: int | None = None
    starting_offsets: Offsets = "earliest"
    ending_offsets: Offsets = "latest"
    starting_time: int | None = None
    ending_time: int | None = None
    partitioner: str | None = None
    records_per_task: int = _RECORDS_PER_TASK

    @classmethod
    def of(cls, given: Mapping[str, str]) -> Options:
        """Reads options; what is none of the data source's own is a setting of ``StreamsConfig``.

        >>> options = Options.of({"topic": "orders", "log_dir": "/data/log", "starting_time": "2024-05-01T00:00:00Z"})
        >>> options.topic, options.starting_time, options.config.log_dir
        ('orders', 1714521600000, '/data/log')
        >>> Options.of({"topik": "orders"})
        Traceback (most recent call last):
        ...
        headrace.errors.ConfigError: data source headrace: option 'topik' is unknown; did you mean 'topic'?
        """
        # ``load("orders")`` gives its argument under this name.
        named = {("topic" if name == "path" else name): value for name, value in given.items()}
        own = {name: value for name, value in named.items() if name in _NAMES}
        rest = {name: value for name, value in named.items() if name not in _NAMES}
        for name in rest:
            if "." not in name and name not in StreamsConfig.__dataclass_fields__:
                message = f"data source headrace: option '{name}' is unknown{did_you_mean(name, _NAMES)}"
                raise ConfigError(message)
        made = cls(
            settings=rest,
            **{name: _READ.get(name, _keep_text)(name, value) for name, value in own.items()},
        )
        made._check()
        return made

    @property
    def config(self) -> StreamsConfig:
        return StreamsConfig.of(self.settings)

    @property
    def names_log(self) -> bool:
        """Whether the options say where the log is; else a server has to."""
        return any(name in self.settings for name in _LOG_SETTINGS)

    def _check(self) -> None:
        chosen = [name for name in _TARGETS if getattr(self, name) is not None]
        if len(chosen) != 1:
            found = " and ".join(f"'{name}'" for name in chosen) or "none of them"
            message = (
                "data source headrace: one of the options 'topic', 'store' (with 'application'), 'table' and 'stream' "
                f"(with 'server') says what is meant; found {found}"
            )
            raise ConfigError(message)
        for name, other in (("store", "application"), ("table", "server"), ("stream", "server")):
            if getattr(self, name) is not None and getattr(self, other) is None:
                message = f"data source headrace: option '{name}' needs the option '{other}'; add it"
                raise ConfigError(message)
        ranges = [name for name in _RANGES if getattr(self, name) != getattr(Options, name)]
        if ranges and (self.store is not None or self.table is not None):
            message = (
                f"data source headrace: option '{ranges[0]}' is for topics and streams; a table has the rows that are "
                "current now: leave it out"
            )
            raise ConfigError(message)
        if self.partitioner not in (None, "default"):
            message = (
                "data source headrace: option 'partitioner' must be 'default', which says that every key lies in the "
                f"partition of its hash; found {describe_value(self.partitioner)}"
            )
            raise ConfigError(message)

    def at(self, place: Mapping[str, str]) -> Options:
        """Returns these options for a log at another place."""
        others = {name: value for name, value in self.settings.items() if name not in _LOG_SETTINGS}
        return replace(self, settings={**others, **place})

    def resolved(self) -> Options:
        """Returns these options with the full path of the embedded log: workers have another working directory."""
        config = self.config
        return self if config.bootstrap_servers is not None else self.at({"log.dir": str(log_directory(config))})

    def open_log(self) -> DurableLog:
        """Opens the log, which must be there."""
        config = self.config
        if config.bootstrap_servers is None and not (log_directory(config) / "data.mdb").exists():
            message = (
                f"there is no log in '{log_directory(config)}'; say where it is with the option 'log_dir', 'state_dir' "
                "or 'bootstrap_servers'"
            )
            raise LogError(message)
        return open_log(config)


def _keep_text(_name: str, value: str) -> str:
    return value


def _number(name: str, value: str) -> int:
    if not value.isdecimal() or int(value) < 1:
        message = f"data source headrace: option '{name}' must be a whole number, at least 1; found '{value}'"
        raise ConfigError(message)
    return int(value)


def _time(name: str, value: str) -> int:
    """Returns milliseconds, of a number of them or of a time in ISO 8601; one without a zone is in UTC."""
    if value.isdecimal():
        return int(value)
    try:
        moment = datetime.fromisoformat(value)
    except ValueError:
        message = (
            f"data source headrace: option '{name}' must be a time such as 2024-05-01T12:00:00Z, or milliseconds since "
            f"1970; found '{value}'"
        )
        raise ConfigError(message) from None
    moment = moment if moment.tzinfo is not None else moment.replace(tzinfo=UTC)
    return int(moment.timestamp() * 1000)


def _offsets(name: str, value: str) -> Offsets:
    if value in _OFFSET_WORDS:
        return value
    try:
        # Any: what JSON holds.
        found: Any = json.loads(value)
        return {int(partition): int(offset) for partition, offset in found.items()}
    except (ValueError, AttributeError, TypeError):
        message = (
            f"data source headrace: option '{name}' must be 'earliest', 'latest', or an offset for each partition such "
            f'as {{"0": 12, "1": 7}}; found {describe_value(value)}'
        )
        raise ConfigError(message) from None


_READ: Mapping[str, Any] = {
    "records_per_task": _number,
    "window_size": _number,
    "starting_time": _time,
    "ending_time": _time,
    "starting_offsets": _offsets,
    "ending_offsets": _offsets,
}
