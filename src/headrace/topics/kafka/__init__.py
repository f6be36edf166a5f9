"""Topics of Kafka, through librdkafka: the only place where its client is imported."""

from headrace.errors import MissingDependencyError

try:
    import confluent_kafka as _client  # noqa: F401 - looked for before anything needs it
except ImportError as error:
    message = "topics of Kafka need its client, confluent-kafka, which is missing: pip install 'headrace[kafka]'"
    raise MissingDependencyError(message) from error

from headrace.topics.kafka.kafka_log import KafkaLog

__all__ = ["KafkaLog"]
