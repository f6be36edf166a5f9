"""How fast is the engine on a real broker, next to Kafka Streams itself and to the client's own ceiling?

The programs of the engine's benchmark, each as a running application: Headrace exactly once and at least once, the same
programs on Kafka Streams (Java, exactly_once_v2, 2 threads), and a loop that only consumes and produces; all stores of
both have changelogs. All read the same topics of one broker on this machine, in turns. Rates are taken from what each
application has committed, after the warm-up, until everything is: the others' offsets are asked for at the broker,
Headrace prints a line per micro-batch, because it commits offsets for others to see only now and then. The results are
read under ``read_committed`` and compared. Then the inputs get 1,000 records/s, and the time from the creation of a
record to its result is taken by a consumer, with the processor time of the application. Needs Maven for the Java side.

    python -m benchmarks.kafka [--only abcdefg] [--sides headrace,kafka-streams] [--records 2000000] [--seconds 20] …
"""

from __future__ import annotations

import argparse
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from confluent_kafka import (
    Consumer,
    ConsumerGroupTopicPartitions,
    KafkaError,
    KafkaException,
    Producer,
    TopicPartition,
)
from confluent_kafka.admin import AdminClient

from benchmarks.engine_load import CUSTOMERS, PAYMENTS, PURCHASES, Load, chosen_load, customers, load_options
from benchmarks.engine_measure import Answer, answer_in
from benchmarks.engine_programs import PROGRAMS, Program
from benchmarks.kafka_load import load_topics, recreate, send
from benchmarks.kafka_results import keep, rate_factor
from benchmarks.kafka_sides import (
    CLIENT,
    HEADRACE,
    KAFKA_STREAMS,
    SIDES,
    Side,
    application_of,
    build_java,
    command,
    records_told,
    started,
)
from benchmarks.process_tree import cpu_seconds
from headrace import StreamsConfig
from headrace.devtools.kafka_broker import start_broker, stop_broker
from headrace.topics.kafka import KafkaLog

POLL = 0.05
LONGEST = 600.0
RATE = 1_000
TICK = 0.01
LATENCY_WARM_UP = 5.0
P50_FACTOR, P99_FACTOR = 1.3, 2.0
"""How many times Kafka Streams' latency Headrace's may be."""
REKEYED_P50_FACTOR = 1.0
CORES = 0.6
TRANSACTION_ENDS = 4
"""Offsets at the end of a partition that no record has."""


@dataclass(frozen=True)
class Measured:
    """What a side reached with a program."""

    rate: float
    """Records/s."""
    cpu: float
    """Seconds of processor time per million records, of the application."""
    broker_cpu: float
    """The same of the broker."""
    answer: Answer


def group_offsets(admin: AdminClient, group: str) -> list[TopicPartition]:
    """Returns what a group has committed: nothing as long as the broker makes the topic for it."""
    asked = [ConsumerGroupTopicPartitions(group)]
    try:
        found = next(iter(admin.list_consumer_group_offsets(asked).values())).result()
    except KafkaException as error:
        if not error.args[0].retriable() and error.args[0].code() != KafkaError.COORDINATOR_LOAD_IN_PROGRESS:
            raise
        return []
    offsets: list[TopicPartition] = found.topic_partitions
    return offsets


@dataclass(frozen=True)
class Timed:
    """From the creation of a record to its result, in milliseconds, and what it costs."""

    p50: float
    p99: float
    cores: float
    """Processor time of the application per second."""


@dataclass(frozen=True)
class Bench:
    """The broker and the directory that all share."""

    servers: str
    broker: int
    """Its process."""
    directory: Path
    load: Load
    results: Path | None = None
    """Where figures are kept."""

    def keep(self, program: Program, side: Side, **figures: Any) -> None:
        """Keeps figures for plots, if a file was named."""
        if self.results is not None:
            keep(self.results, program.name, program.title, side.name, figures)

    def committed(self, side: Side, admin: AdminClient, group: str) -> int:
        """Returns how many records an application has committed."""
        if side.tells:
            return records_told(self.directory / f"{group}.txt")
        inputs = (CUSTOMERS, PURCHASES, PAYMENTS)
        return sum(each.offset for each in group_offsets(admin, group) if each.topic in inputs and each.offset > 0)

    def has_passed_everything_on(self, admin: AdminClient, group: str) -> bool:
        """Returns whether an application has also read what it has sent to its own topics."""
        own = {
            (each.topic, each.partition): each.offset
            for each in group_offsets(admin, group)
            if each.topic.endswith("-repartition")
        }
        if not own:
            return True
        with KafkaLog.of(StreamsConfig(bootstrap_servers=self.servers)) as log:
            ends = log.end_offsets(own)
        return all(ends[target] - offset <= TRANSACTION_ENDS for target, offset in own.items())

    def throughput(self, side: Side, program: Program, total: int, warm_up: int) -> Measured:
        """Runs a program over everything that is in the topics."""
        out = f"out-{side.name}-{program.name}"
        recreate(self.servers, [out], self.load.partitions)
        admin = AdminClient({"bootstrap.servers": self.servers})
        group = application_of(side, program.name, "rate")
        output = self.directory / f"{group}.txt"
        arguments = command(side, group, program.name, program.inputs, out, self.servers, self.directory)
        with started(arguments, output) as process:
            began: tuple[float, int, float, float] | None = None
            deadline = time.monotonic() + LONGEST
            while True:
                done = self.committed(side, admin, group)
                now = time.perf_counter()
                if began is None and done >= warm_up:
                    began = now, done, cpu_seconds(process.pid), cpu_seconds(self.broker)
                if began is not None and done >= total and self.has_passed_everything_on(admin, group):
                    now = time.perf_counter()
                    break
                _check(process, output)
                if time.monotonic() > deadline:
                    message = f"{side.title}, ({program.name}): {done:,} of {total:,} records after {LONGEST:g} s"
                    raise SystemExit(message)
                time.sleep(POLL)
            records = done - began[1]
            if records == 0:
                message = f"{side.title}, ({program.name}): all records came in one batch; take more of them"
                raise SystemExit(message)
            measured = (
                records / (now - began[0]),
                (cpu_seconds(process.pid) - began[2]) / records * 1e6,
                (cpu_seconds(self.broker) - began[3]) / records * 1e6,
            )
        with KafkaLog.of(StreamsConfig(bootstrap_servers=self.servers)) as log:
            answer = answer_in(log, out, program)
        admin.delete_topics([out], operation_timeout=30)
        return Measured(*measured, answer)

    def latency(self, side: Side, program: Program, seconds: float) -> Timed:
        """Runs a program at the rate, and looks when its results can be read.

        Its input begins with it: what others were sent before would be a backlog.
        """
        out = f"late-{side.name}-{program.name}"
        recreate(self.servers, (out, PURCHASES, PAYMENTS), self.load.partitions)
        application = application_of(side, program.name, "latency")
        output = self.directory / f"{application}.txt"
        arguments = command(side, application, program.name, program.inputs, out, self.servers, self.directory)
        consumer = Consumer(
            {
                "bootstrap.servers": self.servers,
                "group.id": "observer",
                "isolation.level": "read_committed",
                "fetch.wait.max.ms": 5,
                "enable.auto.commit": False,
            }
        )
        consumer.assign([TopicPartition(out, partition, 0) for partition in range(self.load.partitions)])
        producer = Producer({"bootstrap.servers": self.servers, "linger.ms": 1})
        found: list[float] = []
        with started(arguments, output) as process:
            began = time.perf_counter()
            sent, first, cpu = 0, 0.0, 0.0
            while first == 0 or time.perf_counter() < first + LATENCY_WARM_UP + seconds:
                sent = _send_due(producer, began, sent)
                for result in consumer.consume(1_000, TICK):
                    first = first or time.perf_counter()
                    if time.perf_counter() >= first + LATENCY_WARM_UP:
                        cpu = cpu or cpu_seconds(process.pid)
                        found.append(time.time() * 1000 - result.timestamp()[1])
                _check(process, output)
                if first == 0 and time.perf_counter() > began + LONGEST:
                    message = f"{side.title}, ({program.name}): no result within {LONGEST:g} s"
                    raise SystemExit(message)
            cores = (cpu_seconds(process.pid) - cpu) / seconds
        producer.flush()
        consumer.close()
        found.sort()
        return Timed(statistics.median(found), found[len(found) * 99 // 100], cores)


def _check(process: subprocess.Popen[bytes], output: Path) -> None:
    if process.poll() is not None:
        sys.stderr.write(output.read_text(errors="replace")[-4_000:])
        message = f"the application ended with {process.returncode}; see above"
        raise SystemExit(message)


def _send_due(producer: Producer, began: float, sent: int) -> int:
    """Sends what is due at the rate by now: purchases, and a payment for every second one."""
    due = int((time.perf_counter() - began) * RATE)
    for number in range(sent, due):
        key = b"customer-%d" % (number * 7919 % 100_000)
        now_ms = int(time.time() * 1000)
        producer.produce(
            PURCHASES,
            b'{"id":%d,"amount":99.5,"item":"item-%d","card":"4111-1111-1111-1111","quantity":1,"at":%d}'
            % (number, number % 977, now_ms),
            key,
            timestamp=now_ms,
        )
        if number % 2 == 0:
            producer.produce(PAYMENTS, b'{"purchase":%d,"method":"card"}' % number, key, timestamp=now_ms)
    producer.poll(0)
    return due


def compare(bench: Bench, programs: Sequence[Program], sides: Sequence[Side], counts: dict[str, int]) -> bool:
    """Prints rates and processor time; returns whether all targets are met."""
    met = True
    share = {CUSTOMERS: bench.load.keys, PURCHASES: bench.load.warm_up, PAYMENTS: bench.load.warm_up // 2}
    print(f"{'':<28}{'':<36}{'records/s':>12}{'cpu s/M':>10}{'broker':>8}{'/ Kafka Streams':>17}", flush=True)
    for program in programs:
        total = sum(counts[topic] for topic in program.inputs)
        warm_up = sum(share[topic] for topic in program.inputs)
        found: dict[str, Measured] = {}
        for side in sides:
            found[side.name] = measured = bench.throughput(side, program, total, warm_up)
            bench.keep(program, side, rate=round(measured.rate), cpu=round(measured.cpu, 1))
            base = found.get(KAFKA_STREAMS.name)
            ratio = f"{measured.rate / base.rate:>17.2f}" if base is not None and side is not KAFKA_STREAMS else ""
            title = f"({program.name}) {program.title}" if side is sides[0] else ""
            print(
                f"{title:<28}{side.title:<36}{measured.rate:>12,.0f}{measured.cpu:>10.2f}"
                f"{measured.broker_cpu:>8.2f}{ratio}",
                flush=True,
            )
        answers = {name: each.answer for name, each in found.items() if name != CLIENT.name}
        first = next(iter(answers.values()), None)
        for name, answer in answers.items():
            if first is not None and (answer.rows, answer.total) != (first.rows, first.total):
                message = f"({program.name}): {name} gave {answer}, another gave {first}"
                raise SystemExit(message)
        if HEADRACE.name in found and KAFKA_STREAMS.name in found:
            factor = rate_factor(program.name)
            reached = found[HEADRACE.name].rate / found[KAFKA_STREAMS.name].rate
            met = met and reached >= factor
            print(f"{'':<28}{'met' if reached >= factor else 'MISSED'}: {factor:g} × Kafka Streams", flush=True)
    return met


def compare_latency(bench: Bench, programs: Sequence[Program], sides: Sequence[Side], seconds: float) -> bool:
    """Prints latencies and cores; returns whether the targets are met."""
    recreate(bench.servers, [CUSTOMERS], bench.load.partitions)
    producer = Producer({"bootstrap.servers": bench.servers})
    send(producer, CUSTOMERS, customers(bench.load), bench.load.partitions)
    met = True
    heading = f"from a record to its result at {RATE:,} records/s, in ms"
    print(f"\n{heading:<64}{'p50':>8}{'p99':>8}{'cores':>8}", flush=True)
    for program in programs:
        base: Timed | None = None
        for side in sides:
            timed = bench.latency(side, program, seconds)
            missed = _missed(timed, base, program) if side is HEADRACE else []
            base = timed if side is KAFKA_STREAMS else base
            kept = {"p50": round(timed.p50), "p99": round(timed.p99), "cores": round(timed.cores, 2)}
            bench.keep(program, side, **kept, missed=missed)
            met = met and not missed
            said = "" if side is not HEADRACE else "  MISSED: " + ", ".join(missed) if missed else "  met"
            title = f"({program.name}) {program.title}" if side is sides[0] else ""
            print(
                f"{title:<28}{side.title:<36}{timed.p50:>8,.0f}{timed.p99:>8,.0f}{timed.cores:>8.2f}{said}", flush=True
            )
    return met


def _missed(timed: Timed, base: Timed | None, program: Program) -> list[str]:
    """Returns the targets that were missed; those next to Kafka Streams only if it was measured."""
    missed = [f"{CORES:g} cores"] if timed.cores > CORES else []
    if base is not None:
        factor = REKEYED_P50_FACTOR if program.changes_key else P50_FACTOR
        missed += [f"p50 {factor:g} ×"] if timed.p50 > factor * base.p50 else []
        missed += [f"p99 {P99_FACTOR:g} ×"] if timed.p99 > P99_FACTOR * base.p99 else []
    return missed


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    load_options(parser)
    parser.add_argument("--only", default="abcdefg", help="the programs, by their letters")
    parser.add_argument("--sides", default=f"{KAFKA_STREAMS.name},{HEADRACE.name},at-least-once,{CLIENT.name}")
    parser.add_argument("--seconds", type=float, default=20.0, help="how long latency is measured; 0 leaves it out")
    parser.add_argument("--results", type=Path, help="keep the figures in this file, for the plots of the site")
    options = parser.parse_args()
    load = chosen_load(options)
    sides = [SIDES[name] for name in options.sides.split(",")]
    programs = [PROGRAMS[name] for name in options.only]
    if KAFKA_STREAMS in sides:
        build_java()
    directory = Path(tempfile.mkdtemp(prefix="headrace-bench-kafka-"))
    try:
        broker = start_broker(directory / "broker")
        try:
            bench = Bench(broker.address, broker.pid, directory, load, options.results)
            counts = load_topics(bench.servers, load)
            print(
                f"{load.records:,} records after {load.warm_up:,} of warm-up, {load.keys:,} keys, {load.partitions} "
                "partitions",
                flush=True,
            )
            met = compare(bench, programs, sides, counts)
            if options.seconds:
                timed = [side for side in sides if side is not CLIENT]
                met = compare_latency(bench, programs, timed, options.seconds) and met
        finally:
            stop_broker(directory / "broker")
    finally:
        shutil.rmtree(directory, ignore_errors=True)
    sys.exit(0 if met else 1)


if __name__ == "__main__":
    main()
