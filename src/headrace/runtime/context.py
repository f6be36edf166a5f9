"""Contexts, a node's view of its task: the face for operators, and the contexts for user code."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

from headrace.arguments.signatures import describe_function, users
from headrace.config import StreamsConfig
from headrace.errors import StreamsError, UnknownStateStoreError, UnsupportedOperationError, did_you_mean
from headrace.operators.base import BatchRecord, Cell, Edge, StoreExpiry, TaskClock, ValueGetter
from headrace.processor import Cancellable, PunctuationType, stores_of
from headrace.record import FixedKeyRecord, Record, RecordMetadata
from headrace.record import Headers as UserHeaders
from headrace.runtime.punctuation import checked_interval_ms
from headrace.runtime.task_state import TaskState
from headrace.serdes import Serde
from headrace.topics.log import Headers

if TYPE_CHECKING:
    from headrace.runtime.lowering import Lowering


class NodeContext:
    """One node of one task, as its operator sees it."""

    def __init__(self, name: str, state: TaskState, lowering: Lowering) -> None:
        self._name = name
        self._state = state
        self._lowering = lowering

    @property
    def name(self) -> str:
        return self._name

    @property
    def config(self) -> StreamsConfig:
        return self._state.config

    @property
    def task(self) -> TaskClock:
        return self._state

    @property
    def forward(self) -> Edge:
        return self._lowering.forward(self._name)

    def forward_to(self, child: str) -> Edge:
        return self._lowering.edge(self._name, child)

    def forward_from(self, node: str) -> Edge:
        return self._lowering.forward(node)

    def store(self, name: str) -> Any:
        return self._state.store(name)

    def getter(self, table: str) -> ValueGetter:
        return self._lowering.getter(table)

    def expiry(self, store: str) -> StoreExpiry | None:
        return self._state.expiries.by_store.get(store)

    def cell(self, store: str, name: str, default: Any, *, shared: bool = False) -> Cell:
        rank = 0 if shared else self._lowering.rank(self._name, store)
        return self._state.cell(f"{store}/{name}" if rank == 0 else f"{store}/{name}/{rank}", default)

    def processor_context(self, *, fixed_key: bool = False, forwarding: bool = True) -> UserContext:
        self._state.has_processors = True
        if not forwarding:
            return RowContext(self._name, self._state, self._lowering)
        kind = FixedKeyForwardingContext if fixed_key else ForwardingContext
        return kind(self._name, self._state, self._lowering)

    def on_init(self, action: Callable[[], None]) -> None:
        self._state.on_init(self._name, action)

    def on_close(self, action: Callable[[], None]) -> None:
        self._state.on_close(self._name, action)

    def in_batches(self, answer: Callable[[list[BatchRecord]], Sequence[Any]], max_records: int) -> Edge:
        return self._lowering.waiting_behind(self._name).gathering(answer, max_records, self.forward, self.fail)

    def on_end(self, action: Callable[[], None]) -> None:
        self._state.on_end(action)

    def drop(self) -> None:
        self._state.drop()
        self._state.count_at("dropped", self._name)

    def late(
        self, key: Any, value: Any, timestamp_ms: int, headers: Headers, *, window: Any, close_time_ms: int
    ) -> None:
        self._state.late(self._name, key, value, timestamp_ms, headers, window=window, close_time_ms=close_time_ms)

    def fail(self, error: Exception, key: Any, value: Any, timestamp_ms: int, headers: Headers) -> None:
        functions = self._lowering.functions(self._name)
        self._state.faults.processing_failed(self._name, error, key, value, timestamp_ms, headers, functions)


class UserContext:
    """Base of the contexts of all user code."""

    def __init__(self, name: str, state: TaskState, lowering: Lowering) -> None:
        self._name = name
        self._state = state
        self._lowering = lowering
        self._stores = lowering.connected_stores(name)
        self._scheduled = 0

    @property
    def application_id(self) -> str:
        return self._state.config.application_id

    @property
    def task_id(self) -> str:
        return self._state.task_id

    @property
    def record_metadata(self) -> RecordMetadata | None:
        origin = self._state.origin
        return None if origin is None else RecordMetadata(origin[0], origin[1], self._state.offset)

    @property
    def key_serde(self) -> Serde[Any]:
        return self._state.config.default_key_serde

    @property
    def value_serde(self) -> Serde[Any]:
        return self._state.config.default_value_serde

    @property
    def state_dir(self) -> Path:
        return Path(self._state.config.state_dir) / self._state.config.application_id / self._state.task_id

    @property
    def metrics(self) -> Mapping[str, float]:
        return self._state.metrics()

    def get_state_store(self, name: str) -> Any:
        if self._state.is_global(name):
            return self._state.store(name).read_only()
        if name not in self._stores:
            known = ", ".join(sorted(self._stores)) or "none"
            message = (
                f"processor '{self._name}': the store '{name}' is not connected to it (connected: {known})"
                f"{did_you_mean(name, self._stores)}; name it in process(supplier, '{name}') or in add_state_store"
                f"{self._where_it_hides(name)}"
            )
            raise UnknownStateStoreError(message)
        return self._state.store(name)

    def schedule(
        self,
        interval: timedelta,
        type: PunctuationType,
        callback: Callable[[int], None],
        *,
        start_time_ms: int | None = None,
    ) -> Cancellable:
        interval_ms = checked_interval_ms(f"processor '{self._name}'", interval, type, callback)
        self._scheduled += 1
        key = f"{self._name}/{self._scheduled}"
        return self._state.schedule(key, self._name, interval_ms, type, self._punctuator(callback), start_time_ms)

    def _punctuator(self, callback: Callable[[int], None]) -> Callable[[int], None]:
        return callback

    def _where_it_hides(self, store: str) -> str:
        """Returns why a store that a processor seems to bring along is not there: it does, its supplier does not."""
        for supplier in users(self._lowering.functions(self._name)):
            if stores_of(supplier) or isinstance(supplier, type):
                continue
            made = supplier()
            if any(builder.name == store for builder in stores_of(made)):
                return (
                    f"; `stores` of {type(made).__name__} is looked for on the supplier, which is "
                    f"{describe_function(supplier)}: pass the class itself, or set `stores` on the supplier, too"
                )
        return ""

    def commit(self) -> None:
        # A host commits after every record or every batch, which is the next opportunity anyway.
        pass

    def current_system_time_ms(self) -> int:
        return self._state.wall_clock_ms()

    def current_stream_time_ms(self) -> int:
        return self._state.stream_time_ms

    def app_configs(self) -> Mapping[str, Any]:
        return self._state.config.to_mapping()

    def app_configs_with_prefix(self, prefix: str) -> Mapping[str, Any]:
        return {
            name.removeprefix(prefix): value for name, value in self.app_configs().items() if name.startswith(prefix)
        }


class RowContext(UserContext):
    """The context of user code that must not forward (``transform_values``); it knows time and headers of the row."""

    def __init__(self, name: str, state: TaskState, lowering: Lowering) -> None:
        super().__init__(name, state, lowering)
        self.timestamp_ms = -1
        self._headers: Headers = ()

    @property
    def headers(self) -> UserHeaders:
        return UserHeaders(self._headers)

    def at_row(self, timestamp_ms: int, headers: Headers) -> None:
        """Makes a row the one at hand."""
        self.timestamp_ms, self._headers = timestamp_ms, headers

    def _punctuator(self, callback: Callable[[int], None]) -> Callable[[int], None]:
        def punctuate(now_ms: int) -> None:
            self.at_row(now_ms, ())
            callback(now_ms)

        return punctuate

    def forward(self, record: Any, child: str | None = None) -> None:
        message = f"'{self._name}': a value transformer cannot forward records; return the new value instead"
        raise UnsupportedOperationError(message)


class ForwardingContext(UserContext):
    """The context of a ``Processor``."""

    def __init__(self, name: str, state: TaskState, lowering: Lowering) -> None:
        super().__init__(name, state, lowering)
        self._all = lowering.forward(name)
        self._children: dict[str, Edge] = {}

    def forward(self, record: Any, child: str | None = None) -> None:
        if not isinstance(record, Record | FixedKeyRecord):
            message = f"processor '{self._name}': forward takes a Record; found {type(record).__name__}"
            raise StreamsError(message)
        edge = self._all if child is None else self._edge_to(child)
        edge(record.key, record.value, record.timestamp_ms, record.headers)

    def _edge_to(self, child: str) -> Edge:
        if child not in self._children:
            self._children[child] = self._lowering.edge(self._name, child)
        return self._children[child]


class FixedKeyForwardingContext(ForwardingContext):
    """The context of a ``FixedKeyProcessor``: the key of what it forwards is the key that it got."""

    def forward(self, record: Any, child: str | None = None) -> None:
        if not isinstance(record, FixedKeyRecord):
            message = (
                f"processor '{self._name}': a fixed-key processor forwards the FixedKeyRecord it got, changed by "
                f"with_value, with_timestamp or with_headers; found {type(record).__name__}"
            )
            raise StreamsError(message)
        super().forward(record, child)
