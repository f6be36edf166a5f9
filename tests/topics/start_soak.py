"""Applications that start and stop while a broker has just come up: ``python -m tests.topics.start_soak --minutes 3``.

Its coordinators are not there yet, or still loading. The client once died of a segmentation fault then: it does so when
the client for administration asks for the offsets of a group (``list_consumer_group_offsets``) and the broker answers
NOT_COORDINATOR, because it tells a group that such a client does not have. Nine of 24 processes died that asked on new
brokers in this way; nothing in Headrace asks for them any more. ``--ask`` does, to see whether the client still dies.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from headrace.devtools.kafka_broker import start_broker, stop_broker

# One process: everything that an application does with its groups and transactions, again and again.
APPLICATION = """
import sys
from headrace.topics.journal import TaskRecord
from headrace.topics.kafka import KafkaLog

servers, name, times = sys.argv[1], sys.argv[2], int(sys.argv[3])
for number in range(times):
    with KafkaLog(servers, admin={"client.id": f"{name}-{number}"}) as log:
        log.applications()
        if number == 0:
            log.create_topic(f"{name}-in")
            log.create_topic(f"{name}-out")
        log.append(f"{name}-in", [(None, 1, b"k", b"v", ())])
        journal = log.open_journal(name, ["0_0"])
        batch_id = journal.state.batch_id + 1
        journal.begin(batch_id, b"plan")
        part = log.task_journal(name, journal.incarnation, "0_0", [])
        part.open()
        record = TaskRecord(batch_id, str(number), [(f"{name}-in", 0, number + 1)], None, b"")
        journal.commit(batch_id, [part.commit(record, [(f"{name}-out", [(None, 1, b"k", b"v", ())])], [])])
        part.close()
        journal.close()
        assert log.positions(name) == {(f"{name}-in", 0): number + 1}
        if number % 5 == 4:
            log.reset_application(name)
            log.begin_at(name, {(f"{name}-in", 0): number + 1})
"""

ASK = """
import sys
from confluent_kafka import ConsumerGroupTopicPartitions, KafkaException
from confluent_kafka.admin import AdminClient

admin = AdminClient({"bootstrap.servers": sys.argv[1]})
for number in range(200):
    group = f"{sys.argv[2]}-{number}"
    try:
        admin.list_consumer_group_offsets([ConsumerGroupTopicPartitions(group)], request_timeout=5)[group].result()
    except KafkaException:
        pass
"""


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--minutes", type=float, default=3.0)
    parser.add_argument("--processes", type=int, default=3, help="at once, on each new broker")
    parser.add_argument("--times", type=int, default=10, help="starts and stops in each process")
    parser.add_argument(
        "--ask", action="store_true", help="show that the client dies: ask for offsets of groups instead"
    )
    options = parser.parse_args()
    ends, brokers, starts, failures = time.monotonic() + 60 * options.minutes, 0, 0, 0
    while time.monotonic() < ends:
        with tempfile.TemporaryDirectory(prefix="headrace-start-soak-") as directory:
            broker = start_broker(Path(directory))
            try:
                script = ASK if options.ask else APPLICATION
                processes = [
                    subprocess.Popen(
                        [sys.executable, "-c", script, broker.address, f"app-{number}", str(options.times)]
                    )
                    for number in range(options.processes)
                ]
                codes = [process.wait() for process in processes]
            finally:
                stop_broker(Path(directory))
        brokers += 1
        starts += options.times * len(codes)
        failures += sum(code != 0 for code in codes)
        print(f"broker {brokers}: exit codes {codes}", flush=True)
    print(f"{brokers} brokers, {starts} starts, {failures} of {brokers * options.processes} processes failed")
    return 1 if failures and not options.ask else 0


if __name__ == "__main__":
    sys.exit(main())
