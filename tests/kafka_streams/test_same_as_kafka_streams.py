"""Comparison with recorded answers of Kafka Streams 4.1.1: names, records, bytes, stores.

The answers are in expected.json, which conformance/kafka_streams writes anew. Unlike the golden cases these have
typed keys, internal topics, changelogs, store queries, exception handlers and the rarer options of the DSL.

Changelogs are compared by what they leave behind after each step. Headrace writes one at a commit, a record for each
row that has changed, where Kafka writes one for every call of ``put``; and a row that has no time of its own gets
stream time, where Kafka takes the time of the record at hand. Their headers are left out.

Two things are evened out on the Java side: where no record is being processed Kafka's record metadata has no topic
instead of being empty; and its versioned stores never say until when a version was valid. Some windowed aggregations
are given serdes that Headrace does not need: without them Kafka Streams fails with a ClassCastException.
"""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from headrace import ProcessorStateError, StreamsBuilder, StreamsError, TopologyError
from tests.kafka_streams.build_errors import CALLS
from tests.kafka_streams.drive import VARIANTS, Observed, Row, Topics, config, run
from tests.kafka_streams.runs import DSL, PAPI
from tests.kafka_streams.topologies import EXPLICIT, TOPOLOGIES, Build

EXPECTED: dict[str, dict[str, Any]] = json.loads(Path(__file__).with_name("expected.json").read_text())
RUNS = EXPECTED["runs"]
OPTIMIZATIONS = ("none", "all")
RUN_VARIANTS = [(name, variant) for name, case in RUNS.items() for variant in VARIANTS if variant in case]

# Differences that are meant to be: calls that only one side refuses, or a whole aspect of a run in some variants.
ACCEPTED_HERE = {"store_added_twice": "two builders that are equal are one store: ours are values, Java's are objects"}
REFUSED_HERE = {"repartition_zero_partitions": "Kafka finds out when it creates the topic, we at once"}
_LOOKUP = "Kafka forgets to connect the transformer's store to the processor that looks rows up, and does not start"
_READ_CACHE = (
    "Kafka's record cache still answers for rows that the store below has evicted; ours is emptied at a commit"
)
MEANT = {
    ("outputs", "transform_values_store_of_lookup", "plain"): _LOOKUP,
    ("outputs", "transform_values_store_of_lookup", "cached"): _LOOKUP,
    ("outputs", "transform_values_store_of_lookup", "optimized"): _LOOKUP,
    ("outputs", "lru_table", "cached"): _READ_CACHE,
    ("effects", "store_calls", "cached"): "Kafka's reverse iterators over a cached store give deleted rows, with null",
}
_EVICTED = "Kafka logs evictions of processors' LRU stores, but not of tables', which grow when they are restored"
_NULL_ROW = "Kafka logs, and numbers, a tombstone for a null that a store with duplicates does not keep"
_REFUSED_PUT = (
    "Kafka logs versions that the store refuses because they are too old; when restored they are refused again"
)
_OUT_OF_ORDER = "Kafka logs a version out of order last, and compaction keeps it; we log the latest version once more"
DIFFERENT_CHANGELOGS = {
    ("lru_table", "app-lru-changelog"): _EVICTED,
    ("join_null_value", "app-stores-this-join-store-changelog"): _NULL_ROW,
    ("join_null_value", "app-stores-other-join-store-changelog"): _NULL_ROW,
    ("store_calls", "app-versioned-changelog"): _REFUSED_PUT,
    ("versioned", "app-versions-changelog"): _REFUSED_PUT,
    ("versioned_tables_joined", "app-left-changelog"): _OUT_OF_ORDER,
    ("versioned_tables_joined", "app-right-changelog"): _OUT_OF_ORDER,
}


def marked(aspect: str) -> list[Any]:
    return [
        pytest.param(
            name,
            variant,
            id=f"{name}-{variant}",
            marks=[pytest.mark.xfail(strict=True, reason=MEANT[aspect, name, variant])]
            if (aspect, name, variant) in MEANT
            else [],
        )
        for name, variant in RUN_VARIANTS
    ]


def expected(name: str, variant: str) -> dict[str, Any]:
    """Returns the answers of a variant, of which only those are recorded that differ from the plain one's."""
    answers: dict[str, Any] = {**RUNS[name]["plain"], **RUNS[name][variant]}
    return answers


@cache
def observed(name: str, variant: str) -> Observed:
    return run(name, RUNS[name], variant)


def is_changelog(topic: str) -> bool:
    return topic.endswith("-changelog")


def describe(build: Build, optimization: str, *, explicit: bool = False) -> str:
    settings = config(
        "plain",
        {},
        **{"topology.optimization": optimization, "ensure.explicit.internal.resource.naming": explicit},
    )
    builder = StreamsBuilder(settings)
    build(builder)
    return str(builder.build().describe()).rstrip()


def test_all_that_is_recorded_is_compared() -> None:
    assert set(EXPECTED["describe"]) == set(TOPOLOGIES)
    assert set(EXPECTED["explicit_names"]) == set(EXPLICIT)
    assert set(EXPECTED["build_errors"]) == set(CALLS)
    assert set(RUNS) == set(DSL) | set(PAPI)


@pytest.mark.parametrize("optimization", OPTIMIZATIONS)
@pytest.mark.parametrize("name", TOPOLOGIES)
def test_topology_has_the_same_names_and_structure(name: str, optimization: str) -> None:
    answers = EXPECTED["describe"][name]
    answer = answers.get(optimization, answers["none"])
    if answer.startswith("TopologyException"):
        with pytest.raises(TopologyError):
            describe(TOPOLOGIES[name], optimization)
    else:
        assert describe(TOPOLOGIES[name], optimization) == answer


@pytest.mark.parametrize("optimization", OPTIMIZATIONS)
@pytest.mark.parametrize("name", EXPLICIT)
def test_the_same_resources_are_missing_a_name(name: str, optimization: str) -> None:
    answers = EXPECTED["explicit_names"][name]
    answer = answers.get(optimization, answers["none"])
    if answer.startswith("TopologyException"):
        with pytest.raises(TopologyError) as raised:
            describe(EXPLICIT[name], optimization, explicit=True)
        listed = answer.removeprefix("TopologyException: Invalid topology: ").rstrip().splitlines()
        assert str(raised.value).splitlines()[: len(listed)] == listed
    else:
        assert describe(EXPLICIT[name], optimization, explicit=True) == answer


@pytest.mark.parametrize("name", CALLS)
def test_the_same_calls_are_refused(name: str) -> None:
    def build() -> None:
        builder = StreamsBuilder()
        CALLS[name](builder)
        builder.build().describe()

    refused = EXPECTED["build_errors"][name] is not None
    assert refused or name not in ACCEPTED_HERE
    if (refused and name not in ACCEPTED_HERE) or name in REFUSED_HERE:
        with pytest.raises((StreamsError, ValueError)):
            build()
    else:
        build()


@pytest.mark.parametrize(("name", "variant"), RUN_VARIANTS)
def test_topology_that_runs_has_the_same_names_and_structure(name: str, variant: str) -> None:
    assert observed(name, variant).describe == expected(name, variant)["describe"]


@pytest.mark.parametrize(("name", "variant"), marked("outputs"))
def test_each_step_writes_the_same_bytes_to_outputs_and_internal_topics(name: str, variant: str) -> None:
    steps, got = expected(name, variant)["outputs"], observed(name, variant)
    for index, step in enumerate(steps):
        if isinstance(step, list):
            assert index == len(got.outputs), "it went on where Kafka Streams failed"
            kind = ProcessorStateError if step[0] == "ProcessorStateException" else StreamsError
            assert isinstance(got.failure, kind)
            return
        assert index < len(got.outputs), got.failure
        assert without_changelogs(got.outputs[index]) == without_changelogs(step), f"step {index}"
    assert got.failure is None


def without_changelogs(topics: Topics) -> Topics:
    return {topic: rows for topic, rows in topics.items() if not is_changelog(topic)}


@pytest.mark.parametrize(("name", "variant"), RUN_VARIANTS)
def test_each_step_leaves_the_same_bytes_in_changelogs(name: str, variant: str) -> None:
    for topic in changelogs(name, variant):
        if (name, topic) not in DIFFERENT_CHANGELOGS:
            compare_changelog(name, variant, topic)


@pytest.mark.parametrize(
    ("name", "topic"),
    [
        pytest.param(*where, marks=pytest.mark.xfail(strict=True, reason=reason))
        for where, reason in DIFFERENT_CHANGELOGS.items()
    ],
)
def test_changelog_that_is_different(name: str, topic: str) -> None:
    compare_changelog(name, "plain", topic)


def changelogs(name: str, variant: str) -> set[str]:
    steps = [step for step in expected(name, variant)["outputs"] if isinstance(step, dict)]
    return {topic for step in [*steps, *observed(name, variant).outputs] for topic in step if is_changelog(topic)}


def compare_changelog(name: str, variant: str, topic: str) -> None:
    stream_time_ms = 0
    steps = expected(name, variant)["outputs"]
    for index, (step, got) in enumerate(zip(steps, observed(name, variant).outputs, strict=False)):
        if isinstance(step, list):
            return
        stream_time_ms = max(stream_time_ms, latest_ms(RUNS[name]["steps"][index - 1], step) if index else 0)
        wanted, found = by_key(step.get(topic, [])), by_key(got.get(topic, []))
        assert values(found) == values(wanted), f"step {index}, {topic}"
        for key, row in found.items():
            assert row[2] in (wanted[key][2], stream_time_ms), f"time in step {index}, {topic}"


def latest_ms(step: Row, topics: Topics) -> int:
    """Returns the largest time of the records that a step had processed: its own, and those of internal topics."""
    piped = step[3] if len(step) > 1 else 0
    internal = (rows for topic, rows in without_changelogs(topics).items() if topic.startswith("app-"))
    times: list[int] = [piped, *(row[2] for rows in internal for row in rows)]
    return max(times)


def by_key(rows: list[Row]) -> dict[str, Row]:
    """Returns the last record of each key: what compaction leaves."""
    return {row[0]: row for row in rows}


def values(rows: dict[str, Row]) -> dict[str, Any]:
    return {key: row[1] for key, row in rows.items()}


def test_changelog_of_a_suppression_says_its_version() -> None:
    topic = "app-wait-store-changelog"
    wanted = expected("suppress_max_bytes", "plain")["outputs"][1][topic]
    assert observed("suppress_max_bytes", "plain").outputs[1][topic][0][3:] == wanted[0][3:]


@pytest.mark.parametrize(("name", "variant"), marked("effects"))
def test_functions_and_processors_see_the_same(name: str, variant: str) -> None:
    wanted = expected(name, variant).get("effects")
    if wanted is not None:
        assert observed(name, variant).effects == wanted


@pytest.mark.parametrize(("name", "variant"), RUN_VARIANTS)
def test_stores_give_the_same_answers(name: str, variant: str) -> None:
    answers = expected(name, variant)
    if "answers" in answers:
        got = observed(name, variant)
        queries = RUNS[name]["queries"]
        assert list(zip(queries, got.answers, strict=True)) == list(zip(queries, answers["answers"], strict=True))
        assert got.stores == answers["stores"]


@pytest.mark.parametrize(("name", "variant"), RUN_VARIANTS)
def test_the_same_topics_are_written_and_as_many_records_dropped(name: str, variant: str) -> None:
    answers = expected(name, variant)
    if "produced" in answers:
        assert observed(name, variant).produced == answers["produced"]
        assert observed(name, variant).dropped == answers["dropped"]
