"""Changes of topologies: what ``plan-change`` says of each, and what the application then gives.

Every application first reads ``a b a``, and after the change ``a c``, unless a case says otherwise. The expected values
are worked out by hand from that.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

from headrace import (
    Consumed,
    EmitStrategy,
    Grouped,
    JoinWindows,
    KStream,
    KTable,
    Materialized,
    Migration,
    Produced,
    Serdes,
    StreamJoined,
    StreamsBuilder,
    TimeWindows,
)
from tests.change.kit import Build, Row

MINUTE = timedelta(minutes=1)
MINUTES = TimeWindows.of_size_with_no_grace(MINUTE)
FIRST: Mapping[str, list[Row]] = {"in": [("a", 1, 0), ("b", 2, 1), ("a", 3, 2)]}
THEN: Mapping[str, list[Row]] = {"in": [("a", 4, 3), ("c", 5, 4)]}


@dataclass(frozen=True)
class Case:
    """A change."""

    name: str
    """As the guide has it."""
    before: Build
    after: Build
    stores: Mapping[str, str]
    """What is said of each store."""
    gives: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    """By topic: the last value of each key, after the change and everything else is read."""
    parts: Mapping[int, str] = field(default_factory=lambda: {0: "kept"})
    options: tuple[str, ...] = ()
    first: Mapping[str, list[Row]] = field(default_factory=lambda: FIRST)
    then: Mapping[str, list[Row]] = field(default_factory=lambda: THEN)
    notes: tuple[str, ...] = ()
    """What is said besides."""
    can_start: bool = False
    """Whether it can be started at once."""
    deleted: tuple[str, ...] = ()
    """Topics that are gone then."""
    is_refused: bool = False


def write(table: KTable[Any, Any], topic: str = "out") -> None:
    table.to_stream().to(topic, Produced(value_serde=Serdes.json()))


def write_windows(table: KTable[Any, Any], topic: str = "out") -> None:
    by_key: KStream[Any, Any] = table.to_stream(lambda windowed, value: f"{windowed.key}@{windowed.window.start_ms}")
    by_key.to(topic, Produced(key_serde=Serdes.string(), value_serde=Serdes.json()))


def stream(builder: StreamsBuilder, topic: str = "in") -> KStream[Any, Any]:
    return builder.stream(topic)


def add(key: Any, value: Any, total: Any) -> Any:
    return total + value


def largest(key: Any, value: Any, most: Any) -> Any:
    return max(most, value)


def zero() -> int:
    return 0


def counts(builder: StreamsBuilder) -> None:
    write(stream(builder).group_by_key().count(materialized=Materialized("counts")))


def counts_filtered(builder: StreamsBuilder) -> None:
    some = stream(builder).filter(lambda key, value: value != 4)
    write(some.group_by_key().count(materialized=Materialized("counts")))


def unnamed(builder: StreamsBuilder) -> None:
    write(stream(builder).group_by_key().count())


def unnamed_filtered(builder: StreamsBuilder) -> None:
    write(stream(builder).filter(lambda key, value: value != 4).group_by_key().count())


def counts_and_sums(builder: StreamsBuilder) -> None:
    grouped = stream(builder).group_by_key()
    write(grouped.count(materialized=Materialized("counts")))
    write(grouped.aggregate(zero, add, materialized=Materialized("sums")), "sums")


def other_first(builder: StreamsBuilder) -> None:
    stream(builder, "other").to("copies")
    counts(builder)


def other_counts(builder: StreamsBuilder) -> None:
    counts(builder)
    write(stream(builder, "other").group_by_key().count(materialized=Materialized("others")), "others")


def other_counts_first(builder: StreamsBuilder) -> None:
    write(stream(builder, "other").group_by_key().count(materialized=Materialized("others")), "others")
    counts(builder)


def with_users(builder: StreamsBuilder) -> None:
    records = stream(builder)
    write(records.group_by_key().count(materialized=Materialized("counts")))
    users: KTable[Any, Any] = builder.table("users", materialized=Materialized("users"))
    records.join(users, lambda value, user: f"{user}:{value}").to("named", Produced(value_serde=Serdes.json()))


def two_tables(builder: StreamsBuilder) -> None:
    write(stream(builder).group_by_key().count(materialized=Materialized("counts")))
    write(stream(builder, "other").group_by_key().count(materialized=Materialized("others")), "others")


def two_tables_joined(builder: StreamsBuilder) -> None:
    one = stream(builder).group_by_key().count(materialized=Materialized("counts"))
    other = stream(builder, "other").group_by_key().count(materialized=Materialized("others"))
    write(one)
    write(other, "others")
    write(one.join(other, lambda left, right: [left, right]), "joined")


def two_unnamed(builder: StreamsBuilder) -> None:
    write(stream(builder).group_by_key().count())
    write(stream(builder, "other").group_by_key().count(), "others")


def two_unnamed_reordered(builder: StreamsBuilder) -> None:
    write(stream(builder, "other").group_by_key().count(), "others")
    write(stream(builder).group_by_key().count())


def sum_and_largest(builder: StreamsBuilder) -> None:
    grouped = stream(builder).group_by_key()
    write(grouped.aggregate(zero, add), "sums")
    write(grouped.aggregate(zero, largest), "most")


def largest_and_sum(builder: StreamsBuilder) -> None:
    grouped = stream(builder).group_by_key()
    write(grouped.aggregate(zero, largest), "most")
    write(grouped.aggregate(zero, add), "sums")


def sum_and_largest_shifted(builder: StreamsBuilder) -> None:
    # Two operators: the first store gets the number that the second one had.
    grouped = stream(builder).filter(lambda key, value: True).filter(lambda key, value: True).group_by_key()
    write(grouped.aggregate(zero, add), "sums")
    write(grouped.aggregate(zero, largest), "most")


def totals(builder: StreamsBuilder) -> None:
    write(stream(builder).group_by_key().count(materialized=Materialized("totals")))


def windowed(store: str, windows: TimeWindows = MINUTES, emit: EmitStrategy | None = None) -> Build:
    def build(builder: StreamsBuilder) -> None:
        grouped = stream(builder).group_by_key().windowed_by(windows)
        grouped = grouped if emit is None else grouped.emit_strategy(emit)
        write_windows(grouped.count(materialized=Materialized(store)))

    return build


def by_value(builder: StreamsBuilder) -> None:
    _count_by_value(stream(builder))


def by_value_shifted(builder: StreamsBuilder) -> None:
    _count_by_value(stream(builder).filter(lambda key, value: True))


def _count_by_value(records: KStream[Any, Any]) -> None:
    moved = records.select_key(lambda key, value: str(value % 2)).repartition()
    write(moved.group_by_key().count(materialized=Materialized("counts")))


def odd_and_even(store: str) -> Build:
    def build(builder: StreamsBuilder) -> None:
        grouped = stream(builder).group_by(lambda key, value: str(value % 2))
        write(grouped.count(materialized=Materialized(store)))

    return build


def outer_join(builder: StreamsBuilder) -> None:
    _outer_join(stream(builder), stream(builder, "other"))


def outer_join_shifted(builder: StreamsBuilder) -> None:
    _outer_join(stream(builder).filter(lambda key, value: True), stream(builder, "other"))


def _outer_join(left: KStream[Any, Any], right: KStream[Any, Any]) -> None:
    windows = JoinWindows.of_time_difference_with_no_grace(MINUTE)
    options = StreamJoined[Any, Any, Any](Serdes.string(), Serdes.json(), Serdes.json())
    joined: KStream[Any, Any] = left.outer_join(right, lambda one, other: [one, other], windows=windows, joined=options)
    joined.to("out", Produced(value_serde=Serdes.json()))


def foreign_key(builder: StreamsBuilder) -> None:
    _foreign_key(builder.table("in"), builder)


def foreign_key_shifted(builder: StreamsBuilder) -> None:
    kept: KTable[Any, Any] = builder.table("in").filter(lambda key, value: True)
    _foreign_key(kept, builder)


def _foreign_key(orders: KTable[Any, Any], builder: StreamsBuilder) -> None:
    users: KTable[Any, Any] = builder.table("users")
    write(orders.join(users, lambda order, user: f"{user}:{order}", foreign_key=lambda order: "u"))


def sums(serde: Any, store: str = "sums", migrate: Migration | None = None) -> Build:
    def build(builder: StreamsBuilder) -> None:
        option = Materialized[Any, Any](store, value_serde=serde, migrate=migrate)
        write(stream(builder).group_by_key().aggregate(zero, add, materialized=option))

    return build


def sums_of_cents(builder: StreamsBuilder) -> None:
    option = Materialized[Any, Any](
        "cents", value_serde=Serdes.integer(), migrate=Migration(Serdes.long(), lambda total: 100 * total)
    )
    grouped = stream(builder).group_by_key()
    write(grouped.aggregate(zero, lambda key, value, total: total + 100 * value, materialized=option))


def tens(builder: StreamsBuilder) -> None:
    option = Materialized[Any, Any]("sums", value_serde=Serdes.json())
    grouped = stream(builder).group_by_key()
    write(grouped.aggregate(zero, lambda key, value, total: total + 10 * value, materialized=option))


def by_number(builder: StreamsBuilder) -> None:
    numbers: KStream[Any, Any] = builder.stream("in", Consumed(key_serde=Serdes.bytes()))
    write(numbers.group_by_key(Grouped(key_serde=Serdes.bytes())).count(materialized=Materialized("counts")))


def generated(number: int, kind: str = "KSTREAM-AGGREGATE-STATE-STORE") -> str:
    return f"{kind}-{number:010}"


BOTH_FIRST = {**FIRST, "other": [("a", 7, 0), ("d", 8, 1)]}
BOTH_THEN = {**THEN, "other": [("a", 9, 3)]}
TWO_MINUTES: Mapping[str, list[Row]] = {"in": [("a", 1, 0), ("b", 2, 1), ("c", 3, 60_000)]}

CASES = (
    # add
    Case(
        "a stateless operator above a named store",
        counts,
        counts_filtered,
        {"counts": "kept"},
        # 4 is filtered out now.
        {"out": {"a": 2, "b": 1, "c": 1}},
        can_start=True,
    ),
    Case(
        "a stateless operator above a store without a name",
        unnamed,
        unnamed_filtered,
        {generated(2): "renamed"},
        {"out": {"a": 2, "b": 1, "c": 1}},
        notes=(f"was '{generated(1)}' (its name is generated: matched by what its nodes do)",),
        deleted=(f"app-{generated(1)}-changelog",),
    ),
    Case(
        "an aggregation of what is read already",
        counts,
        counts_and_sums,
        {"counts": "kept", "sums": "new"},
        # Sums begin with 4 and 5.
        {"out": {"a": 3, "b": 1, "c": 1}, "sums": {"a": 4, "c": 5}},
        notes=("begins empty: 'in' is read on from where it is (--rebuild sums reads from the beginning)",),
    ),
    Case(
        "the same, rebuilt from its input",
        counts,
        counts_and_sums,
        {"counts": "rebuilt", "sums": "rebuilt"},
        {"out": {"a": 3, "b": 1, "c": 1}, "sums": {"a": 8, "b": 2, "c": 5}},
        {0: "rebuilt"},
        ("--rebuild", "sums"),
        notes=("emptied, and filled from 'in', from the beginning",),
    ),
    Case(
        "a sub-topology before the others",
        counts,
        other_first,
        {"counts": "kept"},
        {"out": {"a": 3, "b": 1, "c": 1}, "copies": {"a": 9, "d": 8}},
        {0: "new", 1: "kept"},
        first=BOTH_FIRST,
        then=BOTH_THEN,
        notes=("moves from sub-topology 0 to 1", "was 0"),
    ),
    Case(
        "a sub-topology with a store",
        counts,
        other_counts,
        {"counts": "kept", "others": "new"},
        {"out": {"a": 3, "b": 1, "c": 1}, "others": {"a": 2, "d": 1}},
        {0: "kept", 1: "new"},
        first=BOTH_FIRST,
        then=BOTH_THEN,
        notes=("filled from 'other', which nothing has read before",),
    ),
    Case(
        "a join with another input",
        counts,
        with_users,
        {"counts": "kept", "users": "new"},
        # Users come at time 0, before all that is read after the change.
        {"out": {"a": 3, "b": 1, "c": 1}, "named": {"a": "Ada:4"}},
        first={**FIRST, "users": [("a", "Ada", 0)]},
        notes=("'users' for the first time", "filled from 'users', which nothing has read before"),
    ),
    Case(
        "a join that unites two sub-topologies",
        two_tables,
        two_tables_joined,
        {"counts": "kept", "others": "kept"},
        {"out": {"a": 3, "b": 1, "c": 1}, "others": {"a": 2, "d": 1}, "joined": {"a": [3, 2]}},
        first=BOTH_FIRST,
        then=BOTH_THEN,
        notes=("moves from sub-topology 1 to 0", "was 0 and 1"),
    ),
    # remove
    Case(
        "an aggregation",
        counts_and_sums,
        counts,
        {"counts": "kept", "sums": "dropped"},
        {"out": {"a": 3, "b": 1, "c": 1}, "sums": {"a": 4, "b": 2}},
        notes=("its changelog 'app-sums-changelog' is deleted",),
        deleted=("app-sums-changelog",),
    ),
    Case(
        "the first sub-topology",
        other_counts_first,
        counts,
        {"counts": "kept", "others": "dropped"},
        {"out": {"a": 3, "b": 1, "c": 1}, "others": {"a": 1, "d": 1}},
        {0: "kept"},
        first=BOTH_FIRST,
        then=BOTH_THEN,
        notes=("moves from sub-topology 1 to 0",),
        deleted=("app-others-changelog",),
    ),
    Case(
        "a join, so that a sub-topology is divided",
        two_tables_joined,
        two_tables,
        {"counts": "kept", "others": "kept"},
        {"out": {"a": 3, "b": 1, "c": 1}, "others": {"a": 2, "d": 1}, "joined": {"a": [2, 1]}},
        {0: "kept", 1: "kept"},
        first=BOTH_FIRST,
        then=BOTH_THEN,
    ),
    # reorder
    Case(
        "sub-topologies whose stores have no names",
        two_unnamed,
        two_unnamed_reordered,
        {generated(1): "renamed", generated(6): "renamed"},
        {"out": {"a": 3, "b": 1, "c": 1}, "others": {"a": 2, "d": 1}},
        {0: "kept", 1: "kept"},
        first=BOTH_FIRST,
        then=BOTH_THEN,
    ),
    Case(
        "aggregations without names of one stream",
        sum_and_largest,
        largest_and_sum,
        {generated(1): "renamed", generated(5): "renamed"},
        {"sums": {"a": 8, "b": 2, "c": 5}, "most": {"a": 4, "b": 2, "c": 5}},
    ),
    Case(
        "operators, so that one store gets the generated name of another",
        sum_and_largest,
        sum_and_largest_shifted,
        {generated(3): "renamed", generated(7): "renamed"},
        {"sums": {"a": 8, "b": 2, "c": 5}, "most": {"a": 4, "b": 2, "c": 5}},
    ),
    Case(
        "operators above a repartitioning without a name",
        by_value,
        by_value_shifted,
        {"counts": "kept"},
        # 1 3 5 are odd, 2 4 even.
        {"out": {"1": 3, "0": 2}},
        {0: "kept", 1: "kept"},
    ),
    Case(
        "operators above an outer join without a name",
        outer_join,
        outer_join_shifted,
        {
            generated(5, "KSTREAM-OUTERTHIS") + "-store": "renamed",
            generated(6, "KSTREAM-OUTEROTHER") + "-store": "renamed",
            generated(5, "KSTREAM-OUTERSHARED") + "-store": "renamed",
        },
        # 1 waits for a partner when the topology changes, and finds 2; b never finds one.
        {"out": {"a": [1, 2], "b": [5, None], "z": [9, None]}},
        first={"in": [("a", 1, 0), ("b", 5, 1)]},
        then={"other": [("a", 2, 1)], "in": [("z", 9, 200_000), ("z", 9, 400_000)]},
    ),
    Case(
        "operators above a foreign-key join without a name",
        foreign_key,
        foreign_key_shifted,
        {},
        {"out": {"a": "Bob:4", "b": "Bob:2", "c": "Bob:5"}},
        {0: "kept", 1: "kept"},
        first={**FIRST, "users": [("u", "Ada", 0)]},
        then={**THEN, "users": [("u", "Bob", 9)]},
    ),
    # recompute
    Case(
        "what a function computes, rebuilt from its input",
        sums(Serdes.json()),
        tens,
        {"sums": "rebuilt"},
        {"out": {"a": 80, "b": 20, "c": 50}},
        {0: "rebuilt"},
        ("--rebuild", "sums"),
        can_start=True,
        notes=("emptied, and filled from 'in', from the beginning",),
    ),
    # rename
    Case(
        "a store",
        counts,
        totals,
        {"totals": "renamed"},
        {"out": {"a": 3, "b": 1, "c": 1}},
        options=("--rename", "counts=totals"),
        notes=("was 'counts'; its rows are copied to 'app-totals-changelog'",),
        deleted=("app-counts-changelog",),
    ),
    Case(
        "a store behind a repartitioning that is named after it",
        odd_and_even("counts"),
        odd_and_even("totals"),
        {"totals": "renamed"},
        {"out": {"1": 3, "0": 2}},
        {0: "kept", 1: "kept"},
        ("--rename", "counts=totals"),
        notes=("reads 'totals-repartition'",),
    ),
    Case(
        "a store, without saying so",
        counts,
        totals,
        {"totals": "new", "counts": "dropped"},
        {"out": {"a": 1, "b": 1, "c": 1}},
        notes=("or is it 'counts'? say --rename counts=totals",),
        deleted=("app-counts-changelog",),
    ),
    Case(
        "a store that had no name",
        unnamed,
        counts,
        {"counts": "renamed"},
        {"out": {"a": 3, "b": 1, "c": 1}},
    ),
    Case(
        "a window store, with the time up to which its windows are closed",
        windowed("minutes"),
        windowed("per-minute"),
        {"per-minute": "renamed"},
        # The first minute is closed, so what comes for it is late.
        {"out": {"a@0": 1, "b@0": 1, "c@60000": 2}},
        options=("--rename", "minutes=per-minute"),
        first=TWO_MINUTES,
        then={"in": [("a", 4, 5), ("b", 4, 6), ("c", 4, 60_001)]},
    ),
    # retype
    Case(
        "values, with a migration",
        sums(Serdes.long()),
        sums(Serdes.json(), migrate=Migration(Serdes.long())),
        {"sums": "converted"},
        {"out": {"a": 8, "b": 2, "c": 5}},
        notes=("its values are rewritten, from the serde long to json",),
    ),
    Case(
        "values that mean something else, and a new name",
        sums(Serdes.long()),
        sums_of_cents,
        {"cents": "renamed"},
        {"out": {"a": 800, "b": 2, "c": 500}},
        options=("--rename", "sums=cents"),
    ),
    Case(
        "values, without a migration",
        sums(Serdes.long()),
        sums(Serdes.json()),
        {"sums": "refused"},
        notes=("say how to read them, Materialized(migrate=Migration(…)), or --keep-bytes sums",),
        is_refused=True,
    ),
    Case(
        "values, with a migration from another serde",
        sums(Serdes.long()),
        sums(Serdes.json(), migrate=Migration(Serdes.integer())),
        {"sums": "refused"},
        notes=("its migration reads values with integer; give it the former serde",),
        is_refused=True,
    ),
    Case(
        "values, where the new serde reads the same bytes",
        sums(Serdes.json()),
        sums(Serdes.json(int)),
        {"sums": "kept"},
        {"out": {"a": 8, "b": 2, "c": 5}},
        options=("--keep-bytes", "sums"),
        notes=("its rows are left as they are, and read with the new serdes",),
    ),
    Case(
        "keys",
        counts,
        by_number,
        {"counts": "refused"},
        notes=("was written with the key serde string and is now read with bytes",),
        is_refused=True,
    ),
    Case(
        "a table, which becomes one of windows",
        counts,
        windowed("counts"),
        {"counts": "refused"},
        notes=("it was a timestamped key value store and is now a timestamped window store; give the new store",),
        is_refused=True,
    ),
    Case(
        "the size of windows",
        windowed("minutes"),
        windowed("minutes", TimeWindows.of_size_with_no_grace(2 * MINUTE)),
        {"minutes": "refused"},
        notes=("had windows of 60000 ms and now has windows of 120000 ms",),
        is_refused=True,
    ),
    Case(
        "when windows are emitted",
        windowed("minutes"),
        windowed("minutes", emit=EmitStrategy.ON_WINDOW_CLOSE),
        {"minutes": "kept"},
        # The second minute closes when the third begins; before the change every update was written.
        {"out": {"a@0": 1, "b@0": 1, "c@60000": 2}},
        first=TWO_MINUTES,
        then={"in": [("c", 4, 60_001), ("c", 4, 120_000)]},
    ),
)
