"""Typed producer and typed consumer of a topic, in the embedded log or in Kafka: for scripts and tests."""

from headrace.clients.consumer import Consumer
from headrace.clients.producer import Producer

__all__ = ["Consumer", "Producer"]
