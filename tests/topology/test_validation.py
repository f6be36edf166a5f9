from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import pytest

from headrace.errors import TopologyError
from headrace.processor import Processor
from headrace.topology import Topology

Store = Callable[..., Any]


class Idle(Processor[Any, Any, Any, Any]):
    def process(self, record: Any) -> None:
        pass


SHARED = Idle()


class NeedsArgument(Idle):
    def __init__(self, limit: int) -> None:
        self.limit = limit


class StoresOfInstance(Idle):
    def stores(self) -> list[Any]:
        return []


def source_and_sink() -> Topology:
    topology = Topology().add_source("source", "in").add_processor("processor", Idle, "source")
    return topology.add_sink("sink", "out", "source")


# Each call breaks one rule; the pattern has what the message must name. `Any` lets the wrong types through.
WRONG_CALLS: list[tuple[Callable[[Any], object], str]] = [
    (lambda t: t.add_source("source", "other"), r"source 'source': a node's name is unique; 'source' is already added"),
    (lambda t: t.add_source("second", "in"), r"topic 'in' has already been registered: it is read by 'source'"),
    (lambda t: t.add_source("second", "a", "a"), r"topic 'a' has already been named"),
    (lambda t: t.add_source("second"), r"source 'second': .*neither was given"),
    (lambda t: t.add_source("second", "a", pattern=re.compile("b")), r"both were given"),
    (lambda t: t.add_source("second", pattern=re.compile("i.")), r"pattern 'i\.' matches 'in', .* by 'source'"),
    (lambda t: t.add_source("second", pattern="i."), r"compiled regular expression; found str 'i\.'"),
    (lambda t: t.add_source("second", pattern=re.compile(b"x")), r"compiled regular expression"),
    (lambda t: t.add_source("second", re.compile("x")), r"pass it as pattern="),
    (lambda t: t.add_source("second", ["a", "b"]), r"found list .*pass each topic as an argument of its own"),
    (lambda t: t.add_source("second", None), r"source 'second': a topic name .*found None"),
    (lambda t: t.add_source("second", "no spaces"), r"found str 'no spaces'"),
    (lambda t: t.add_source("second", ".."), r"found str '\.\.'"),
    (lambda t: t.add_source("second", "x" * 250), r"1 to 249"),
    (lambda t: t.add_source(None, "a"), r"source: its name must be a non-empty string; found None"),
    (lambda t: t.add_source("", "a"), r"source: its name"),
    (lambda t: t.add_source("second", "a", key_serde=str), r"source 'second': the key serde must be a serde"),
    (lambda t: t.add_source("second", "a", value_serde="json"), r"the value serde must be a serde; found str 'json'"),
    (lambda t: t.add_source("second", "a", timestamp_extractor=1), r"timestamp extractor must be callable"),
    (lambda t: t.add_source("second", "a", timestamp_extractor=Idle), r"pass an instance of it"),
    (lambda t: t.add_source("second", "a", offset_reset="erliest"), r"did you mean 'earliest'"),
    (lambda t: t.add_source("second", "a", offset_reset=5), r"offset reset: .*found int 5"),
    (lambda t: t.add_processor("processor", Idle, "source"), r"'processor' is already added"),
    (lambda t: t.add_processor("p", Idle), r"processor 'p': at least one parent is needed"),
    (lambda t: t.add_processor("p", Idle, "sourec"), r"parent 'sourec' is unknown; did you mean 'source'"),
    (lambda t: t.add_processor("p", Idle, "p"), r"a node cannot be its own parent; 'p' is"),
    (lambda t: t.add_processor("p", Idle, "sink"), r"a sink cannot be a parent; 'sink' is a sink"),
    (lambda t: t.add_processor("p", Idle, ["source"]), r"a parent is named by a string; found list"),
    (lambda t: t.add_processor("p", Idle, None), r"a parent is named by a string; found None"),
    (lambda t: t.add_processor("p", Idle(), "source"), r"found an instance of Idle; pass the class itself"),
    (lambda t: t.add_processor("p", None, "source"), r"found None"),
    (lambda t: t.add_processor("p", lambda: SHARED, "source"), r"returned the same object twice"),
    (lambda t: t.add_processor("p", lambda: 5, "source"), r"returned int 5, which has no method `process`"),
    (lambda t: t.add_processor("p", NeedsArgument, "source"), r"'NeedsArgument' raised TypeError"),
    (lambda t: t.add_processor("p", StoresOfInstance, "source"), r"`stores` of a supplier"),
    (lambda t: t.add_sink("sink", "out", "source"), r"sink 'sink': .*already added"),
    (lambda t: t.add_sink("s", "out"), r"sink 's': at least one parent"),
    (lambda t: t.add_sink("s", 5, "source"), r"a sink writes to a topic; found int 5"),
    (lambda t: t.add_sink("s", None, "source"), r"a sink writes to a topic; found None"),
    (lambda t: t.add_sink("s", Idle, "source"), r"topic name extractor .*pass an instance of it"),
    (lambda t: t.add_sink("s", "out", "source", partitioner=5), r"partitioner must be callable"),
    (lambda t: t.add_sink("s", "out", "source", partitioner="x"), r"sink 's': the partitioner: 'x' is not known here"),
    (lambda t: t.add_sink("s", "out", "source", key_serde=1), r"the key serde must be a serde"),
    (lambda t: t.add_state_store("counts"), r"a store is added by its builder; found str 'counts'"),
    (lambda t: t.add_state_store(None), r"found None"),
    (lambda t: t.connect_processor_and_state_stores("processor"), r"at least one store is needed"),
    (lambda t: t.connect_processor_and_state_stores("processor", "x"), r"store 'x' is not added yet"),
    (lambda t: t.connect_processor_and_state_stores("processor", 5), r"a store is named by a string; found int 5"),
    (lambda t: t.add_internal_topic("r", 0), r"internal topic 'r': .*at least 1; found int 0"),
    (lambda t: t.add_internal_topic("r r"), r"found str 'r r'"),
]


@pytest.mark.parametrize(("call", "message"), WRONG_CALLS)
def test_wrong_call_is_refused_and_changes_nothing(call: Callable[[Any], object], message: str) -> None:
    topology = source_and_sink()
    before = str(topology.describe())
    with pytest.raises(TopologyError, match=message):
        call(topology)
    assert str(topology.describe()) == before


def test_wrong_configuration_is_refused() -> None:
    config: Any = {"application.id": "app"}
    with pytest.raises(TopologyError, match=r"must be a StreamsConfig; found dict"):
        Topology(config)


def test_topic_that_a_pattern_covers_is_refused() -> None:
    topology = Topology().add_source("all", pattern=re.compile("in-.*"))
    with pytest.raises(TopologyError, match=r"topic 'in-eu' .* it matches the pattern of source 'all'"):
        topology.add_source("eu", "in-eu")


def test_pattern_must_match_the_whole_name() -> None:
    topology = Topology().add_source("one", "in-eu").add_source("short", pattern=re.compile("in"))
    assert len(topology.nodes) == 2


def test_different_store_of_the_same_name_is_refused(store: Store) -> None:
    topology = source_and_sink().add_state_store(store("counts"), "processor").add_state_store(store("counts"))
    with pytest.raises(TopologyError, match=r"a different store has already been added with the name 'counts'"):
        topology.add_state_store(store("counts", kind="window"))
    with pytest.raises(TopologyError, match=r"global store 'counts': a store's name is unique"):
        topology.add_global_store(store("counts"), "s", "t", "p", Idle)
    assert list(topology.nodes) == ["source", "processor", "sink"]


def test_store_that_a_supplier_brings_must_fit(store: Store) -> None:
    class Windowing(Idle):
        stores = (store("counts", kind="window"),)

    topology = source_and_sink().add_state_store(store("counts"))
    with pytest.raises(TopologyError, match=r"processor 'p': .*'counts'"):
        topology.add_processor("p", Windowing, "source")
    assert "p" not in topology.nodes


@pytest.mark.parametrize(
    ("processor", "message"),
    [("source", r"'source' is a source"), ("sink", r"'sink' is a sink"), ("x", r"processor 'x' is not added yet")],
)
def test_store_is_connected_to_processors_only(store: Store, processor: str, message: str) -> None:
    topology = source_and_sink()
    with pytest.raises(TopologyError, match=message):
        topology.add_state_store(store("counts"), processor)
    assert not topology.store_builders
    topology.add_state_store(store("counts"))
    with pytest.raises(TopologyError, match=message):
        topology.connect_processor_and_state_stores(processor, "counts")


def test_global_store_rules(store: Store) -> None:
    topology = source_and_sink().add_global_store(store("rates"), "rates-source", "rates", "rates-update", Idle)
    with pytest.raises(TopologyError, match=r"a global store can be used without being connected; 'rates' is one"):
        topology.connect_processor_and_state_stores("processor", "rates")
    with pytest.raises(TopologyError, match=r"a different global store .*'rates'"):
        topology.add_state_store(store("rates"))
    with pytest.raises(TopologyError, match=r"topic 'rates' has already been registered"):
        topology.add_source("again", "rates")
    with pytest.raises(TopologyError, match=r"topic 'in' has already been registered"):
        topology.add_global_store(store("other"), "s", "in", "p", Idle)
    with pytest.raises(TopologyError, match=r"both are called 'same'"):
        topology.add_global_store(store("other"), "same", "t", "same", Idle)
    with pytest.raises(TopologyError, match=r"the nodes of a global store have no other children"):
        topology.add_sink("s", "o", "rates-source")
    with pytest.raises(TopologyError, match=r"returned the same object twice"):
        topology.add_global_store(store("other"), "s", "t", "p", lambda: SHARED)


def test_read_only_store_rules(store: Store) -> None:
    topology = source_and_sink().add_state_store(store("prices"))
    with pytest.raises(TopologyError, match=r"topic 'in' has already been registered"):
        topology.add_read_only_state_store(store("other"), "s", "in", "p", Idle)
    with pytest.raises(TopologyError, match=r"'prices'"):
        topology.add_read_only_state_store(store("prices", kind="window"), "s", "t", "p", Idle)
    topology.connect_source_store_and_topic("prices", "in")
    with pytest.raises(TopologyError, match=r"store 'prices': a store has one changelog; 'in' is already connected"):
        topology.connect_source_store_and_topic("prices", "other")


def test_copartitioning_names_sources() -> None:
    topology = source_and_sink()
    topology.copartition(["source", "processor"])
    with pytest.raises(TopologyError, match=r"'processor' is not a source"):
        topology.validate()
