"""Metadata of views: the hosts that have each partition of a store, and their lag."""

from __future__ import annotations

from dataclasses import dataclass

from headrace.errors import ConfigError
from headrace.topics.log import TopicPartition


@dataclass(frozen=True, order=True)
class HostInfo:
    """Address of an instance.

    >>> HostInfo.build_from_endpoint("db1:7070")
    HostInfo(host='db1', port=7070)
    """

    host: str
    port: int

    @property
    def address(self) -> str:
        """Host and port as an address of HTTP has them.

        >>> HostInfo("::1", 7070).address
        '[::1]:7070'
        """
        return f"{f'[{self.host}]' if ':' in self.host else self.host}:{self.port}"

    @classmethod
    def build_from_endpoint(cls, endpoint: str) -> HostInfo | None:
        """Reads ``host:port``, also with a scheme before it; None if nothing is given."""
        if not endpoint.strip():
            return None
        host, colon, port = endpoint.split("://", 1)[-1].rstrip("/").rpartition(":")
        if not colon or not host or not port.isdecimal():
            message = f"an address must be host:port, got '{endpoint}'; write for example 'localhost:7070'"
            raise ConfigError(message)
        return cls(host.strip("[]"), int(port))

    @classmethod
    def unavailable(cls) -> HostInfo:
        """Stands for an instance that cannot be reached from outside."""
        return cls("unavailable", -1)


@dataclass(frozen=True)
class KeyQueryMetadata:
    """The hosts that have a key: the active one and its standbys."""

    active_host: HostInfo
    standby_hosts: frozenset[HostInfo]
    partition: int
    """The partition of the key; -1 if the store is global, and every instance has all of it."""


@dataclass(frozen=True)
class LagInfo:
    """Lag of one partition of a view behind its changelog.

    >>> LagInfo(90, 100).offset_lag
    10
    """

    current_offset_position: int
    end_offset_position: int

    @property
    def offset_lag(self) -> int:
        """Records that are in the changelog and not in the view."""
        return max(0, self.end_offset_position - self.current_offset_position)


@dataclass(frozen=True)
class StreamsMetadata:
    """One instance, with the stores and partitions that it has."""

    host_info: HostInfo
    state_store_names: frozenset[str]
    """Stores of which it has active partitions, or which are global."""
    topic_partitions: frozenset[TopicPartition]
    """The changelog partitions that it has as the active one."""
    standby_topic_partitions: frozenset[TopicPartition] = frozenset()
    standby_state_store_names: frozenset[str] = frozenset()

    @property
    def host(self) -> str:
        """The host where it is reached."""
        return self.host_info.host

    @property
    def port(self) -> int:
        """The port where it is reached."""
        return self.host_info.port
