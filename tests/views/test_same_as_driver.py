"""Every question to a view gives what the store of the test driver gives for the same input."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import count
from pathlib import Path
from tempfile import TemporaryDirectory

from hypothesis import HealthCheck, Phase, given, settings

from headrace.topics.journal import DurableLog
from headrace.views import Position
from tests.views.agreement import PARTITIONS, RECORDS, STORES, Pair, Sent, running
from tests.views.kit import SOON, Place
from tests.views.programs import LATEST_MS, TOPICS, read_everything, v1_types


@contextmanager
def both(records: list[Sent]) -> Iterator[Pair]:
    """The driver and a new application that have processed the same records."""
    with TemporaryDirectory() as directory:
        place = Place(Path(directory), **dict.fromkeys(TOPICS, PARTITIONS))
        try:
            with running(place) as pair:
                pair.feed(records)
                yield pair
        finally:
            place.close()


# Shrinking would start hundreds of applications.
PHASES = [Phase.explicit, Phase.reuse, Phase.generate]
SLOWLY = settings(max_examples=20, deadline=None, suppress_health_check=[HealthCheck.too_slow], phases=PHASES)


@SLOWLY
@given(RECORDS)
def test_faces_of_stores_read_what_the_drivers_stores_have(records: list[Sent]) -> None:
    with both(records) as pair:
        pair.compare_faces()


@SLOWLY
@given(RECORDS)
def test_queries_give_what_the_drivers_stores_have(records: list[Sent]) -> None:
    with both(records) as pair:
        pair.compare_queries()


def test_an_application_that_goes_on_running_has_what_the_driver_has(tmp_path: Path, log: DurableLog) -> None:
    place = Place(tmp_path, log, **dict.fromkeys(TOPICS, PARTITIONS))
    # Not long ago: brokers soon delete changes that are older than the retention, by their timestamps.
    first_ms = int(time.time()) // 3600 * 3_600_000 - 7_200_000
    # Each example comes after the one before, so that its records are not all late.
    bases = count(first_ms, LATEST_MS)
    with running(place) as pair:

        @SLOWLY
        @given(RECORDS)
        def goes_on(records: list[Sent]) -> None:
            base_ms = next(bases)
            pair.feed(records, base_ms)
            pair.compare_faces(base_ms)
            pair.compare_queries(base_ms)

        goes_on()


@SLOWLY
@given(RECORDS, RECORDS)
def test_views_that_start_from_their_files_have_the_same(before: list[Sent], after: list[Sent]) -> None:
    with both(before) as pair:
        driver, streams = pair.driver, pair.streams
        own = streams._own_views
        assert own._views is not None
        own._views.close()
        own._views = None
        assert own._place is not None
        log = own._place[0]
        for topic, key, value, time_ms in after:
            driver.create_input_topic(topic).pipe_input(key, value, timestamp_ms=time_ms)
            data = None if value is None else str(value).encode()
            log.append(topic, [(None, time_ms, key.encode(), data, ())])
        ends = log.end_offsets([(topic, each) for topic in TOPICS for each in range(PARTITIONS)])
        views = own.views()
        inputs = Position.consumed({target: at for target, at in ends.items() if target[0] != "global"})
        assert views.wait_for(inputs, SOON)
        for name, kind in STORES.items():
            for partition in range(PARTITIONS):
                store_type = v1_types(kind)[-1]
                face = streams.store(name, store_type, partition=partition)
                expected = read_everything(store_type.seen(driver.get_state_store(name, partition=partition)), kind)
                assert read_everything(face, kind) == expected, (name, partition)
