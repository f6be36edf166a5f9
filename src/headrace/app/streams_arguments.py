"""Checks of what an application is made of."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta

from headrace.config import StreamsConfig
from headrace.dsl import StreamsBuilder
from headrace.errors import ConfigError, TopologyError, describe_value
from headrace.topology.topology import Topology


def checked_topology(topology: object) -> Topology:
    """Returns the topology, or says what to pass instead."""
    if isinstance(topology, Topology):
        return topology
    found, remedy = describe_value(topology), "pass what StreamsBuilder.build() returns, or a Topology"
    if isinstance(topology, StreamsBuilder):
        found, remedy = "its builder", "call .build()"
    message = f"Streams: it runs a Topology; found {found}; {remedy}"
    raise TopologyError(message)


def checked_config(config: object) -> StreamsConfig:
    """Returns the configuration, or says what to pass instead; None is no configuration, since it names no application.

    >>> checked_config(None)
    Traceback (most recent call last):
    ...
    headrace.errors.ConfigError: Streams: the configuration is a StreamsConfig or a mapping; found None; pass at least \
application_id
    """
    if not isinstance(config, StreamsConfig | Mapping):
        found = describe_value(config)
        message = (
            f"Streams: the configuration is a StreamsConfig or a mapping; found {found}; pass at least application_id"
        )
        raise ConfigError(message)
    return StreamsConfig.of(config)


def seconds_of(call: str, timeout: object) -> float | None:
    """Returns a timeout in seconds; None stands for ever.

    >>> seconds_of("close()", timedelta(milliseconds=1500))
    1.5
    """
    if timeout is None:
        return None
    if not isinstance(timeout, timedelta) or timeout < timedelta(0):
        message = f"{call}: the timeout is a timedelta that is not negative, or None; found {describe_value(timeout)}"
        raise ConfigError(message)
    return timeout.total_seconds()
