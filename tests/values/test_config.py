"""Settings: defaults, Kafka's names, what is refused, and the way back to a mapping."""

import dataclasses
import pickle
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from headrace.config import StreamsConfig
from headrace.config.settings import NO_EFFECT
from headrace.errors import ConfigError
from headrace.handlers import LogAndContinueExceptionHandler, LogAndContinueProcessingExceptionHandler, Response
from headrace.serdes import BaseSerde, Serdes
from headrace.timestamps import ConsumedRecord, WallclockTimestampExtractor
from headrace.topics.kafka.settings import ClientSettings


def test_defaults_are_kafkas() -> None:
    config = StreamsConfig()
    assert config.statestore_cache_max_bytes == 10485760
    assert StreamsConfig(processing_guarantee="at_least_once").commit_interval_ms == 30_000
    assert config.max_task_idle == timedelta(0)
    assert config.num_standby_replicas == 0
    assert config.replication_factor == -1
    assert config.emit_interval_ms == 1000
    assert config.optimizations == frozenset()
    assert config.default_dsl_store == "lmdb"
    assert config.default_key_serde == Serdes.string()
    assert config.default_value_serde == Serdes.json()


def test_commit_interval_depends_on_the_guarantee_unless_it_is_set() -> None:
    assert StreamsConfig(processing_guarantee="exactly_once_v2").commit_interval_ms == 100
    config = StreamsConfig(processing_guarantee="exactly_once_v2", commit_interval=timedelta(seconds=1))
    assert config.commit_interval_ms == 1000


def test_mapping_takes_our_names_and_kafkas() -> None:
    dotted = StreamsConfig.of({"application.id": "app", "commit.interval.ms": 500, "num.stream.threads": 2})
    snake = StreamsConfig.of({"application_id": "app", "commit_interval_ms": 500, "num_stream_threads": 2})
    ours = StreamsConfig.of(
        {"application_id": "app", "commit_interval": timedelta(seconds=0.5), "num_stream_threads": 2}
    )
    direct = StreamsConfig(application_id="app", commit_interval=timedelta(seconds=0.5), num_stream_threads=2)
    assert dotted == snake == ours == direct


def test_mapping_takes_text_as_a_properties_file_has_it() -> None:
    config = StreamsConfig.of(
        {
            "num.standby.replicas": "2",
            "max.task.idle.ms": "-1",
            "ensure.explicit.internal.resource.naming": "true",
            "bootstrap.servers": ["a:9092", "b:9092"],
        }
    )
    assert config.num_standby_replicas == 2
    assert config.max_task_idle == timedelta(milliseconds=-1)
    assert config.ensure_explicit_internal_resource_naming is True
    assert config.bootstrap_servers == "a:9092,b:9092"


def test_deprecated_and_private_names_are_known() -> None:
    config = StreamsConfig.of(
        {
            "cache.max.bytes.buffering": 0,
            "default.deserialization.exception.handler": LogAndContinueExceptionHandler,
            "__emit.interval.ms.kstreams.outer.join.spurious.results.fix__": 0,
            "__emit.interval.ms.kstreams.windowed.aggregation__": 0,
        }
    )
    assert config.statestore_cache_max_bytes == 0
    assert config.deserialization_exception_handler == LogAndContinueExceptionHandler()
    assert config.emit_interval_ms == 0


def test_configuration_and_nothing_are_taken_as_they_are() -> None:
    config = StreamsConfig(application_id="app")
    assert StreamsConfig.of(config) is config
    assert StreamsConfig.of(None) == StreamsConfig()


@pytest.mark.parametrize(
    ("name", "suggestion"),
    [
        ("aplication.id", "application.id"),
        ("state_store_cache_max_bytes", "statestore_cache_max_bytes"),
        ("procesing_guarantee", "processing_guarantee"),
    ],
)
def test_unknown_setting_is_refused_with_a_suggestion(name: str, suggestion: str) -> None:
    with pytest.raises(ConfigError, match=f"setting '{name}' is unknown; did you mean '{suggestion}'"):
        StreamsConfig.of({name: 1})


def test_one_setting_given_twice_must_agree() -> None:
    with pytest.raises(ConfigError, match=r"'poll\.ms' and 'poll' are one setting with two different values"):
        StreamsConfig.of({"poll.ms": 5, "poll": timedelta(milliseconds=6)})
    assert StreamsConfig.of({"poll.ms": 5, "poll": timedelta(milliseconds=5)}).poll == timedelta(milliseconds=5)


def test_settings_without_effect_are_taken_with_a_warning(caplog: pytest.LogCaptureFixture) -> None:
    assert StreamsConfig.of(dict.fromkeys(NO_EFFECT, "x")) == StreamsConfig()
    for name, reason in NO_EFFECT.items():
        assert f"setting '{name}' has no effect: {reason}" in caplog.text


def test_prefixed_settings_are_kept() -> None:
    config = StreamsConfig.of(
        {
            "consumer.max.poll.records": 10,
            "main.consumer.max.poll.records": 20,
            "producer.linger.ms": 5,
            "topic.retention.ms": 1000,
            "spark.master": "local[2]",
            "security.protocol": "SSL",
            "ssl.keystore.location": "here",
        }
    )
    assert config.prefixed("consumer.", "main.consumer.") == {"max.poll.records": 20}
    assert config.prefixed("spark.") == {"master": "local[2]"}
    assert config.extras["security.protocol"] == "SSL"
    assert StreamsConfig.of(config.to_mapping()) == config


def test_extras_must_have_a_known_prefix() -> None:
    with pytest.raises(ConfigError, match=r"extras: 'comsumer\.x' must begin with one of consumer\."):
        StreamsConfig(extras={"comsumer.x": 1})
    nonsense: Any = ["consumer.x"]
    with pytest.raises(ConfigError, match="extras must be a mapping"):
        StreamsConfig(extras=nonsense)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"application_id": ""}, "application_id must be a string of letters, digits"),
        ({"application_id": "a/b"}, "application_id must be .*got str 'a/b'"),
        ({"statestore_cache_max_bytes": -1}, "must be a whole number, at least 0, got int -1"),
        ({"statestore_cache_max_bytes": True}, "must be a whole number, at least 0, got bool True"),
        ({"statestore_cache_max_bytes": 1.5}, "got float 1.5"),
        ({"commit_interval": 100}, "must be a timedelta, at least 0 ms, or None, got int 100; write for example"),
        ({"commit_interval": timedelta(microseconds=1500)}, "got timedelta .*; give it in whole milliseconds"),
        ({"commit_interval": timedelta(milliseconds=-1)}, "at least 0 ms"),
        ({"max_task_idle": timedelta(milliseconds=-2)}, "at least -1 ms"),
        ({"processing_guarantee": "exactly_once_v3"}, "did you mean 'exactly_once_v2'"),
        (
            {"default_dsl_store": "rockdb"},
            "one of 'lmdb', 'rocksdb', 'in_memory', got .*; did you mean 'rocksdb'",
        ),
        ({"dsl_store": "lmdb"}, "setting 'dsl_store' is unknown; it is 'default_dsl_store' here"),
        (
            {"rocksdb_config_setter": 5},
            "must be a function .*, or an object with the method set_config",
        ),
        ({"rocksdb_config_setter": lambda name: None}, "must be a function \\(store_name, options, configs\\)"),
        ({"rocksdb_cache_max_bytes": 1000}, "must be a whole number, at least 8388608, got int 1000"),
        ({"default_key_serde": str}, "default_key_serde must be a serde, got str ''"),
        ({"default_timestamp_extractor": 5}, "must be a function .*, got int 5"),
        ({"on_late": "print"}, "must be a function .*, or None, got str 'print'"),
        ({"processor_wrapper": len}, "methods wrap_processor_supplier and wrap_fixed_key_processor_supplier"),
        ({"state_dir": 5}, "state_dir must be a path, got int 5"),
        ({"ensure_explicit_internal_resource_naming": 1}, "must be True or False, got int 1"),
        ({"errors_dead_letter_queue_topic_name": "a b"}, "errors_dead_letter_queue_topic_name must be a string of"),
        ({"topology_optimization": "al"}, "topology_optimization must be 'none', 'all', or some of"),
        ({"topology_optimization": ["all", "none"]}, "got str 'all'"),
        ({"topology_optimization": "merge.repartition.topic"}, "did you mean 'merge.repartition.topics'"),
    ],
)
def test_impossible_values_are_refused(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        StreamsConfig(**settings)


def test_guarantee_is_exactly_once_unless_less_is_asked_for() -> None:
    assert StreamsConfig().exactly_once
    assert not StreamsConfig(processing_guarantee="at_least_once").exactly_once
    # A transaction is as long as the writing of results, not as the interval.
    assert StreamsConfig.of({"commit.interval.ms": 60_000}).exactly_once


@pytest.mark.parametrize(
    ("given", "kept"),
    [("rocksDB", "rocksdb"), ("in_memory", "in_memory"), ("memory", "in_memory"), ("disk", "lmdb"), ("lmdb", "lmdb")],
)
def test_store_types_have_kafkas_names_too(given: str, kept: str) -> None:
    assert StreamsConfig(default_dsl_store=given).default_dsl_store == kept
    assert StreamsConfig.of({"default.dsl.store": given}).default_dsl_store == kept


class ConfigSetter:
    def set_config(self, store_name: str, options: Any, configs: Any) -> None: ...


def test_a_config_setter_is_a_function_or_an_object_or_its_class() -> None:
    def set_config(store_name: str, options: Any, configs: Any) -> None: ...

    assert StreamsConfig(rocksdb_config_setter=set_config).rocksdb_config_setter is set_config
    given = ConfigSetter()
    assert StreamsConfig(rocksdb_config_setter=given).rocksdb_config_setter is given
    made = StreamsConfig.of({"rocksdb.config.setter": ConfigSetter}).rocksdb_config_setter
    assert isinstance(made, ConfigSetter)


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ("none", set()),
        ("all", {"reuse.ktable.source.topics", "merge.repartition.topics", "single.store.self.join"}),
        (
            "merge.repartition.topics, single.store.self.join",
            {"merge.repartition.topics", "single.store.self.join"},
        ),
        (("single.store.self.join",), {"single.store.self.join"}),
    ],
)
def test_optimizations_can_be_named_one_by_one(given: Any, expected: set[str]) -> None:
    config = StreamsConfig(topology_optimization=given)
    assert config.optimizations == expected
    assert StreamsConfig.of({"topology.optimization": given}) == config


def test_classes_stand_for_their_instances() -> None:
    config = StreamsConfig.of({"default.timestamp.extractor": WallclockTimestampExtractor})
    assert config.default_timestamp_extractor == WallclockTimestampExtractor()


def test_class_whose_instances_cannot_be_called_is_the_function() -> None:
    assert StreamsConfig(http_formatter=str).http_formatter is str
    assert StreamsConfig.of({"http.formatter": "builtins:str"}).http_formatter is str


def test_class_that_is_neither_a_function_nor_makes_one_is_refused() -> None:
    class Formatter:
        def format(self, value: object) -> str:
            return str(value)

    with pytest.raises(ConfigError, match=r"http_formatter must be a function \(value\).*Formatter takes \(\)"):
        StreamsConfig.of({"http_formatter": Formatter})


def test_mapping_and_back_is_the_same_configuration() -> None:
    config = StreamsConfig(
        application_id="app",
        bootstrap_servers="localhost:9092",
        state_dir=Path("/var/lib/app"),
        commit_interval=timedelta(seconds=5),
        topology_optimization="all",
        on_late=print,
        errors_dead_letter_queue_topic_name="failed",
        extras={"topic.retention.ms": 1},
    )
    mapping = config.to_mapping()
    assert mapping["commit.interval.ms"] == 5000
    assert mapping["topic.retention.ms"] == 1
    assert StreamsConfig.of(mapping) == config
    assert "commit.interval.ms" not in StreamsConfig().to_mapping()


def test_configuration_pickles_and_can_be_varied() -> None:
    config = StreamsConfig(application_id="app", extras={"spark.master": "local[1]"})
    assert pickle.loads(pickle.dumps(config)) == config
    varied = dataclasses.replace(config, processing_guarantee="exactly_once_v2")
    assert (varied.application_id, varied.commit_interval_ms) == ("app", 100)
    with pytest.raises(dataclasses.FrozenInstanceError):
        config.application_id = "other"  # type: ignore[misc]  # that it fails is the point


def test_configuration_does_not_share_its_extras() -> None:
    extras = {"spark.master": "local[1]"}
    config = StreamsConfig(extras=extras)
    extras["spark.master"] = "changed"
    assert config.extras == {"spark.master": "local[1]"}


def test_every_setting_has_a_dotted_name_of_its_own() -> None:
    mapping = StreamsConfig(
        bootstrap_servers="a:1",
        commit_interval=timedelta(0),
        emit_interval=timedelta(0),
        on_late=print,
        errors_dead_letter_queue_topic_name="failed",
        rocksdb_config_setter=ConfigSetter(),
        log_dir="log",
        http_listen="localhost:0",
        http_token="secret",
        http_tls_certificate="certificate.pem",
        http_tls_key="key.pem",
        http_tls_authority="authority.pem",
        http_formatter=repr,
    ).to_mapping()
    # All but the extras, and the processor wrapper, which is None here.
    assert len(mapping) == len(dataclasses.fields(StreamsConfig)) - 2


def test_source_of_a_configuration_must_be_a_mapping() -> None:
    nonsense: Any = [("application.id", "app")]
    with pytest.raises(ConfigError, match="a configuration is a StreamsConfig, a mapping or None, got list"):
        StreamsConfig.of(nonsense)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"application_idd": "x"}, r"setting 'application_idd' is unknown; did you mean 'application_id'\?"),
        ({"commit_interval_ms": 5}, "setting 'commit_interval_ms' is unknown; it is 'commit_interval' here"),
        ({"zebra": 5}, "setting 'zebra' is unknown$"),
    ],
)
def test_an_unknown_keyword_is_answered_with_what_was_meant(settings: Any, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        StreamsConfig(**settings)


def test_settings_are_keyword_arguments() -> None:
    config: Any = StreamsConfig
    with pytest.raises(ConfigError, match=r"settings are keyword arguments, got dict .*StreamsConfig.of"):
        config({"application.id": "x"})


@pytest.mark.parametrize(
    ("key", "value", "told"),
    [
        (
            "commit.interval.ms",
            "soon",
            r"commit\.interval\.ms must be a number of milliseconds, at least 0, or None, got",
        ),
        ("task.timeout.ms", "-1", r"task\.timeout\.ms must be a number of milliseconds, at least 0, got str '-1'"),
        ("num.stream.threads", "many", r"num\.stream\.threads must be a whole number, at least 1, got str 'many'"),
        ("processing_guarantee", "exactly", "processing_guarantee must be one of .* did you mean 'exactly_once_v2'"),
    ],
)
def test_wrong_values_are_refused_by_the_name_that_was_given(key: str, value: str, told: str) -> None:
    with pytest.raises(ConfigError, match=told):
        StreamsConfig.of({key: value})


@pytest.mark.parametrize("value", [10**30, "1" + "0" * 30])
def test_durations_that_are_too_long_are_refused(value: int | str) -> None:
    with pytest.raises(ConfigError, match=r"commit\.interval\.ms is a duration of at most 999999999 days"):
        StreamsConfig.of({"commit.interval.ms": value})


def test_settings_of_javas_clients_need_no_prefix(caplog: pytest.LogCaptureFixture) -> None:
    config = StreamsConfig.of(
        {
            "auto.offset.reset": "latest",
            "acks": "all",
            "linger.ms": 20,
            "producer.linger.ms": 5,
            "max.poll.records": 500,
            "session.timeout.ms": 45000,
            "request.timeout.ms": 1000,
        }
    )
    assert config.prefixed("consumer.") == {"auto.offset.reset": "latest"}
    assert config.prefixed("producer.") == {"acks": "all", "linger.ms": 5}
    assert config.extras["request.timeout.ms"] == 1000
    assert "setting 'max.poll.records' has no effect: a micro-batch reads up to max.batch.records" in caplog.text
    assert "setting 'session.timeout.ms' has no effect: tasks are placed by the host" in caplog.text
    assert StreamsConfig.of(config.to_mapping()) == config
    assert StreamsConfig(extras={"acks": "all"}).extras == {"producer.acks": "all"}


@pytest.mark.parametrize(
    ("name", "instead"),
    [
        ("group.id", "set application.id"),
        ("transactional.id", "set application.id"),
        ("key.serializer", "set default.key.serde"),
        ("value.deserializer", "set default.value.serde"),
        ("partitioner.class", r"Produced\(partitioner=…\)"),
    ],
)
def test_settings_of_clients_that_mean_something_else_here_are_refused_with_the_right_name(
    name: str, instead: str
) -> None:
    with pytest.raises(ConfigError, match=f"setting '{name}' is none of an application: .*{instead}"):
        StreamsConfig.of({name: "x"})


@pytest.mark.parametrize("name", ["acks_of_mine", "max.pull.recrds", "records", "window.size.ms"])
def test_what_is_not_close_gets_no_suggestion(name: str) -> None:
    with pytest.raises(ConfigError) as caught:
        StreamsConfig.of({name: "x"})
    assert str(caught.value) == f"setting '{name}' is unknown"


def test_client_setting_as_a_keyword_says_where_it_goes() -> None:
    settings: Any = {"auto_offset_reset": "latest"}
    with pytest.raises(ConfigError, match=r"extras=\{'consumer\.auto\.offset\.reset': …\}"):
        StreamsConfig(**settings)


def skip(_context: Any, _error: Any) -> Any:
    return Response.resume()


def sent_at(record: ConsumedRecord, _partition_time_ms: int) -> int:
    return int(record.value["sent_at"])


class OwnSerde(BaseSerde[int]):
    def serializer(self, topic: str, *, is_key: bool) -> Callable[[int], bytes]:
        return lambda number: hex(number).encode()


@pytest.mark.parametrize(
    ("key", "text", "field", "value"),
    [
        (
            "default.key.serde",
            "org.apache.kafka.common.serialization.Serdes$StringSerde",
            "default_key_serde",
            Serdes.string(),
        ),
        (
            "default.value.serde",
            "org.apache.kafka.common.serialization.Serdes.UUIDSerde",
            "default_value_serde",
            Serdes.uuid(),
        ),
        ("default.value.serde", "long", "default_value_serde", Serdes.long()),
        (
            "default.deserialization.exception.handler",
            "org.apache.kafka.streams.errors.LogAndContinueExceptionHandler",
            "deserialization_exception_handler",
            LogAndContinueExceptionHandler(),
        ),
        (
            "processing.exception.handler",
            "LogAndContinueProcessingExceptionHandler",
            "processing_exception_handler",
            LogAndContinueProcessingExceptionHandler(),
        ),
        (
            "default.timestamp.extractor",
            "org.apache.kafka.streams.processor.WallclockTimestampExtractor",
            "default_timestamp_extractor",
            WallclockTimestampExtractor(),
        ),
    ],
)
def test_objects_can_be_named_by_classes_of_kafka(key: str, text: str, field: str, value: Any) -> None:
    assert getattr(StreamsConfig.of({key: text}), field) == value


def test_objects_can_be_named_by_module_and_name() -> None:
    config = StreamsConfig.of(
        {
            "deserialization.exception.handler": f"{__name__}:skip",
            "default.value.serde": f"{__name__}:OwnSerde",
            "default.timestamp.extractor": f"{__name__}:sent_at",
        }
    )
    assert config.deserialization_exception_handler is skip
    assert isinstance(config.default_value_serde, OwnSerde)
    assert config.default_timestamp_extractor is sent_at


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("no_such_module:Name", r"default\.value\.serde: 'no_such_module:Name' cannot be imported: No module named"),
        (
            "headrace.serdes:LongSerd",
            "'headrace.serdes' has no 'LongSerd'; did you mean 'LongSerde'",
        ),
        ("headrace:dead_letter", r"default\.value\.serde must be a serde, got function"),
        ("shop.OrderSerde", "names nothing; write module:Name, such as shop:OrderSerde"),
        ("lnog", "'lnog' is not known here; did you mean 'long'"),
        (":x", "names no module"),
        ("io.confluent.GenericAvroSerde", "write module:Name"),
    ],
)
def test_names_that_lead_nowhere_are_explained(text: str, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        StreamsConfig.of({"default.value.serde": text})


def test_replaced_settings_keep_the_others() -> None:
    config = StreamsConfig(application_id="orders", extras={"consumer.auto.offset.reset": "latest"})
    changed = config.replaced({"auto.offset.reset": "earliest", "state.dir": "there"})
    assert (changed.application_id, changed.state_dir) == ("orders", "there")
    assert changed.extras == {"consumer.auto.offset.reset": "earliest"}
    assert config.replaced({}) == config


def test_producers_wait_for_all_replicas() -> None:
    config = StreamsConfig.of({"bootstrap.servers": "localhost:9092", "acks": "1"})
    with pytest.raises(ConfigError, match=r"producer\.acks must be 'all'.*found str '1'; leave it out"):
        ClientSettings.of(config)
    assert ClientSettings.of(StreamsConfig.of({"bootstrap.servers": "b:1", "acks": -1})).producer == {"acks": -1}
