# ruff: noqa: RUF009 - setting() makes a dataclass field
"""The configuration of an application: Kafka Streams' settings, as far as they mean something here."""

from __future__ import annotations

import logging
import os
import tempfile
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, fields, replace
from datetime import timedelta
from functools import cache, wraps
from pathlib import Path
from typing import Any

from headrace.arguments.values import text
from headrace.config.client_settings import client_prefix, is_client_setting, prefix_client_settings
from headrace.config.named_objects import find_named
from headrace.config.settings import (
    CLIENT_SETTINGS,
    NAMED_KINDS,
    NO_EFFECT,
    PREFIXES,
    Kind,
    Setting,
    optimizations,
    setting,
    to_plain,
)
from headrace.errors import ConfigError, describe_value, did_you_mean
from headrace.handlers import (
    DefaultProductionExceptionHandler,
    DeserializationExceptionHandler,
    LateRecord,
    LogAndFailExceptionHandler,
    LogAndFailProcessingExceptionHandler,
    ProcessingExceptionHandler,
    ProductionExceptionHandler,
)
from headrace.serdes import Serde, Serdes
from headrace.timestamps import FailOnInvalidTimestamp, TimestampExtractor

logger = logging.getLogger(__name__)

DEFAULT_STATE_DIR = str(Path(tempfile.gettempdir()) / f"headrace-{os.geteuid()}" / "state")
_EMIT_INTERVALS = (
    "__emit.interval.ms.kstreams.outer.join.spurious.results.fix__",
    "__emit.interval.ms.kstreams.windowed.aggregation__",
)


# Names of settings share long parts, so that those that merely look alike mean something else.
_CLOSE = 0.8


def _hint_for(name: str) -> str:
    meant, dotted = known_names().get(name), name.replace("_", ".")
    if meant is not None:
        return f"; it is '{meant}' here"
    if is_client_setting(dotted):
        return f"; settings of Kafka's clients are extras={{'{client_prefix(dotted) or ''}{dotted}': …}}"
    return did_you_mean(name, StreamsConfig.__dataclass_fields__, cutoff=_CLOSE)


def _knowing_its_settings(config: type[StreamsConfig]) -> type[StreamsConfig]:
    """Makes the constructor tell what was meant by a setting that it does not have."""
    init = config.__init__

    @wraps(init)
    def settle(self: StreamsConfig, *misplaced: Any, **settings: Any) -> None:
        if misplaced:
            found = describe_value(misplaced[0])
            message = f"settings are keyword arguments, got {found}; a mapping is read by StreamsConfig.of(…)"
            raise ConfigError(message)
        for name in settings.keys() - config.__dataclass_fields__.keys():
            message = f"setting '{name}' is unknown{_hint_for(name)}"
            raise ConfigError(message)
        init(self, **settings)

    setattr(config, "__init__", settle)  # noqa: B010 - a type checker wants to see the dataclass's
    return config


@_knowing_its_settings
@dataclass(frozen=True, kw_only=True)
class StreamsConfig:
    """The settings of an application; durations are ``timedelta``, handlers and serdes are objects.

    ``StreamsConfig.of`` also takes Kafka's dotted names.

    >>> config = StreamsConfig(application_id="orders", statestore_cache_max_bytes=0)
    >>> config.processing_guarantee, config.commit_interval_ms
    ('exactly_once_v2', 100)
    >>> StreamsConfig(num_standby_replicas=-1)
    Traceback (most recent call last):
    ...
    headrace.errors.ConfigError: num_standby_replicas must be a whole number, at least 0, got int -1
    >>> StreamsConfig(aplication_id="orders")
    Traceback (most recent call last):
    ...
    headrace.errors.ConfigError: setting 'aplication_id' is unknown; did you mean 'application_id'?
    """

    application_id: str = setting("headrace", "application.id", Kind.NAME)
    """Name of the application and prefix of its internal topics; give each application its own."""
    bootstrap_servers: str | None = setting(None, "bootstrap.servers", Kind.TEXT, optional=True)
    """Kafka brokers, as ``host:port`` with commas between; None uses the embedded log."""
    client_id: str = setting("", "client.id", Kind.TEXT)
    """Prefix of the names that Kafka clients give themselves; empty for the application id."""
    application_server: str = setting("", "application.server", Kind.TEXT)
    """Address at which other instances reach this one's stores, as ``host:port``; empty for none."""
    state_dir: str | os.PathLike[str] = setting(DEFAULT_STATE_DIR, "state.dir", Kind.PATH)
    """Where working copies of stores and the embedded log are kept."""
    state_cleanup_delay: timedelta = setting(timedelta(minutes=10), "state.cleanup.delay.ms", Kind.DURATION, minimum=0)
    """Accepted for Kafka Streams' sake, and not used."""
    log_dir: str | os.PathLike[str] | None = setting(None, "log.dir", Kind.PATH, optional=True)
    """Where the embedded log is kept; None: in the folder ``log`` of ``state_dir``."""
    log_sync: str = setting("commit", "log.sync", Kind.CHOICE, choices=("commit", "none"))
    """When the embedded log acknowledges: ``commit`` when it is on the disk, ``none`` when it is written."""

    default_key_serde: Serde[Any] = setting(Serdes.string(), "default.key.serde", Kind.SERDE)
    """Serde of keys where a topology names none."""
    default_value_serde: Serde[Any] = setting(Serdes.json(), "default.value.serde", Kind.SERDE)
    """Serde of values where a topology names none."""
    default_timestamp_extractor: TimestampExtractor = setting(
        FailOnInvalidTimestamp(), "default.timestamp.extractor", Kind.FUNCTION, call="(record, partition_time_ms)"
    )
    """Timestamp extractor of sources for which a topology names none."""

    processing_guarantee: str = setting(
        "exactly_once_v2",
        "processing.guarantee",
        Kind.CHOICE,
        choices=("at_least_once", "exactly_once_v2"),
    )
    """``exactly_once_v2``, or ``at_least_once``: without transactions on Kafka, a failure may write results twice."""
    on_offset_out_of_range: str = setting(
        "fail", "on.offset.out.of.range", Kind.CHOICE, choices=("fail", "earliest", "latest")
    )
    """What to do if unread records were deleted: ``fail``, or continue at the ``earliest`` or ``latest`` record."""
    commit_interval: timedelta | None = setting(None, "commit.interval.ms", Kind.DURATION, minimum=0, optional=True)
    """Time from the start of one micro-batch to the start of the next, at low rates. A backlog does not wait.

    None: 35 to 60 ms from the end of one to the start of the next.
    Kafka Streams' own defaults are 100 ms, and 30 s with ``at_least_once``.
    """
    poll: timedelta = setting(timedelta(milliseconds=100), "poll.ms", Kind.DURATION, minimum=0)
    """Accepted for Kafka Streams' sake, and not used: a micro-batch waits for input and clocks at once."""
    max_task_idle: timedelta = setting(timedelta(0), "max.task.idle.ms", Kind.DURATION, minimum=-1)
    """How long a task waits for an empty input; 0 only for data that is in the log, -1 ms not at all."""
    task_timeout: timedelta = setting(timedelta(minutes=5), "task.timeout.ms", Kind.DURATION, minimum=0)
    """How long an application waits for Kafka brokers that are away."""
    buffered_records_per_partition: int = setting(1000, "buffered.records.per.partition", Kind.NUMBER, minimum=1)
    """Accepted for Kafka Streams' sake, and not used: ``max_batch_records`` limits a micro-batch."""
    max_batch_records: int = setting(1_000_000, "max.batch.records", Kind.NUMBER, minimum=1)
    """Upper limit on the records of a micro-batch. How many it reads follows from the time that batches take."""
    num_stream_threads: int = setting(1, "num.stream.threads", Kind.NUMBER, minimum=1)
    """Accepted for Kafka Streams' sake, and not used: ``spark.master`` says how many tasks run at once."""
    num_standby_replicas: int = setting(0, "num.standby.replicas", Kind.NUMBER, minimum=0)
    """How many further copies of each store are kept up to date: on other machines of the cluster, and by views."""
    acceptable_recovery_lag: int = setting(10_000, "acceptable.recovery.lag", Kind.NUMBER, minimum=0)
    """How many changelog records a task may lack and still count as restored; it reads them when it runs."""
    max_warmup_replicas: int = setting(2, "max.warmup.replicas", Kind.NUMBER, minimum=1)
    """How many slots may warm up at once on the machines that they move to, besides standbys."""
    probing_rebalance_interval: timedelta = setting(
        timedelta(minutes=10), "probing.rebalance.interval.ms", Kind.DURATION, minimum=1000
    )
    """How often warm-up copies are checked: a slot moves to its copy once that has caught up."""
    replication_factor: int = setting(-1, "replication.factor", Kind.NUMBER, minimum=-1)
    """Replicas of the topics that an application creates; -1 leaves it to the broker."""

    statestore_cache_max_bytes: int = setting(
        10 * 1024 * 1024,
        "statestore.cache.max.bytes",
        Kind.NUMBER,
        minimum=0,
        aliases=("cache.max.bytes.buffering",),
    )
    """Size of the record cache of a task; 0 forwards every update."""
    default_dsl_store: str = setting(
        "lmdb",
        "default.dsl.store",
        Kind.CHOICE,
        choices=("lmdb", "rocksdb", "in_memory"),
        synonyms=(("disk", "lmdb"), ("rocksDB", "rocksdb"), ("memory", "in_memory")),
        aliases=("dsl.store",),
    )
    """Engine of stores: ``lmdb`` or ``rocksdb``, or ``in_memory`` for those of the DSL."""
    rocksdb_config_setter: Any = setting(None, "rocksdb.config.setter", Kind.CONFIG_SETTER, optional=True)
    """Changes options of stores in RocksDB: a function, or an object with the method ``set_config``."""
    rocksdb_cache_max_bytes: int = setting(
        256 * 1024 * 1024, "rocksdb.cache.max.bytes", Kind.NUMBER, minimum=8 * 1024 * 1024
    )
    """Memory of all stores in RocksDB of a process: block cache, and write buffers with half of it at most."""
    emit_interval: timedelta | None = setting(
        None, "emit.interval.ms", Kind.DURATION, minimum=0, optional=True, aliases=_EMIT_INTERVALS
    )
    """How often closed windows and unmatched join records are looked for, by wall clock; 0 at every record.

    None: every second, in the test driver at every record.
    """

    topology_optimization: str | Iterable[str] = "none"
    """``none``, ``all``, or names of rewrites; see ``optimizations``."""
    ensure_explicit_internal_resource_naming: bool = setting(
        default=False, key="ensure.explicit.internal.resource.naming", kind=Kind.FLAG
    )
    """Refuse a topology that leaves the name of a store or an internal topic to be generated."""
    # Any: the protocol belongs to the Processor API, a later layer.
    processor_wrapper: Any = setting(None, "processor.wrapper.class", Kind.WRAPPER, optional=True)
    """A ``ProcessorWrapper``, which wraps every processor of the application; None for none."""

    deserialization_exception_handler: DeserializationExceptionHandler = setting(
        LogAndFailExceptionHandler(),
        "deserialization.exception.handler",
        Kind.FUNCTION,
        call="(context, error)",
        aliases=("default.deserialization.exception.handler",),
    )
    """Decides what happens when a record cannot be read."""
    processing_exception_handler: ProcessingExceptionHandler = setting(
        LogAndFailProcessingExceptionHandler(),
        "processing.exception.handler",
        Kind.FUNCTION,
        call="(context, record, error)",
    )
    """Decides what happens when a function or processor raises."""
    production_exception_handler: ProductionExceptionHandler = setting(
        DefaultProductionExceptionHandler(),
        "production.exception.handler",
        Kind.FUNCTION,
        call="(context, output, error)",
        aliases=("default.production.exception.handler",),
    )
    """Decides what happens when a record cannot be written."""
    errors_dead_letter_queue_topic_name: str | None = setting(
        None, "errors.dead.letter.queue.topic.name", Kind.NAME, optional=True
    )
    """Dead-letter queue: the topic to which the built-in handlers write failed records; None for none."""
    on_late: Callable[[LateRecord], Any] | None = setting(
        None, "on.late", Kind.FUNCTION, optional=True, call="(record)"
    )
    """Called with every record that is dropped because its window had closed."""
    metrics_recording_level: str = setting(
        "INFO", "metrics.recording.level", Kind.CHOICE, choices=("INFO", "DEBUG", "TRACE")
    )
    """Level of metrics: ``DEBUG`` adds those that are counted per record."""
    http_listen: str | None = setting(None, "http.listen", Kind.TEXT, optional=True)
    """Address of stores, metrics and the console, as ``host:port``; None serves nothing. Port 0 takes a free one."""
    # Not printed: configurations end up in logs.
    http_token: str | None = field(
        default=None, repr=False, metadata={"setting": Setting("http.token", Kind.TEXT, optional=True)}
    )
    """Token that requests must send as ``Authorization: Bearer …``; with None every client of the port may ask."""
    http_formatter: Callable[[Any], Any] | None = setting(
        None, "http.formatter", Kind.FUNCTION, optional=True, call="(value)"
    )
    """Formatter of keys and values over HTTP and in the console: returns something that JSON has.

    If it returns ``NotImplemented``, Headrace formats the value itself, an object by its attributes.
    """
    http_tls_certificate: str | os.PathLike[str] | None = setting(
        None, "http.tls.certificate", Kind.PATH, optional=True
    )
    """File with the certificate of the server; None serves without TLS."""
    http_tls_key: str | os.PathLike[str] | None = setting(None, "http.tls.key", Kind.PATH, optional=True)
    """File with the key of the certificate."""
    http_tls_authority: str | os.PathLike[str] | None = setting(None, "http.tls.authority", Kind.PATH, optional=True)
    """File with the authorities that sign the certificates of other servers; None trusts those of the machine."""
    extras: Mapping[str, Any] = field(default_factory=dict)
    """Settings of Kafka clients, internal topics and Spark, by their prefixed names."""

    def __post_init__(self) -> None:
        for name, known in _settings().items():
            self._set(name, known.check(name, getattr(self, name)))
        optimizations(self.topology_optimization)
        if not isinstance(self.topology_optimization, str):
            self._set("topology_optimization", ",".join(self.topology_optimization))
        extras = prefix_client_settings(_checked_extras(self.extras))
        for name in extras:
            if not _is_extra(name):
                hint = did_you_mean(str(name), known_names(), cutoff=_CLOSE)
                message = f"extras: '{name}' must begin with one of {', '.join(PREFIXES)}{hint}"
                raise ConfigError(message)
        self._set("extras", extras)

    def _set(self, name: str, value: Any) -> None:
        # Frozen for users, but a value's other spellings are settled here, once.
        object.__setattr__(self, name, value)

    @classmethod
    def of(cls, source: StreamsConfig | Mapping[str, Any] | None = None) -> StreamsConfig:
        """Makes a configuration from a mapping, whose names may be ours or Kafka's; passes a configuration through.

        Durations may be ``timedelta`` or milliseconds, numbers and flags may be text. Serdes, handlers and extractors
        may be named: ``module:Name``, or by a class of Kafka. Settings of Kafka's clients need no prefix.

        >>> StreamsConfig.of({"application.id": "orders", "commit.interval.ms": 500}).commit_interval
        datetime.timedelta(microseconds=500000)
        >>> StreamsConfig.of({"default.value.serde": "long", "auto.offset.reset": "latest"}).extras
        {'consumer.auto.offset.reset': 'latest'}
        >>> StreamsConfig.of({"aplication.id": "orders"})
        Traceback (most recent call last):
        ...
        headrace.errors.ConfigError: setting 'aplication.id' is unknown; did you mean 'application.id'?
        """
        if source is None:
            return cls()
        if isinstance(source, StreamsConfig):
            return source
        given: object = source
        if not isinstance(given, Mapping):
            message = f"a configuration is a StreamsConfig, a mapping or None, got {describe_value(given)}"
            raise ConfigError(message)
        return cls(**_arguments(given))

    def replaced(self, source: Mapping[str, Any]) -> StreamsConfig:
        """Returns this configuration with the settings of a mapping in place of its own; names are those of ``of``.

        >>> config = StreamsConfig(application_id="orders", extras={"spark.master": "local[2]"})
        >>> changed = config.replaced({"commit.interval.ms": "500", "spark.ui.enabled": "true"})
        >>> changed.application_id, changed.commit_interval_ms, changed.extras
        ('orders', 500, {'spark.master': 'local[2]', 'spark.ui.enabled': 'true'})
        """
        arguments = _arguments(source)
        if "extras" in arguments:
            arguments["extras"] = {**self.extras, **prefix_client_settings(arguments["extras"])}
        return replace(self, **arguments)

    def to_mapping(self) -> dict[str, Any]:
        """Returns all settings by their dotted names, durations in milliseconds, without those that are None.

        >>> StreamsConfig(application_id="orders").to_mapping()["statestore.cache.max.bytes"]
        10485760
        """
        named = {known.key: to_plain(getattr(self, name)) for name, known in _settings().items()}
        named["topology.optimization"] = self.topology_optimization
        return {key: value for key, value in named.items() if value is not None} | dict(self.extras)

    def prefixed(self, *prefixes: str) -> dict[str, Any]:
        """Returns the extras with these prefixes, without them; later prefixes win.

        >>> config = StreamsConfig(extras={"consumer.fetch.min.bytes": 1, "main.consumer.fetch.min.bytes": 2})
        >>> config.prefixed("consumer.", "main.consumer.")
        {'fetch.min.bytes': 2}
        """
        for given in prefixes:
            text(given, "prefixed(): a prefix")
        return {
            name.removeprefix(prefix): value
            for prefix in prefixes
            for name, value in self.extras.items()
            if name.startswith(prefix)
        }

    @property
    def exactly_once(self) -> bool:
        """Whether the guarantee is exactly once.

        >>> StreamsConfig(processing_guarantee="exactly_once_v2").exactly_once
        True
        """
        return self.processing_guarantee == "exactly_once_v2"

    @property
    def emit_interval_ms(self) -> int:
        """The emit interval in milliseconds.

        >>> StreamsConfig().emit_interval_ms
        1000
        """
        if self.emit_interval is None:
            return 1000
        milliseconds: int = to_plain(self.emit_interval)
        return milliseconds

    @property
    def commit_interval_ms(self) -> int:
        """The commit interval in milliseconds, whether it is set or left to the guarantee.

        >>> StreamsConfig(processing_guarantee="exactly_once_v2").commit_interval_ms
        100
        """
        if self.commit_interval is None:
            return 100 if self.exactly_once else 30_000
        milliseconds: int = to_plain(self.commit_interval)
        return milliseconds

    @property
    def optimizations(self) -> frozenset[str]:
        """The rewrites that ``topology_optimization`` asks for.

        >>> StreamsConfig(topology_optimization=["single.store.self.join"]).optimizations
        frozenset({'single.store.self.join'})
        """
        return optimizations(self.topology_optimization)


@cache
def _settings() -> dict[str, Setting]:
    return {known.name: known.metadata["setting"] for known in fields(StreamsConfig) if "setting" in known.metadata}


@cache
def known_names() -> dict[str, str]:
    """Returns every spelling of every setting's name, and the field it is.

    >>> known_names()["commit.interval.ms"], known_names()["commit_interval_ms"]
    ('commit_interval', 'commit_interval')
    """
    names = {known: known for known in (one.name for one in fields(StreamsConfig))}
    keys = {"topology.optimization": "topology_optimization"}
    for name, known in _settings().items():
        keys |= dict.fromkeys((known.key, *known.aliases), name)
    return names | {key.replace(".", "_"): name for key, name in keys.items()} | keys


def _is_extra(name: object) -> bool:
    return isinstance(name, str) and (name.startswith(PREFIXES) or name in CLIENT_SETTINGS or is_client_setting(name))


def _checked_extras(extras: object) -> Mapping[str, Any]:
    if not isinstance(extras, Mapping):
        message = f"extras must be a mapping of prefixed names, got {describe_value(extras)}"
        raise ConfigError(message)
    return extras


def _arguments(source: Mapping[str, Any]) -> dict[str, Any]:
    arguments: dict[str, Any] = {}
    given_as: dict[str, str] = {}
    extras: dict[str, Any] = dict(_checked_extras(source.get("extras", {})))
    for key, value in source.items():
        if key == "extras":
            continue
        name = known_names().get(key)
        if name is None:
            if _is_extra(key):
                extras[key] = value
            elif key in NO_EFFECT:
                logger.warning("setting '%s' has no effect: %s", key, NO_EFFECT[key])
            else:
                candidates = [*known_names(), *CLIENT_SETTINGS, *NO_EFFECT]
                message = f"setting '{key}' is unknown{did_you_mean(str(key), candidates, cutoff=_CLOSE)}"
                raise ConfigError(message)
            continue
        known = _settings().get(name)
        if known is not None and known.kind in NAMED_KINDS and isinstance(value, str):
            value = find_named(key, value, is_serde=known.kind is Kind.SERDE)
        parsed = value if known is None else known.parse(key, value)
        if name in arguments and arguments[name] != parsed:
            message = f"'{given_as[name]}' and '{key}' are one setting with two different values; leave one out"
            raise ConfigError(message)
        arguments[name], given_as[name] = parsed, key
    return arguments | ({"extras": extras} if extras else {})
