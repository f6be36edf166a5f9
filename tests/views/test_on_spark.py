"""Queries to an application that runs on Spark."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from random import Random
from typing import Any

import pytest

from headrace import Streams, TopologyTestDriver
from headrace.views import Position, StoreQueryParameters
from tests.views.agreement import PARTITIONS, STORES, UNCACHED
from tests.views.kit import Place, topology_of
from tests.views.programs import KEYS, LATEST_MS, TOPICS, build, read_everything, v1_types

pytestmark = pytest.mark.spark

LONG = timedelta(minutes=3)


def random_records(count: int) -> list[tuple[str, str, Any, int]]:
    random = Random(11)
    return [
        (
            random.choice(TOPICS),
            random.choice(KEYS),
            random.choice((None, 0, 1, 2, 3)),
            random.randrange(LATEST_MS // 1000) * 1000,
        )
        for _ in range(count)
    ]


def test_stores_of_a_running_application_have_what_the_driver_has(tmp_path: Path) -> None:
    place = Place(tmp_path, **dict.fromkeys(TOPICS, PARTITIONS))
    config = place.config(**{"spark.master": "local[2,2]"})
    try:
        with (
            TopologyTestDriver(topology_of(build), UNCACHED, partitions=PARTITIONS) as driver,
            Streams(topology_of(build), config, log=place.log) as streams,
        ):
            written = Position()
            # The first half is there when Spark starts; the second one comes while it runs.
            for half in (random_records(300)[:150], random_records(300)[150:]):
                for topic, key, value, time_ms in half:
                    driver.create_input_topic(topic).pipe_input(key, value, timestamp_ms=time_ms)
                    written = written.merge(place.write(topic, [(key, value, time_ms)]).position)
                views = streams._own_views.views()
                own = Position({target: at for target, at in written if target[0] != "global"})
                assert views.wait_for(own, LONG)
            for name, kind in STORES.items():
                for partition in range(PARTITIONS):
                    kind_of_store = v1_types(kind)[-1]
                    parameters = StoreQueryParameters.from_name_and_type(name, kind_of_store).with_partition(partition)
                    expected = read_everything(driver.get_state_store(name, partition=partition), kind)
                    assert read_everything(streams.store(parameters), kind) == expected, (name, partition)
    finally:
        place.close()
