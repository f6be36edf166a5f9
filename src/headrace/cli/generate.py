"""``headrace generate``: built-in load, at a rate or as fast as it goes."""

from __future__ import annotations

import time
from collections.abc import Iterator
from itertools import chain

import click

from headrace.cli.common_options import CommonOptions, common_options, complete_topic
from headrace.cli.printing import note, plural
from headrace.cli.progress import Counter
from headrace.cli.times import Moment
from headrace.devtools.load import LOADS, Load, stamped
from headrace.errors import UnknownTopicError
from headrace.topics.log import Output, TopicLog

_BLOCK = 10_000
_TICK_SECONDS = 0.02
_DEFAULT_COUNT = 10_000

_KINDS = "\n".join(f"      {load.name:<16} {load.what}" for load in LOADS.values())


_HELP = f"""Write load of a KIND to a TOPIC, which is created if it is missing.

    \b
    Kinds:
{_KINDS}

    The same seed gives the same keys and values. Timestamps begin at --start and go on evenly: with --rate at that
    rate, otherwise --interval-ms apart. Without --rate records are written as fast as possible, {_DEFAULT_COUNT:,} of
    them unless --count says otherwise; with --rate until --count is reached, or Ctrl-C.

    \b
      headrace generate purchases transactions --rate 500
      headrace generate sensor-readings readings --count 1000000 --keys 10000 --partitions 4
    """


@click.command(help=_HELP, short_help="Write generated records to a topic.")
@click.argument("kind", type=click.Choice(list(LOADS)))
@click.argument("topic", shell_complete=complete_topic)
@click.option("--count", "-n", type=click.IntRange(min=0), help="How many records.")
@click.option("--rate", type=click.FloatRange(min=0, min_open=True), help="Records per second.")
@click.option("--keys", type=click.IntRange(min=1), help="How many customers, users, sensors or words there are.")
@click.option("--seed", type=int, default=0, show_default=True, help="Another seed, other records.")
@click.option("--start", type=Moment(), metavar="TIME", help="Timestamp of the first record. [default: now]")
@click.option("--interval-ms", type=click.FloatRange(min=0), help="Event time between two records.")
@click.option("--partitions", "-p", type=click.IntRange(min=1), help="For a topic that is missing. [default: 1]")
@click.option("--quiet", "-q", is_flag=True, help="Do not say how many records were written.")
@common_options()
@click.pass_obj
def generate(
    common: CommonOptions,
    kind: str,
    topic: str,
    count: int | None,
    rate: float | None,
    keys: int | None,
    seed: int,
    start: int | None,
    interval_ms: float | None,
    partitions: int | None,
    *,
    quiet: bool,
) -> None:
    """Its help has the table of kinds."""
    load = LOADS[kind]
    if count is None and rate is None:
        count = _DEFAULT_COUNT
    with common.log(create=True) as log:
        _prepare(log, topic, partitions, quiet=quiet)
        records = _records(load, keys, seed, start, interval_ms, count, rate)
        with Counter("records", total=count, quiet=quiet) as counter:
            try:
                if rate is None:
                    _at_once(log, topic, records, counter)
                else:
                    _produce_at_rate(log, topic, records, rate, counter)
            except KeyboardInterrupt:
                # This is how one ends a load without a count.
                if count is not None:
                    raise
    if not quiet:
        note(f"wrote {plural(counter.count, 'record')} to '{topic}', {counter.count / counter.seconds:,.0f} per second")


def _prepare(log: TopicLog, topic: str, partitions: int | None, *, quiet: bool) -> None:
    try:
        found = log.describe_topic(topic).partitions
    except UnknownTopicError:
        log.create_topic(topic, partitions=partitions or 1)
        if not quiet:
            note(f"created topic '{topic}' with {plural(partitions or 1, 'partition')}")
        return
    if partitions not in (None, found):
        message = (
            f"topic '{topic}' is there already, with {plural(found, 'partition')}; leave out --partitions, or delete "
            "it first"
        )
        raise click.UsageError(message)


def _records(
    load: Load,
    keys: int | None,
    seed: int,
    start: int | None,
    interval_ms: float | None,
    count: int | None,
    rate: float | None,
) -> Iterator[list[Output]]:
    if interval_ms is None:
        interval_ms = load.interval_ms if rate is None else 1000 / rate
    size = _BLOCK if rate is None else max(1, min(_BLOCK, int(rate * _TICK_SECONDS)))
    start_ms = int(time.time() * 1000) if start is None else start
    blocks = load.blocks(keys=keys, seed=seed, size=size)
    return stamped(blocks, start_ms=start_ms, interval_ms=interval_ms, count=count)


def _at_once(log: TopicLog, topic: str, blocks: Iterator[list[Output]], counter: Counter) -> None:
    for block in blocks:
        log.append(topic, block)
        counter.add(len(block))


def _produce_at_rate(log: TopicLog, topic: str, blocks: Iterator[list[Output]], rate: float, counter: Counter) -> None:
    records = chain.from_iterable(blocks)
    started = time.monotonic()
    pending: list[Output] = []
    for record in records:
        pending.append(record)
        due = (counter.count + len(pending)) / rate - (time.monotonic() - started)
        # A record that is due now may wait for others of its tick.
        if due > _TICK_SECONDS or len(pending) >= _BLOCK:
            log.append(topic, pending)
            counter.add(len(pending))
            pending = []
            time.sleep(max(0, due))
    if pending:
        log.append(topic, pending)
        counter.add(len(pending))
