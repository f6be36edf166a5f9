"""A Kafka broker on this machine, for development and tests: one node, small, gone when it is stopped."""

from headrace.devtools.kafka_broker.broker import start_broker, stop_broker

__all__ = ["start_broker", "stop_broker"]
