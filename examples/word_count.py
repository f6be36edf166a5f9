"""Word count: how often each word has occurred in all lines so far.

Shows the smallest stateful topology. ``group_by`` gives each record a new key, so that all occurrences of a
word meet in one place; ``count`` keeps a table of the counts in a store; ``to_stream`` turns each change of
that table into a record. Stores and operators have names, so that the topology can change later without
losing its state.
"""

import re

from headrace import Consumed, Grouped, Materialized, Produced, Serdes, StreamsBuilder, TopologyTestDriver

LINES = "lines"
WORD_COUNTS = "word-counts"
COUNT_STORE = "word-count-store"

SAMPLE = ("All streams lead to Kafka", "Hello, Kafka Streams", "Join Kafka Summit")


def words_of(line: str) -> list[str]:
    return re.findall(r"\w+", line.lower())


def build(builder: StreamsBuilder) -> None:
    lines = builder.stream(LINES, Consumed(Serdes.string(), Serdes.string(), name="lines-source"))
    counts = (
        lines.flat_map_values(words_of, name="split-into-words")
        .group_by(lambda _key, word: word, Grouped("by-word", Serdes.string(), Serdes.string()))
        .count(
            materialized=Materialized(COUNT_STORE, key_serde=Serdes.string(), value_serde=Serdes.long()),
            name="count-words",
        )
    )
    counts.to_stream(name="count-changes").to(
        WORD_COUNTS, Produced(Serdes.string(), Serdes.long(), name="word-counts-sink")
    )


def main() -> None:
    builder = StreamsBuilder()
    build(builder)
    topology = builder.build()
    print(topology.describe())

    with TopologyTestDriver(topology) as driver:
        lines = driver.create_input_topic(LINES, Serdes.string(), Serdes.string())
        counts = driver.create_output_topic(WORD_COUNTS, Serdes.string(), Serdes.long())
        for line in SAMPLE:
            lines.pipe_input(value=line)
            changes = ", ".join(f"{word}={count}" for word, count in counts.read_key_values())
            print(f"{line!r} -> {changes}")


if __name__ == "__main__":
    main()
