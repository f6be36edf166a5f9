"""An open log of a configuration with one of its topics: the base of producer and consumer."""

from __future__ import annotations

from collections.abc import Mapping
from types import TracebackType
from typing import Any, Self

from headrace.app.directories import log_directory, open_log
from headrace.arguments.values import serde as check_serde
from headrace.config import StreamsConfig
from headrace.errors import (
    ConfigError,
    StreamsError,
    TopicError,
    TopicExistsError,
    UnknownTopicError,
    describe_value,
    did_you_mean,
)
from headrace.serdes import Serde
from headrace.serdes.base import resolved
from headrace.topics.log import Topic


class Client:
    """Holds the log until it is closed."""

    def __init__(
        self,
        config: StreamsConfig | Mapping[str, Any] | None,
        topic: str,
        key_serde: Serde[Any] | None,
        value_serde: Serde[Any] | None,
        partitions: int | None = None,
    ) -> None:
        given: object = topic
        if not isinstance(given, str):
            message = f"{type(self).__name__}: topic must be a str; found {describe_value(given)}"
            raise TopicError(message)
        for option, serde in (("key_serde", key_serde), ("value_serde", value_serde)):
            check_serde(serde, f"{type(self).__name__} of '{topic}': {option}", error=ConfigError)
        self._config = StreamsConfig.of(config)
        self._keys = resolved(key_serde, self._config.default_key_serde)
        self._values = resolved(value_serde, self._config.default_value_serde)
        self._log = open_log(self._config)
        self._is_open = True
        try:
            self._topic = self._find(topic, partitions)
        except BaseException:
            self._log.close()
            raise

    @property
    def topic(self) -> str:
        """The topic's name."""
        return self._topic.name

    def _find(self, name: str, partitions: int | None) -> Topic:
        try:
            return self._log.describe_topic(name)
        except UnknownTopicError:
            if partitions is None:
                servers = self._config.bootstrap_servers
                where = f"the log '{log_directory(self._config)}'" if servers is None else f"Kafka at '{servers}'"
                hint = did_you_mean(name, self._log.topics())
                remedy = f"create it with Producer(…, partitions=1) or `headrace topics create {name}`"
                message = f"{type(self).__name__}: there is no topic '{name}' in {where}{hint or f'; {remedy}'}"
                raise UnknownTopicError(message) from None
        try:
            return self._log.create_topic(name, partitions=partitions)
        except TopicExistsError:
            # Somebody else was faster.
            return self._log.describe_topic(name)

    @property
    def _where(self) -> str:
        return f"{type(self).__name__} of '{self.topic}'"

    def _check_open(self) -> None:
        if not self._is_open:
            message = f"{self._where} is closed; make another one"
            raise StreamsError(message)

    def close(self) -> None:
        """Closes the log. A second call does nothing."""
        if self._is_open:
            self._is_open = False
            self._log.close()

    def __enter__(self) -> Self:
        self._check_open()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
