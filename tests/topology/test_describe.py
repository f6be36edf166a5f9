from __future__ import annotations

import json
import re
from collections.abc import Callable
from textwrap import dedent
from typing import Any

from headrace.processor import Processor
from headrace.topology import Topology, TopologyDescription


class Idle(Processor[Any, Any, Any, Any]):
    def process(self, record: Any) -> None:
        pass


def text(description: TopologyDescription) -> list[str]:
    return str(description).splitlines()


def test_empty_topology() -> None:
    assert str(Topology().describe()) == "Topologies:\n "


def test_text_is_kafkas(store: Callable[..., Any]) -> None:
    def by_key(key: str, value: str, context: object) -> str:
        return key

    topology = (
        Topology()
        .add_source("source0", "in0", "in1")
        .add_processor("processor0", Idle, "source0")
        .add_processor("processor1", Idle, "processor0")
        .add_processor("processor2", Idle, "processor0")
        .add_state_store(store("store-processor1"), "processor1")
        .add_state_store(store("store-processor2"), "processor2")
        .add_sink("sink0", "out0", "source0")
        .add_sink("sink1", "out1", "processor0")
        .add_sink("sink2", "out2", "processor1")
        .add_sink("sink3", by_key, "processor2")
    )
    # Recorded from Kafka Streams 4.1.1: the children of processor0 are in the order of sizes that were still growing.
    assert str(topology.describe()) == (
        dedent(
            """\
            Topologies:
               Sub-topology: 0
                Source: source0 (topics: [in0, in1])
                  --> processor0, sink0
                Processor: processor0 (stores: [])
                  --> processor2, processor1, sink1
                  <-- source0
                Processor: processor1 (stores: [store-processor1])
                  --> sink2
                  <-- processor0
                Processor: processor2 (stores: [store-processor2])
                  --> sink3
                  <-- processor0
                Sink: sink0 (topic: out0)
                  <-- source0
                Sink: sink1 (topic: out1)
                  <-- processor0
                Sink: sink2 (topic: out2)
                  <-- processor1
                Sink: sink3 (extractor class: by_key)
                  <-- processor2

            """
        )
    )


def test_global_store_shares_the_numbering(store: Callable[..., Any]) -> None:
    topology = Topology().add_source("first", "a").add_sink("first-sink", "out", "first")
    topology.add_global_store(store("rates"), "rates-source", "rates-topic", "rates-update", Idle)
    topology.add_source("last", "b")
    assert text(topology.describe()) == [
        "Topologies:",
        "   Sub-topology: 0",
        "    Source: first (topics: [a])",
        "      --> first-sink",
        "    Sink: first-sink (topic: out)",
        "      <-- first",
        "",
        "  Sub-topology: 1 for global store (will not generate tasks)",
        "    Source: rates-source (topics: [rates-topic])",
        "      --> rates-update",
        "    Processor: rates-update (stores: [rates])",
        "      --> none",
        "      <-- rates-source",
        "  Sub-topology: 2",
        "    Source: last (topics: [b])",
        "      --> none",
        "",
    ]


def test_pattern_is_printed_without_brackets() -> None:
    description = Topology().add_source("source", pattern=re.compile("in-.*")).describe()
    assert "    Source: source (topics: in-.*)" in text(description)
    assert description.subtopologies[0].nodes[0].name == "source"


def test_extractor_object_prints_itself_or_its_class() -> None:
    class Plain:
        def __call__(self, key: object, value: object, context: object) -> str:
            return "out"

    class Named(Plain):
        def __str__(self) -> str:
            return "by-name"

    topology = Topology().add_source("source", "in")
    topology.add_sink("a", Plain(), "source").add_sink("b", Named(), "source")
    assert "    Sink: a (extractor class: Plain)" in text(topology.describe())
    assert "    Sink: b (extractor class: by-name)" in text(topology.describe())


def test_deep_diamonds_are_described_quickly() -> None:
    topology = Topology().add_source("n0", "in")
    for level in range(60):
        topology.add_processor(f"l{level}", Idle, f"n{level}").add_processor(f"r{level}", Idle, f"n{level}")
        topology.add_processor(f"n{level + 1}", Idle, f"l{level}", f"r{level}")
    assert topology.describe().subtopologies[0].nodes[0].name == "n0"


def test_json_has_the_whole_model(store: Callable[..., Any]) -> None:
    topology = Topology().add_source("source", pattern=re.compile("in-.*")).add_processor("count", Idle, "source")
    topology.add_state_store(store("counts"), "count").add_sink("sink", "out", "count")
    topology.add_global_store(store("rates"), "rates-source", "rates", "rates-update", Idle)
    model = json.loads(topology.describe().to_json())
    assert model["subtopologies"] == [
        {
            "id": 0,
            "nodes": [
                {"type": "source", "name": "source", "pattern": "in-.*", "predecessors": [], "successors": ["count"]},
                {
                    "type": "processor",
                    "name": "count",
                    "stores": ["counts"],
                    "predecessors": ["source"],
                    "successors": ["sink"],
                },
                {"type": "sink", "name": "sink", "topic": "out", "predecessors": ["count"], "successors": []},
            ],
        }
    ]
    assert model["global_stores"][0]["source"]["topics"] == ["rates"]


def test_pictures_connect_subtopologies_through_topics(store: Callable[..., Any]) -> None:
    topology = Topology().add_source("source", "in").add_sink("to", "by-user-repartition", "source")
    topology.add_source("from", "by-user-repartition").add_processor('say "count"', Idle, "from")
    topology.add_state_store(store("counts"), 'say "count"')
    description = topology.describe()
    assert description.to_mermaid().splitlines() == [
        "flowchart TD",
        '  subgraph subtopology_0["Sub-topology 0"]',
        '    node_0["source"]',
        '    node_1["to"]',
        "  end",
        '  subgraph subtopology_1["Sub-topology 1"]',
        '    node_2["from"]',
        '    node_3["say #quot;count#quot;"]',
        "  end",
        '  topic_0(["in"])',
        '  topic_1(["by-user-repartition"])',
        '  store_0[("counts")]',
        "  topic_0 --> node_0",
        "  node_0 --> node_1",
        "  node_1 --> topic_1",
        "  topic_1 --> node_2",
        "  node_2 --> node_3",
        "  node_3 -.- store_0",
    ]
    dot = description.to_dot()
    assert '    node_3 [label="say \\"count\\"", shape=box];' in dot.splitlines()
    assert "  node_1 -> topic_1;" in dot.splitlines()
    assert "  node_3 -> store_0 [dir=none, style=dashed];" in dot.splitlines()
