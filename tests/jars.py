"""Jars of Apache Kafka that only tests need, beside those of the broker."""

from pathlib import Path

from headrace.devtools.kafka_broker.jars import kept_jars

_TOOLS_DIGEST = "47225de378a2aa206153b576303a28ef04e07aaf45f88efc1e9d0be8a73adce8"
_STREAMS_DIGEST = "a9732581f92ce1f47fa9a7fab2b73a5d83400d3aa9298e166f4d0fd8f8e75d80"
_CONNECT_DIGEST = "8f4c90a880cd75726cf59025dc5a0108955b2b5493f27c9bd5828346b20cde9d"
_CONNECT_FILE_DIGEST = "41167dae93cf6a2f6dfdb13f3af29ed25f8e273aa2905c3e598d9c7a8fa33fb2"


def tools_jars(java: Path) -> Path:
    """Returns the directory with Kafka's command-line tools, which run with the broker's jars beside them."""
    return kept_jars(java, "kafka-tools", "kafka-tools", _TOOLS_DIGEST, "-notransitive")


def streams_jars(java: Path) -> Path:
    """Returns the directory with Kafka Streams itself, whose classes need the broker's jars beside them."""
    return kept_jars(java, "kafka-streams", "kafka-streams", _STREAMS_DIGEST, "-notransitive")


def connect_jars(java: Path) -> Path:
    """Returns the directory with a worker of Kafka Connect, without connectors."""
    return kept_jars(java, "kafka-connect", "connect-runtime", _CONNECT_DIGEST)


def connect_file_jars(java: Path) -> Path:
    """Returns the directory with the connectors that read and write files."""
    return kept_jars(java, "kafka-connect-file", "connect-file", _CONNECT_FILE_DIGEST, "-notransitive")
