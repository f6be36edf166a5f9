"""Fingerprint of a topology: the changes that saved state survives, and the refusal of the others."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from headrace import Consumed, Grouped, KStream, Materialized, StreamsBuilder, TimeWindows
from headrace.app.fingerprint import Fingerprint, Part, check_compatible
from headrace.errors import IncompatibleTopologyError
from headrace.topology.topology import Topology
from tests.app.kit import END, SOON, Engines, application, counting, make_topics

EXTERNAL = {"in": 2, "other": 2, "third": 3}


def built(build: Callable[[StreamsBuilder], Any]) -> Topology:
    builder = StreamsBuilder()
    build(builder)
    return builder.build()


def counts(builder: StreamsBuilder) -> None:
    stream(builder).group_by_key().count(materialized=Materialized("counts")).to_stream().to("out")


def stream(builder: StreamsBuilder) -> KStream[Any, Any]:
    return builder.stream("in")


def more_stateless(builder: StreamsBuilder) -> None:
    filtered = stream(builder).filter(lambda key, value: value is not None)
    counted = filtered.map_values(str).group_by_key().count(materialized=Materialized("counts"))
    counted.to_stream().map_values(str).to("elsewhere")


def by_value(builder: StreamsBuilder) -> None:
    grouped = stream(builder).group_by(lambda key, value: value, Grouped("by-value"))
    grouped.count(materialized=Materialized("counts"))


def windowed(builder: StreamsBuilder) -> None:
    windows = TimeWindows.of_size_with_no_grace(timedelta(seconds=1))
    stream(builder).group_by_key().windowed_by(windows).count(materialized=Materialized("counts"))


def two_stores(builder: StreamsBuilder) -> None:
    counts(builder)
    stream(builder).group_by_key().count(materialized=Materialized("more"))


def other_part(builder: StreamsBuilder) -> None:
    counts(builder)
    builder.stream("other").to("out")


def other_part_first(builder: StreamsBuilder) -> None:
    builder.stream("other").to("out")
    counts(builder)


def unnamed(builder: StreamsBuilder) -> None:
    stream(builder).group_by_key().count()


def unnamed_later(builder: StreamsBuilder) -> None:
    stream(builder).filter(lambda key, value: True).group_by_key().count()


def unnamed_repartition(builder: StreamsBuilder) -> None:
    stream(builder).select_key(lambda key, value: value).repartition().to("out")


def unnamed_repartition_later(builder: StreamsBuilder) -> None:
    stream(builder).map_values(str).select_key(lambda key, value: value).repartition().to("out")


def other_input(builder: StreamsBuilder) -> None:
    builder.stream("other").group_by_key().count(materialized=Materialized("counts"))


def two_inputs(builder: StreamsBuilder) -> None:
    builder.stream(["in", "other"]).group_by_key().count(materialized=Materialized("counts"))


def pattern(builder: StreamsBuilder) -> None:
    builder.stream(re.compile("in|other")).group_by_key().count(materialized=Materialized("counts"))


@pytest.mark.parametrize(
    ("before", "after"),
    [(counts, counts), (counts, more_stateless), (more_stateless, counts), (by_value, by_value), (pattern, pattern)],
)
def test_functions_and_stateless_operators_may_change(before: Any, after: Any) -> None:
    old, new = Fingerprint.of(built(before), EXTERNAL), Fingerprint.of(built(after), EXTERNAL)
    check_compatible("app", old, new)
    assert old == new


@pytest.mark.parametrize(
    ("before", "after", "messages"),
    [
        (counts, two_stores, ["sub-topology 0 has the new store 'more'", "an application of its own"]),
        (two_stores, counts, ["sub-topology 0 kept the store 'more', which is gone", "bring the store 'more' back"]),
        (
            counts,
            windowed,
            ["'counts' was a timestamped key value store and is now a timestamped window store", "another name"],
        ),
        (counts, other_part, ["sub-topology 1, which reads 'other', is new", "another application_id"]),
        (other_part, counts, ["sub-topology 1, which read 'other', is gone", "go back to the former topology"]),
        (
            counts,
            other_part_first,
            ["the store 'counts' was in sub-topology 0 and is now in sub-topology 1", "keep the order"],
        ),
        (
            unnamed,
            unnamed_later,
            [
                "kept the store 'KSTREAM-AGGREGATE-STATE-STORE-0000000001' and now keeps "
                "'KSTREAM-AGGREGATE-STATE-STORE-0000000002', a generated name",
                "Materialized('KSTREAM-AGGREGATE-STATE-STORE-0000000001')",
            ],
        ),
        (
            unnamed_repartition,
            unnamed_repartition_later,
            ["sub-topology 1 read 'KSTREAM-", "generated names count the operators", "Repartitioned"],
        ),
        (counts, other_input, ["sub-topology 0 read 'in' and now reads 'other'", "read the former topics"]),
        (counts, two_inputs, ["sub-topology 0 read 'in' and now reads 'in', 'other'"]),
        (counts, pattern, ["sub-topology 0 read 'in' and now reads the pattern 'in|other'"]),
        (
            counts,
            by_value,
            ["the store 'counts' was in sub-topology 0 and is now in sub-topology 1", "sub-topology 1, which reads"],
        ),
    ],
)
def test_other_changes_are_refused_with_what_changed_and_the_remedy(
    before: Any, after: Any, messages: list[str]
) -> None:
    old, new = Fingerprint.of(built(before), EXTERNAL), Fingerprint.of(built(after), EXTERNAL)
    with pytest.raises(IncompatibleTopologyError) as caught:
        check_compatible("app", old, new)
    for message in messages:
        assert message in str(caught.value)
    assert str(caught.value).startswith("application 'app': the topology does not fit its saved state: ")
    assert str(caught.value).endswith("or start over with `headrace reset app`")


def test_former_generated_name_given_explicitly_is_compatible() -> None:
    def pinned(builder: StreamsBuilder) -> None:
        store: Materialized[Any, Any] = Materialized("KSTREAM-AGGREGATE-STATE-STORE-0000000001")
        stream(builder).filter(lambda key, value: True).group_by_key().count(materialized=store)

    old, new = Fingerprint.of(built(unnamed), EXTERNAL), Fingerprint.of(built(pinned), EXTERNAL)
    check_compatible("app", old, new)


def test_changed_partition_counts_are_refused() -> None:
    old, new = (Fingerprint.of(built(counts), {"in": number}) for number in (2, 4))
    with pytest.raises(IncompatibleTopologyError, match="0: 'in' had 2 partitions and now has 4; keys would go to"):
        check_compatible("app", old, new)


def test_what_a_pattern_matches_may_grow_while_the_number_of_tasks_stays() -> None:
    old = Fingerprint.of(built(pattern), {"in": 2})
    check_compatible("app", old, Fingerprint.of(built(pattern), {"in": 2, "other": 1}))
    with pytest.raises(IncompatibleTopologyError, match="0 had 2 tasks and now has 3, by the topics that its pattern"):
        check_compatible("app", old, Fingerprint.of(built(pattern), {"in": 2, "other": 3}))


def test_another_level_is_refused() -> None:
    old, new = (Fingerprint({0: Part(level, 1, {"in": 1})}) for level in (0, 1))
    with pytest.raises(IncompatibleTopologyError, match="0 was at level 0 of the repartitions and is now at level 1"):
        check_compatible("app", old, new)


@pytest.mark.parametrize("build", [counts, by_value, pattern, windowed, other_part])
def test_fingerprint_survives_json(build: Any) -> None:
    fingerprint = Fingerprint.of(built(build), EXTERNAL)
    assert Fingerprint.from_json(fingerprint.to_json()) == fingerprint


def test_changed_topology_is_refused_at_the_start(place: Path) -> None:
    first = application(place, Engines(END)).start(until_end=True)
    assert first.wait(timedelta(seconds=SOON))
    engines = Engines(END)
    with pytest.raises(IncompatibleTopologyError, match="now keeps 'totals' instead"):
        application(place, engines, counting("totals")).start()
    assert engines.made == []
    again = application(place, engines).start(until_end=True)
    assert again.wait(timedelta(seconds=SOON))


def test_global_tables_may_come_and_go_when_the_rest_keeps_its_place(tmp_path: Path) -> None:
    def with_global(builder: StreamsBuilder) -> None:
        counts(builder)
        builder.global_table("rates", Consumed())

    make_topics(tmp_path, **{"in": 2, "rates": 1})
    for build in (counts, with_global, counts):
        streams = application(tmp_path, Engines(END), built(build)).start(until_end=True)
        assert streams.wait(timedelta(seconds=SOON))
