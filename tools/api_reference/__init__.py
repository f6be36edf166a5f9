"""Writes ``docs/api.md``: the public API of Kafka Streams, and what each type and method is in Headrace.

``kafka_streams.json`` lists what Kafka Streams has; ``mapping.toml`` says where Headrace differs, and why. Everything
that is claimed to be here is looked up in the package, so the page cannot promise a name that does not exist.
"""
