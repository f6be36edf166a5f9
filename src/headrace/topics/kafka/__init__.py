"""Topics of Kafka, through librdkafka: the only place where its client is imported.

| module | |
|---|---|
| ``kafka_log`` | the topic log: a thin front for the others |
| ``task_transaction`` | what a task commits: one transaction per batch |
| ``journal`` | what the driver commits: a record for each step of a batch |
| ``history``, ``history_reader``, ``progress_topics`` | the driver's records together, and the topics of progress |
| ``resetting``, ``consistent_cut``, ``descriptions``, ``journal_maintenance`` | reset, cut, description, upkeep |
| ``consumer_groups``, ``offset_metadata_commit`` | committed offsets of consumer groups, for tools and for takeovers |
| ``plain_append``, ``transactional_append`` | appends without a transaction, and in one |
| ``acknowledged_append`` | the fenced appends of drivers |
| ``producing``, ``transactional_producers`` | producers: delivery, and fencing by a transactional id |
| ``reading``, ``time_lookup`` | a range of offsets, and offsets by time |
| ``administration`` | topics and offsets, as the brokers know them |
| ``clients``, ``settings``, ``client_errors`` | the clients of a process, their settings, their errors as ours |
"""

from headrace.errors import MissingDependencyError

try:
    import confluent_kafka as _client  # noqa: F401 - looked for before anything needs it
except ImportError as error:
    message = "topics of Kafka need its client, confluent-kafka, which is missing: pip install 'headrace[kafka]'"
    raise MissingDependencyError(message) from error

from headrace.topics.kafka.kafka_log import KafkaLog

__all__ = ["KafkaLog"]
