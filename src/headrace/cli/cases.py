"""Cases: records in and records out, in a file of JSON, run on the test driver; ``cases_on_spark`` runs the same.

    {
      "topology": "../word_count.py:build",              relative to the file, or a module
      "config": {"statestore.cache.max.bytes": 0},       settings, if any
      "topics": {"odd": {"key": "bytes"}},               formats, where they do not follow from the topology
      "cases": [{
        "name": "a word is counted",
        "steps": [{
          "advance_ms": 0,                               the wall clock moves first, if at all
          "input":  [{"topic": "lines", "value": "to be or not to be", "timestamp_ms": 1000}],
          "output": [{"topic": "word-counts", "key": "to", "value": 1}, …]
        }]
      }]
    }

A record without a timestamp has that of the wall clock, which starts at 0. Of an output only the fields are compared
that it has. Outputs are those of their step, in the order of their topic; topics that no step of a case mentions are
not looked at.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from headrace.cli.case_files import Case, CaseError, CaseFile, Step
from headrace.cli.formats import Format, format_named, format_of
from headrace.cli.targets import load_topology
from headrace.config import StreamsConfig
from headrace.errors import StreamsError, did_you_mean
from headrace.serdes import Serde
from headrace.serdes.base import resolved
from headrace.testing.driver import TopologyTestDriver
from headrace.topics.log import Output
from headrace.topology import Topology


@dataclass(frozen=True)
class Outcome:
    """Outcome of a case: nothing to say if it passed."""

    case: str
    difference: str | None = None


def run_file(file: CaseFile) -> Iterator[Outcome]:
    """Runs the cases of a file, each on a driver of its own."""
    config = StreamsConfig.of(file.config)
    topology = load_topology(file.topology, config, file.path.parent)
    for case in file.cases:
        yield Outcome(case.name, _run(case, topology, config, Formats(topology, config, file.topics)))


def _run(case: Case, topology: Topology, config: StreamsConfig, formats: Formats) -> str | None:
    with TopologyTestDriver(topology, config, initial_wall_clock_ms=0) as driver:
        now_ms = 0
        for number, step in enumerate(case.steps, 1):
            try:
                now_ms += step.advance_ms
                if step.advance_ms:
                    driver.advance_wall_clock_time(timedelta(milliseconds=step.advance_ms))
                for record in step.input:
                    _, timestamp_ms, key, value, headers = formats.input_of(record, now_ms)
                    driver.pipe_raw(record["topic"], key, value, timestamp_ms=timestamp_ms, headers=headers)
                found = {topic: driver.take_outputs(topic, driver.unread(topic)) for topic in watched(case)}
                different = difference(step, found, formats)
            except StreamsError as error:
                different = f"{type(error).__name__}: {error}"
            if different is not None:
                return f"step {number}: {different}"
    return None


def watched(case: Case) -> list[str]:
    """Returns the topics whose records are compared: those that a step of the case mentions."""
    return list(dict.fromkeys(record["topic"] for step in case.steps for record in step.output))


def inputs_of(topology: Topology) -> list[str]:
    """Returns the topics that a topology reads by name, its own left out."""
    named = {topic for node in topology.source_nodes for topic in node.topics if not topology.is_internal(topic)}
    return sorted(named | {store.topic for store in topology.global_stores.values()})


def difference(step: Step, outputs: Mapping[str, Sequence[Output]], formats: Formats) -> str | None:
    """Returns the first difference of a step, topic by topic."""
    for topic, written in outputs.items():
        expected = [record for record in step.output if record["topic"] == topic]
        found = [formats.output_to_json(topic, output) for output in written]
        for number, record in enumerate(expected):
            where = f"topic '{topic}', record {number + 1}"
            if number >= len(found):
                return f"{where}: expected {_short(record)}, found nothing more"
            for name in record:
                if record[name] != found[number].get(name):
                    return (
                        f"{where}: {name} is {_text(found[number].get(name))}, expected {_text(record[name])}; "
                        f"the record is {_short(found[number])}"
                    )
        if len(found) > len(expected):
            more = found[len(expected)]
            return f"topic '{topic}', record {len(expected) + 1}: expected nothing more, found {_short(more)}"
    return None


class Formats:
    """Formats of the records of each topic in JSON: as the file says, or by the topology's serdes."""

    def __init__(self, topology: Topology, config: StreamsConfig, said: Mapping[str, Mapping[str, str]]) -> None:
        self._topology = topology
        self._config = config
        self._said = said

    def input_of(self, record: Mapping[str, Any], now_ms: int) -> Output:
        """Returns the record that a case describes; ``now_ms`` is its time if it says none."""
        topic = record["topic"]
        keys, values = self._formats(topic, self._source(topic))
        try:
            key = keys.json_to_bytes(record.get("key"), is_key=True)
            value = values.json_to_bytes(record.get("value"))
        except ValueError as error:
            message = f"input {json.dumps(dict(record), ensure_ascii=False)}: {error}"
            raise CaseError(message) from error
        headers = tuple((name, text.encode()) for name, text in record.get("headers", {}).items())
        return None, record.get("timestamp_ms", now_ms), key, value, headers

    # Any: a source, or a global table; see _formats.
    def _source(self, topic: str) -> Any:
        source = self._topology.source_for(topic) or self._topology.global_store_for(topic)
        if source is None:
            known = inputs_of(self._topology)
            message = (
                f"the topology does not read the topic '{topic}' (it reads: {', '.join(known) or 'none'})"
                f"{did_you_mean(topic, known)}"
            )
            raise CaseError(message)
        return source

    def _output(self, topic: str) -> tuple[Format, Format]:
        node = next((node for node in self._topology.sink_nodes if node.topic == topic), None)
        return self._formats(topic, node)

    # Any: a source, a global table or a sink; all name their serdes so.
    def _formats(self, topic: str, node: Any) -> tuple[Format, Format]:
        said = self._said.get(topic, {})
        key_serde = resolved(getattr(node, "key_serde", None), self._config.default_key_serde)
        value_serde = resolved(getattr(node, "value_serde", None), self._config.default_value_serde)
        return _chosen(topic, "key", said, key_serde), _chosen(topic, "value", said, value_serde)

    def output_to_json(self, topic: str, output: Output) -> dict[str, Any]:
        partition, timestamp_ms, key, value, headers = output
        keys, values = self._output(topic)
        return {
            "topic": topic,
            "key": keys.bytes_to_json(key, topic=topic, is_key=True),
            "value": values.bytes_to_json(value, topic=topic),
            "timestamp_ms": timestamp_ms,
            "headers": {name: None if data is None else data.decode(errors="replace") for name, data in headers},
            "partition": partition,
        }


def _chosen(topic: str, what: str, said: Mapping[str, str], serde: Serde[Any]) -> Format:
    if what in said:
        return format_named(said[what])
    found = format_of(serde)
    if found is None:
        message = (
            f"topic '{topic}': its {what}s are written by {type(serde).__name__}, which has no form in JSON; say one: "
            f'"topics": {{"{topic}": {{"{what}": "bytes"}}}}'
        )
        raise CaseError(message)
    return found


def _text(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)


def _short(record: Mapping[str, Any]) -> str:
    return _text({name: record[name] for name in ("key", "value", "timestamp_ms") if name in record})
