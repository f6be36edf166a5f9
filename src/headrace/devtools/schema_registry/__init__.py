"""Schema registry for development: the HTTP interface of Confluent's registry, its content in a topic of the log.

It is for trying things out, on one machine: it listens on localhost only, knows no users, no clusters and no modes, and
checks compatibility for Avro alone.

| module | what it is about |
|---|---|
| ``avro_schemas``, ``schemas``, ``compatibility`` | schemas: what is one, which are the same, which can follow which |
| ``content`` | what is registered, made of the records of the topic |
| ``registry`` | what can be asked of it |
| ``errors`` | errors, with the numbers that clients know |
| ``routes``, ``server`` | HTTP |
| ``process`` | a process of its own, in the background |
"""

from headrace.devtools.schema_registry.registry import DevelopmentRegistry
from headrace.devtools.schema_registry.server import RegistryServer

__all__ = ["DevelopmentRegistry", "RegistryServer"]
