"""The long version: topologies of the golden cases go to and fro between Kafka Streams and Headrace.

``python -m tests.takeover [--every N] [--records N] [--seed N]``
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from pathlib import Path

from headrace.devtools.kafka_broker import start_broker, stop_broker
from headrace.topics.kafka import KafkaLog
from tests.takeover.cases import FEWEST, STORE_KINDS, selected_cases
from tests.takeover.relay import Relay

# Transactions that take too long are looked for after ten seconds otherwise.
_SETTINGS = {"transaction.abort.timed.out.transaction.cleanup.interval.ms": "500"}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--every", type=int, default=4, help="take every so many of the cases")
    parser.add_argument("--records", type=int, default=1200, help="records for each topology")
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    begun = time.monotonic()

    def say(what: str) -> None:
        print(f"{time.monotonic() - begun:7.1f} s  {what}", flush=True)

    with tempfile.TemporaryDirectory(prefix="headrace-takeover-") as name:
        directory = Path(name)
        broker = start_broker(directory / "kafka", settings=_SETTINGS)
        try:
            with KafkaLog(broker.address) as log:
                cases = selected_cases(options.every, options.seed)
                relay = Relay(log, directory, cases, records=options.records, pieces=4, seed=options.seed)
                say(f"{len(relay.runners)} topologies")
                figures = relay.run(say)
        finally:
            stop_broker(directory / "kafka")
    for problem in figures.problems:
        print(f"  {problem}")
    say(
        f"{figures.topologies} topologies, {figures.takeovers} takeovers, {figures.hand_backs} hand-backs, "
        f"{figures.records} records, {figures.unread} of repartition topics were unread, {figures.outputs} results and "
        f"{figures.rows} rows compared, {len(figures.problems)} differences"
    )
    say("taken over with rows: " + ", ".join(f"{count} {kind}" for kind, count in sorted(figures.stores.items())))
    lacking = sorted(STORE_KINDS - figures.stores.keys())
    if lacking:
        say(f"no store of these kinds was taken over with rows: {', '.join(lacking)}")
    if figures.topologies < FEWEST:
        say(f"at least {FEWEST} topologies are required, there were {figures.topologies}; lower --every")
    return 1 if figures.problems or lacking or figures.topologies < FEWEST else 0


if __name__ == "__main__":
    sys.exit(main())
