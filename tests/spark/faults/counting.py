"""A count by key in a process of its own: ``python -m tests.spark.faults.counting <settings as JSON>``.

It tells of every batch, and of slots that move, on standard output, a line of JSON each.
"""

from __future__ import annotations

import json
import logging
import sys
from typing import Any

from headrace import Materialized, Produced, Serdes, StreamsBuilder, StreamsConfig
from headrace.app import Streams
from headrace.batches.reports import BatchReport
from headrace.spark import placement

INPUT, OUTPUT = "counting-in", "counting-out"


def tell(event: str, **more: object) -> None:
    print(json.dumps({"event": event, **more}), flush=True)


class _Telling(logging.Handler):
    def emit(self, record: logging.LogRecord) -> None:
        tell("placement", said=record.getMessage())


def main(settings: dict[str, Any]) -> None:
    builder = StreamsBuilder()
    counts = builder.stream(INPUT).group_by_key().count(materialized=Materialized("counts"))
    counts.to_stream().to(OUTPUT, Produced(key_serde=Serdes.string(), value_serde=Serdes.json()))
    streams = Streams(builder.build(), StreamsConfig.of(settings))

    def told(batch: BatchReport) -> None:
        tell("batch", records=batch.records_in, restored={task.task: task.restored for task in batch.tasks})

    logging.getLogger(placement.__name__).addHandler(_Telling())
    logging.getLogger(placement.__name__).setLevel(logging.INFO)
    streams.set_state_listener(lambda new, _old: tell("state", state=new.name))
    streams.add_batch_listener(told)
    streams.run()


if __name__ == "__main__":
    main(json.loads(sys.argv[1]))
