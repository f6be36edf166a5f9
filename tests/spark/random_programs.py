"""Random programs with random inputs, for comparing two hosts.

Everything comes from one ``Random``: a seed repeats a program, and Hypothesis can shrink one.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from datetime import timedelta
from random import Random
from typing import Any

from headrace import (
    BufferConfig,
    EmitStrategy,
    Grouped,
    Joined,
    JoinWindows,
    Materialized,
    Produced,
    Repartitioned,
    Serdes,
    SessionWindows,
    SlidingWindows,
    StreamJoined,
    StreamsBuilder,
    StreamsConfig,
    Suppressed,
    TimeWindows,
    Topology,
)
from headrace.app.scripted_runs.hosted import Step
from headrace.topics.log import Output

STRING = Serdes.string()
UNBOUNDED = BufferConfig.unbounded()
STREAMS, TABLES = ("a", "b"), ("t", "u")
_KEYS = ("k1", "k2", "k3", "x", "y")
_LONGEST = 14


def _ms(milliseconds: int) -> timedelta:
    return timedelta(milliseconds=milliseconds)


def _end(text: str) -> str:
    """Keeps values short, however often they are joined."""
    return text[-_LONGEST:]


def _first_char(_key: Any, value: Any) -> str | None:
    return None if value is None else value[:1]


def _length_key(_key: Any, value: Any) -> str:
    return f"l{len(value or '')}"


def _swap_key(key: Any, value: Any) -> str:
    return f"{value}"[-1:] + f"{key}"[:1]


def _foreign_key(value: Any) -> str | None:
    return None if not value else _KEYS[len(value) % len(_KEYS)]


def _pair(left: Any, right: Any) -> str:
    return _end(f"{left}|{right}")


def _concat(total: Any, value: Any) -> str:
    return _end(f"{total}+{value}")


def _add(_key: Any, value: Any, total: Any) -> str:
    return _end(f"{total}+{value}")


def _subtract(_key: Any, value: Any, total: Any) -> str:
    return _end(f"{total}-{value}")


def _minus(total: Any, value: Any) -> str:
    return _end(f"{total}-{value}")


def _text(value: Any) -> str | None:
    return None if value is None else str(value)


def _printed(windowed: Any, _value: Any) -> str:
    return f"{windowed.key}@{windowed.window.start_ms}"


def _has_key(key: Any, _value: Any) -> bool:
    # Where records without a key go is up to the log.
    return key is not None


_SELECTORS: tuple[Callable[[Any, Any], Any], ...] = (_first_char, _length_key, _swap_key)


@dataclass
class Program:
    """A topology, its configuration and its inputs."""

    topology: Topology
    config: StreamsConfig
    partitions: int
    outputs: list[str]
    steps: list[Step]

    @property
    def topics(self) -> dict[str, int]:
        return dict.fromkeys([*STREAMS, *TABLES, *self.outputs], self.partitions)


@dataclass
class _Making:
    random: Random
    builder: StreamsBuilder
    streams: list[Any] = field(default_factory=list)
    tables: list[Any] = field(default_factory=list)
    names: int = 0
    one_by_one: bool = False
    """Whether map_values stands where map_batches would."""

    def stream(self) -> Any:
        return self.random.choice(self.streams)

    def table(self) -> Any:
        return self.random.choice(self.tables)

    def selector(self) -> Any:
        return self.random.choice(_SELECTORS)

    def store(self) -> Materialized[Any, Any]:
        """Half of the stores are named, so that they write changelogs."""
        self.names += 1
        name = f"store-{self.names}" if self.random.random() < 0.5 else None
        return Materialized(name, key_serde=STRING, value_serde=STRING)

    def counts(self) -> Materialized[Any, Any]:
        self.names += 1
        return Materialized(f"store-{self.names}", key_serde=STRING, value_serde=Serdes.long())

    def grouped(self) -> Any:
        if self.random.random() < 0.6:
            return self.stream().group_by(self.selector(), Grouped(key_serde=STRING, value_serde=STRING))
        return self.stream().group_by_key(Grouped(key_serde=STRING, value_serde=STRING))


def make_program(
    random: Random, partitions: int, *, one_by_one: bool = False, batches: float = 0.05, ttl: bool = True
) -> Program:
    """Makes a program whose topics all have the same number of partitions.

    ``batches`` of its operations are ``map_batches``, or ``map_values`` if it is to work ``one_by_one``.
    """
    config = StreamsConfig.of(
        {
            "application.id": "random",
            "default.key.serde": STRING,
            "default.value.serde": STRING,
            "statestore.cache.max.bytes": random.choice((0, 10_000_000)),
            "topology.optimization": random.choice(("none", "all")),
            "emit.interval.ms": 0,
        }
    )
    making = _Making(random, StreamsBuilder(config), one_by_one=one_by_one)
    making.streams = [making.builder.stream(topic) for topic in STREAMS]
    making.tables = [making.builder.table(topic) for topic in TABLES]
    for _ in range(random.randint(1, 6)):
        operation = _map_batches if random.random() < batches else random.choice(_OPERATIONS)
        if ttl or operation is not _expire:
            operation(making)
    outputs: list[str] = []
    for made in [*making.streams[len(STREAMS) :], *(table.to_stream() for table in making.tables[len(TABLES) :])]:
        outputs.append(f"out{len(outputs)}")
        made.filter(_has_key).to(outputs[-1], Produced(key_serde=STRING, value_serde=STRING))
    topology, steps = making.builder.build(config), _steps(random)
    # The driver keeps everything in memory, so what is kept elsewhere must come back the same from there.
    kept = replace(config, default_dsl_store=random.choice(("lmdb", "lmdb", "rocksdb", "in_memory")))
    return Program(topology, kept, partitions, outputs, steps)


def _steps(random: Random) -> list[Step]:
    """Makes batches of records whose times go on, with some that are late."""
    steps, now_ms = [], 0
    for _ in range(random.randint(2, 6)):
        if random.random() < 0.15:
            steps.append(Step(advance_ms=random.randint(1, 50)))
        batch: dict[str, list[Output]] = {}
        for _ in range(random.choice((0, 1, 1, 3, 8))):
            now_ms += random.choice((0, 0, 1, 2, 5, 20))
            key = random.choice((*_KEYS, *_KEYS, None))
            value = random.choice(("a", "bb", "ccc", "ax", "k1", "", None))
            time_ms = max(0, now_ms - random.choice((0, 0, 0, 3, 15)))
            record: Output = (
                0 if key is None else None,
                time_ms,
                None if key is None else key.encode(),
                None if value is None else value.encode(),
                (("h", b"1"),) if random.random() < 0.1 else (),
            )
            batch.setdefault(random.choice((*STREAMS, *TABLES)), []).append(record)
        steps.append(Step(list(batch.items())))
    return steps


def _stateless(making: _Making) -> None:
    stream, random = making.stream(), making.random
    made = random.choice(
        (
            lambda: stream.map_values(_text),
            lambda: stream.filter(lambda key, value: value != "bb"),
            lambda: stream.flat_map_values(lambda value: [value, f"{value}!"]),
            lambda: stream.map(lambda key, value: (_swap_key(key, value), value)),
            lambda: stream.select_key(making.selector()),
            lambda: stream.merge(making.stream()),
        )
    )()
    making.streams.append(made)


def _marked(value: Any) -> str | None:
    return None if value == "ax" else _end(f"{value}~")


def _map_batches(making: _Making) -> None:
    stream, max_records = making.stream(), making.random.choice((1, 2, 3, 100))
    if making.one_by_one:
        making.streams.append(stream.map_values(_marked))
    else:
        marked = stream.map_batches(lambda records: [_marked(each.value) for each in records], max_records=max_records)
        making.streams.append(marked)


def _repartition(making: _Making) -> None:
    stream = making.stream().select_key(making.selector())
    making.streams.append(stream.repartition(Repartitioned(key_serde=STRING, value_serde=STRING)))


def _count(making: _Making) -> None:
    making.tables.append(making.grouped().count(making.counts()).map_values(_text))


def _reduce(making: _Making) -> None:
    making.tables.append(making.grouped().reduce(_concat, making.store()))


def _aggregate(making: _Making) -> None:
    making.tables.append(making.grouped().aggregate(lambda: "0", _add, making.store()))


def _to_table(making: _Making) -> None:
    making.tables.append(making.stream().filter(_has_key).to_table(making.store()))


def _distinct(making: _Making) -> None:
    random = making.random
    by = random.choice((None, making.selector()))
    stream = making.stream().repartition(Repartitioned(key_serde=STRING, value_serde=STRING))
    making.streams.append(stream.distinct(by=by, within=_ms(random.choice((1, 5, 30)))))


def _expire(making: _Making) -> None:
    random = making.random
    # By the wall clock it matters how many batches a step takes.
    kept = replace(making.store(), ttl=_ms(random.choice((2, 10, 40))))
    making.tables.append(
        random.choice(
            (
                lambda: making.stream().filter(_has_key).to_table(kept),
                lambda: making.grouped().reduce(_concat, kept),
                lambda: making.grouped().aggregate(lambda: "0", _add, kept),
                lambda: making.table().outer_join(making.table(), _pair, materialized=kept),
            )
        )()
    )


def _windowed(making: _Making) -> None:
    random = making.random
    size, grace = _ms(random.choice((5, 10))), _ms(random.choice((0, 4, 20)))
    windows: Any = random.choice(
        (
            TimeWindows.of_size_and_grace(size, grace),
            TimeWindows.of_size_and_grace(size, grace).advance_by(_ms(3)),
            SlidingWindows.of_time_difference_and_grace(size, grace),
            SessionWindows.of_inactivity_gap_and_grace(size, grace),
        )
    )
    grouped = making.grouped().windowed_by(windows)
    if random.random() < 0.2:
        grouped = grouped.emit_strategy(EmitStrategy.on_window_close())
        table = grouped.count(making.counts())
    else:
        table = grouped.count(making.counts())
        if random.random() < 0.4:
            suppressed = random.choice(
                (Suppressed.until_window_closes(UNBOUNDED), Suppressed.until_time_limit(_ms(6), UNBOUNDED))
            )
            table = table.suppress(suppressed)
    making.streams.append(table.map_values(_text).to_stream(_printed))


def _suppress(making: _Making) -> None:
    limit = _ms(making.random.choice((0, 7, 30)))
    making.tables.append(making.table().suppress(Suppressed.until_time_limit(limit, UNBOUNDED)))


def _join_windows(making: _Making) -> JoinWindows:
    random = making.random
    windows = JoinWindows.of_time_difference_and_grace(_ms(random.choice((0, 4, 10))), _ms(random.choice((0, 5))))
    return windows.before(_ms(3)) if random.random() < 0.3 else windows


def _stream_join(making: _Making) -> None:
    _join_streams(making, making.stream(), making.stream())


def _self_join(making: _Making) -> None:
    stream = making.stream()
    _join_streams(making, stream, stream.select_key(making.selector()))


def _join_streams(making: _Making, left: Any, right: Any) -> None:
    join = getattr(left, making.random.choice(("join", "left_join", "outer_join")))
    joined: StreamJoined[Any, Any, Any] = StreamJoined(key_serde=STRING, value_serde=STRING, other_value_serde=STRING)
    making.streams.append(join(right, _pair, windows=_join_windows(making), joined=joined))


def _stream_table_join(making: _Making) -> None:
    join = getattr(making.stream(), making.random.choice(("join", "left_join")))
    joined: Joined[Any, Any, Any] = Joined(key_serde=STRING, value_serde=STRING, other_value_serde=STRING)
    making.streams.append(join(making.table(), _pair, joined=joined))


def _table_join(making: _Making) -> None:
    join = getattr(making.table(), making.random.choice(("join", "left_join", "outer_join")))
    making.tables.append(join(making.table(), _pair, materialized=making.store()))


def _foreign_key_join(making: _Making) -> None:
    join = getattr(making.table(), making.random.choice(("join", "left_join")))
    making.tables.append(join(making.table(), _pair, foreign_key=_foreign_key, materialized=making.store()))


def _table_group(making: _Making) -> None:
    selector = making.selector()
    grouped = making.table().group_by(
        lambda key, value: (selector(key, value), value), Grouped(key_serde=STRING, value_serde=STRING)
    )
    making.tables.append(
        making.random.choice(
            (
                lambda: grouped.count(making.counts()).map_values(_text),
                lambda: grouped.reduce(_concat, _minus, making.store()),
                lambda: grouped.aggregate(lambda: "0", _add, _subtract, making.store()),
            )
        )()
    )


def _table_operation(making: _Making) -> None:
    table, random = making.table(), making.random
    materialized = making.store() if random.random() < 0.5 else None
    if random.random() < 0.5:
        making.tables.append(table.map_values(_text, materialized))
    else:
        making.tables.append(table.filter(lambda key, value: value != "bb", materialized))


def _to_stream(making: _Making) -> None:
    making.streams.append(making.table().to_stream())


_OPERATIONS: tuple[Callable[[_Making], None], ...] = (
    _stateless,
    _stateless,
    _repartition,
    _count,
    _reduce,
    _aggregate,
    _to_table,
    _expire,
    _distinct,
    _windowed,
    _windowed,
    _suppress,
    _stream_join,
    _self_join,
    _stream_table_join,
    _table_join,
    _foreign_key_join,
    _foreign_key_join,
    _table_group,
    _table_operation,
    _to_stream,
)
