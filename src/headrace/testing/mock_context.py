"""A processor context that only takes notes: to test one processor alone, without a topology."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any

from headrace.config import StreamsConfig
from headrace.errors import UnknownStateStoreError, did_you_mean
from headrace.processor import PunctuationType
from headrace.record import EMPTY_HEADERS, FixedKeyRecord, Record, RecordMetadata
from headrace.runtime.punctuation import checked_interval_ms
from headrace.serdes import Serde

AnyRecord = Record[Any, Any] | FixedKeyRecord[Any, Any]


@dataclass(frozen=True, slots=True)
class CapturedForward:
    """A record that the processor forwarded, and the child it named, if it named one."""

    record: AnyRecord
    child: str | None = None


@dataclass(slots=True)
class CapturedPunctuator:
    """A punctuation that the processor scheduled; the test calls ``callback`` itself."""

    interval: timedelta
    type: PunctuationType
    callback: Callable[[int], None]
    start_time_ms: int | None = None
    cancelled: bool = False

    def cancel(self) -> None:
        """Notes that the processor cancelled it."""
        self.cancelled = True


class MockProcessorContext:
    """Give it to ``processor.init`` and look afterwards at what the processor forwarded, scheduled and asked for.

    >>> from headrace import Processor, Record
    >>> class Shout(Processor[str, str, str, str]):
    ...     def process(self, record: Record[str, str]) -> None:
    ...         self.context.forward(record.with_value(record.value.upper()))
    >>> context, shout = MockProcessorContext(), Shout()
    >>> shout.init(context)
    >>> shout.process(Record("k", "hello", timestamp_ms=0))
    >>> [forward.record.value for forward in context.forwarded()]
    ['HELLO']
    """

    def __init__(
        self,
        config: StreamsConfig | Mapping[str, Any] | None = None,
        *,
        task_id: str = "0_0",
        state_dir: str | Path | None = None,
    ) -> None:
        given = {"application_id": "mock-application"} if config is None else config
        self._config = StreamsConfig.of(given)
        self.task_id = task_id
        self.state_dir = Path(tempfile.gettempdir() if state_dir is None else state_dir)
        self.record_metadata: RecordMetadata | None = None
        """Set it to what the processor should see as the current record's place."""
        self.timestamp_ms = -1
        """Set it to what a value transformer should see as the time of its row."""
        self.headers = EMPTY_HEADERS
        """Set it to what a value transformer should see as the headers of its row."""
        self.system_time_ms = 0
        self.stream_time_ms = -1
        self.committed = False
        """Whether the processor asked for a commit; set it back to False to ask again."""
        self.scheduled_punctuators: list[CapturedPunctuator] = []
        self._forwards: list[CapturedForward] = []
        self._stores: dict[str, Any] = {}

    @property
    def application_id(self) -> str:
        """The name of the application, from the configuration."""
        return self._config.application_id

    @property
    def key_serde(self) -> Serde[Any]:
        """The default serde of keys."""
        return self._config.default_key_serde

    @property
    def value_serde(self) -> Serde[Any]:
        """The default serde of values."""
        return self._config.default_value_serde

    @property
    def metrics(self) -> Mapping[str, float]:
        """Nothing: a mock counts nothing."""
        return {}

    def app_configs(self) -> Mapping[str, Any]:
        """Returns the configuration under Kafka's names."""
        return self._config.to_mapping()

    def app_configs_with_prefix(self, prefix: str) -> Mapping[str, Any]:
        """Returns the settings that start with a prefix, without it."""
        return {
            name.removeprefix(prefix): value for name, value in self.app_configs().items() if name.startswith(prefix)
        }

    def add_state_store(self, store: Any) -> None:
        """Makes a store available to the processor.

        >>> from headrace import Stores
        >>> from headrace.state import MemoryEngine
        >>> builder = Stores.key_value_store_builder(Stores.in_memory_key_value_store("seen"))
        >>> context = MockProcessorContext()
        >>> context.add_state_store(builder.build(MemoryEngine()))
        >>> context.get_state_store("seen").get("nobody") is None
        True
        """
        self._stores[store.name] = store

    def get_state_store(self, name: str) -> Any:
        """Returns a store that the test has added."""
        if name not in self._stores:
            message = (
                f"the test has added no store '{name}'{did_you_mean(name, self._stores)}; call add_state_store first"
            )
            raise UnknownStateStoreError(message)
        return self._stores[name]

    def schedule(
        self,
        interval: timedelta,
        type: PunctuationType,
        callback: Callable[[int], None],
        *,
        start_time_ms: int | None = None,
    ) -> CapturedPunctuator:
        """Notes a punctuation; it never fires by itself."""
        checked_interval_ms("schedule()", interval, type, callback)
        captured = CapturedPunctuator(interval, type, callback, start_time_ms)
        self.scheduled_punctuators.append(captured)
        return captured

    def forward(self, record: AnyRecord, child: str | None = None) -> None:
        """Notes a forwarded record."""
        self._forwards.append(CapturedForward(record, child))

    def forwarded(self, child: str | None = None) -> list[CapturedForward]:
        """Returns what was forwarded; with ``child``, what that child would have got."""
        if child is None:
            return list(self._forwards)
        return [forward for forward in self._forwards if forward.child in (None, child)]

    def reset_forwards(self) -> None:
        """Forgets what was forwarded."""
        self._forwards.clear()

    def commit(self) -> None:
        """Notes that a commit was asked for."""
        self.committed = True

    def current_system_time_ms(self) -> int:
        """Returns the wall clock that the test has set."""
        return self.system_time_ms

    def current_stream_time_ms(self) -> int:
        """Returns the stream time that the test has set."""
        return self.stream_time_ms
