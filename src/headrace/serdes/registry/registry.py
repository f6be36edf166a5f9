"""A schema registry, as a value: where it is, and what it can be asked."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import TYPE_CHECKING, Any

from headrace.errors import ConfigError, describe_value

if TYPE_CHECKING:
    from confluent_kafka.schema_registry import SchemaRegistryClient


@dataclass(frozen=True, slots=True)
class SchemaReference:
    """Another registered schema that a schema imports under a name."""

    name: str
    subject: str
    version: int


@dataclass(frozen=True, slots=True)
class Schema:
    """A schema as the registry keeps it: its text, and the language of the text."""

    text: str
    kind: str = "AVRO"
    """AVRO, JSON or PROTOBUF."""
    references: tuple[SchemaReference, ...] = ()


@dataclass(frozen=True, slots=True)
class RegisteredSchema:
    """A schema with the number under which the registry knows it."""

    id: int
    version: int
    schema: Schema


@dataclass(frozen=True)
class SchemaRegistry:
    """A schema registry at an address, with the settings of confluent-kafka's client for it.

    It is a value: it pickles, and every process that uses it connects by itself. ``mock://`` and any name is a registry
    inside the process, for tests: it is empty at the start, and other processes do not see it.

    >>> registry = SchemaRegistry("mock://doctest-registry")
    >>> registry.register("orders-value", Schema('"string"'))
    1
    >>> registry.latest("orders-value").schema.text, registry.latest("nothing-value")
    ('"string"', None)
    """

    url: str
    """Address of the registry, such as ``http://localhost:8081``; several are separated by commas."""
    settings: Mapping[str, Any] = field(default_factory=dict, repr=False)
    """Further settings of the client, such as ``basic.auth.user.info``; they are not shown, because some are secret."""

    def __post_init__(self) -> None:
        if not isinstance(self.url, str) or not self.url.startswith(("http://", "https://", "mock://")):
            found = describe_value(self.url)
            message = f"schema registry: the address must begin with http://, https:// or mock://, got {found}"
            raise ConfigError(message)

    def __hash__(self) -> int:
        return hash((self.url, tuple(sorted(self.settings))))

    @property
    def client(self) -> SchemaRegistryClient:
        """The client of confluent-kafka, one for each process."""
        return _client(self)

    def register(self, subject: str, schema: Schema) -> int:
        """Registers the schema under the subject, unless it is already, and returns its number."""
        return int(self.client.register_schema(subject, _sent(schema)))

    def schema(self, id: int) -> Schema:
        """Returns the schema of that number; raises ``SchemaRegistryError`` if there is none."""
        return _known(self, id)

    def find(self, id: int) -> Schema | None:
        """Returns the schema of that number, or None if there is none."""
        found: Schema | None = self._found(lambda: _known(self, id))
        return found

    def latest(self, subject: str) -> RegisteredSchema | None:
        """Returns the newest schema of a subject, or None if there is no such subject."""
        # Not the client's call for this: it keeps its answers, and would not see what others register.
        versions = self._found(lambda: self.client.get_versions(subject))
        return self.version(subject, max(versions)) if versions else None

    def version(self, subject: str, version: int) -> RegisteredSchema | None:
        """Returns that version of a subject, or None if there is none."""
        found = self._found(lambda: self.client.get_version(subject, version))
        if found is None:
            return None
        return RegisteredSchema(int(found.schema_id), int(found.version), _received(found.schema))

    # Any: the client's types are not complete.
    def _found(self, ask: Callable[[], Any]) -> Any:
        _ = self.client  # imports what follows without its warnings
        from confluent_kafka.schema_registry import SchemaRegistryError

        try:
            return ask()
        except SchemaRegistryError as error:
            if error.http_status_code == 404:
                return None
            raise


def subject_of(topic: str, *, is_key: bool) -> str:
    """Returns the subject that holds the schemas of a topic.

    >>> subject_of("orders", is_key=True)
    'orders-key'
    """
    return f"{topic}-{'key' if is_key else 'value'}"


# A schema of a number never changes, so that no process asks twice.
@cache
def _known(registry: SchemaRegistry, id: int) -> Schema:
    return _received(registry.client.get_schema(id))


@cache
def _client(registry: SchemaRegistry) -> SchemaRegistryClient:
    # The client imports a module of authlib that is on its way out, and says so. That is between the two of them:
    # recorded warnings are not shown, whatever filters authlib sets for them.
    with warnings.catch_warnings(record=True):
        try:
            from confluent_kafka.schema_registry import SchemaRegistryClient
        except ImportError as error:
            message = f"schema registry: {error}; install headrace[registry]"
            raise ConfigError(message) from error
    return SchemaRegistryClient.new_client({"url": registry.url, **registry.settings})


def _sent(schema: Schema) -> Any:
    from confluent_kafka.schema_registry import Schema as Sent
    from confluent_kafka.schema_registry import SchemaReference as SentReference

    references = [SentReference(r.name, r.subject, r.version) for r in schema.references]
    return Sent(schema.text, schema.kind, references)


def _received(schema: Any) -> Schema:
    references = tuple(SchemaReference(r.name, r.subject, r.version) for r in schema.references or ())
    return Schema(schema.schema_str, schema.schema_type or "AVRO", references)
