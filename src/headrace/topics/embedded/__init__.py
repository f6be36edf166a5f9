"""The embedded log: topics in a directory of this machine, for any number of processes, without a server."""

from headrace.topics.embedded.embedded_log import EmbeddedLog

__all__ = ["EmbeddedLog"]
