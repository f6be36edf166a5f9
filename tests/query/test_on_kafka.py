"""Views of an application whose topics are in Kafka."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from headrace import Streams, TopologyTestDriver
from headrace.query import Position, StoreQueryParameters
from headrace.sql.hosting.in_process import InProcessEngine
from headrace.topics.log import TopicLog
from tests.query.kit import SOON, Place, topology_of
from tests.query.programs import TOPICS, build, read_everything, v1_types
from tests.query.test_on_spark import random_records
from tests.query.test_same_as_driver import PARTITIONS, STORES, UNCACHED

if TYPE_CHECKING:
    from headrace.topics.kafka import KafkaLog

pytestmark = pytest.mark.kafka


def test_stores_of_a_running_application_have_what_the_driver_has(tmp_path: Path, kafka: KafkaLog) -> None:
    class KafkaPlace(Place):
        def _open(self) -> TopicLog:
            return kafka

    place = KafkaPlace(tmp_path, **dict.fromkeys(TOPICS, PARTITIONS))
    # Brokers soon delete changes that are older than the retention, by their timestamps.
    base_ms = int(time.time()) // 3600 * 3_600_000 - 3_600_000
    config = place.config(**{"bootstrap.servers": kafka.bootstrap_servers})
    with (
        TopologyTestDriver(topology_of(build), UNCACHED, partitions=PARTITIONS) as driver,
        Streams(topology_of(build), config, log=kafka, engine=InProcessEngine) as streams,
    ):
        for half in (random_records(120)[:60], random_records(120)[60:]):
            written = Position()
            for topic, key, value, time_ms in half:
                driver.create_input_topic(topic).pipe_input(key, value, timestamp_ms=base_ms + time_ms)
                written = written.merge(place.write(topic, [(key, value, base_ms + time_ms)]).position)
            views = streams._own_views.views()
            own = Position({target: at for target, at in written if target[0] != "global"})
            assert views.wait_for(own, SOON)
        for name, kind in STORES.items():
            for partition in range(PARTITIONS):
                kind_of_store = v1_types(kind)[-1]
                parameters = StoreQueryParameters.from_name_and_type(name, kind_of_store).with_partition(partition)
                expected = read_everything(driver.get_state_store(name, partition=partition), kind, base_ms)
                assert read_everything(streams.store(parameters), kind, base_ms) == expected, (name, partition)
