"""The course of ``headrace demo``: a log in a temporary directory, the pipeline, its input, and a summary."""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from importlib.util import find_spec
from pathlib import Path

import click

from headrace.app.directories import open_log
from headrace.app.progress import Counts
from headrace.app.signals import closing_on_signals
from headrace.app.streams import Streams
from headrace.cli.common_options import common_options
from headrace.cli.demo.show import Show
from headrace.cli.printing import plural
from headrace.cli.settings import read_settings, settings_options
from headrace.config import StreamsConfig
from headrace.devtools.demo.results import Results
from headrace.devtools.demo.retail_purchases import TRANSACTIONS, build
from headrace.devtools.demo.tills import Tills
from headrace.dsl import StreamsBuilder
from headrace.topics.journal import DurableLog

_APPLICATION = "demo"
_MODULE = "headrace.devtools.demo.retail_purchases:build"
_PARTITIONS = 2
_LOOK_SECONDS = 0.1
_LONGEST_REST = 10.0


@click.command()
@click.option(
    "--seconds", type=click.FloatRange(min=1), default=45, show_default=True, help="How long results are shown."
)
@click.option(
    "--rate",
    type=click.FloatRange(min=1),
    default=500,
    show_default=True,
    help="Purchases per second that are written.",
)
@click.option("--keep", is_flag=True, help="Keep the directory with the log and the state, to look at it.")
@settings_options
@common_options()
def demo(seconds: float, rate: float, config_file: Path | None, assignments: tuple[str, ...], *, keep: bool) -> None:
    """See a pipeline of purchases run on Spark, for about a minute.

    Purchases are generated at a steady rate and written to a topic; the pipeline masks the card, finds what sells
    where, adds up reward points and gives a free coffee to customers who buy in the cafe and in the electronics shop
    within 20 minutes. Results are shown as they arrive. Everything is in a temporary directory, which is removed in the
    end. It needs Java 17 or newer and the extra 'headrace[spark]'.
    """
    with _directory(keep=keep) as directory:
        settings = {
            "application.id": _APPLICATION,
            **_console(),
            **read_settings(config_file, assignments, with_environment=False),
        }
        config = StreamsConfig.of({**settings, "state.dir": str(directory), "log.dir": str(directory / "log")})
        log = open_log(config)
        try:
            course = _Course(config, log, seconds, rate)
            course.run()
        finally:
            log.close()
    for line in course.summary():
        click.echo(line)
    for line in _next_steps(directory if keep else None):
        click.echo(line)


class _Course:
    """One demo."""

    def __init__(self, config: StreamsConfig, log: DurableLog, seconds: float, rate: float) -> None:
        self._seconds = seconds
        self._rate = rate
        self._counts = Counts()
        self._results = Results(log)
        self._tills = Tills(log, rate)
        self._show = Show(self._results, self._counts, seconds)
        self._stopping = threading.Event()
        self._first_result: float | None = None
        log.create_topic(TRANSACTIONS, partitions=_PARTITIONS)
        builder = StreamsBuilder(config)
        build(builder)
        self._streams = Streams(builder.build(config), config, log=log)
        self._streams.add_batch_listener(self._on_batch)

    def run(self) -> None:
        """Returns when the time is over, or after Ctrl-C."""
        with closing_on_signals(self._stopping.set), self._show:
            self._tills.sell_first()
            self._streams.start()
            address = self._streams.http_address
            self._show.serve_at(None if address is None else f"{address}/console/")
            try:
                self._watch()
            finally:
                self._tills.close()
                self._streams.close()
            # Raises what it has failed of.
            self._streams.wait()

    # Any: see Batch.
    def _on_batch(self, batch: object) -> None:
        self._counts.add(batch)
        if self._results.catch_up() and self._first_result is None:
            self._first_result = self._counts.seconds
            self._show.first_result()
            self._tills.open()

    def _watch(self) -> None:
        while not self._is_over():
            self._show.look()
            self._stopping.wait(_LOOK_SECONDS)
            if self._tills.failure is not None:
                raise self._tills.failure
        self._tills.close()
        # What was written last is to come out, too.
        until = time.monotonic() + _LONGEST_REST
        while self._counts.records_in < self._tills.written and time.monotonic() < until and not self._is_stopped():
            self._stopping.wait(_LOOK_SECONDS / 2)

    def _is_stopped(self) -> bool:
        return self._stopping.is_set() or self._streams.wait(timedelta(0))

    def _is_over(self) -> bool:
        first = self._first_result
        return self._is_stopped() or (first is not None and self._counts.seconds - first >= self._seconds)

    def summary(self) -> Iterator[str]:
        """Yields what was done, in lines."""
        counts = self._counts
        yield ""
        yield (
            f"{plural(counts.records_in, 'purchase')} in, {counts.records_out:,} records out, {counts.micro_batches} "
            f"in {counts.seconds:.0f} s"
        )
        if self._first_result is None:
            yield "it was stopped before the first result"
            return
        yield f"first result after {self._first_result:.1f} s, most of which is Spark's start"
        median, worst = (self._results.latency_ms(share) for share in (0.5, 0.99))
        if median is not None:
            yield (
                f"from append to visible result: p50 {median:,} ms, p99 {worst:,} ms at {self._rate:,.0f} purchases/s"
            )


def _console() -> dict[str, str]:
    """Returns the setting that serves the console, if the packages for it are there."""
    found = all(find_spec(name) is not None for name in ("starlette", "uvicorn", "httpx"))
    return {"http.listen": "localhost:0"} if found else {}


@contextmanager
def _directory(*, keep: bool) -> Iterator[Path]:
    directory = Path(tempfile.mkdtemp(prefix="headrace-demo-"))
    try:
        yield directory
    finally:
        if not keep:
            shutil.rmtree(directory, ignore_errors=True)


def _next_steps(kept: Path | None) -> Iterator[str]:
    yield ""
    activate = Path(sys.executable).with_name("activate")
    if shutil.which("headrace") is None and activate.exists():
        yield "to have the command headrace in this shell:"
        yield f"  . {os.path.relpath(activate)}"
        yield ""
    if kept is not None:
        yield f"the log and the state are in {kept}; look at them, and delete them when you are done:"
        yield f"  headrace topics list --state-dir {kept}"
        yield f"  headrace consume free-coffees --last 5 --state-dir {kept}"
        yield f"  headrace state {_APPLICATION} --state-dir {kept}"
        yield f"  rm -r {kept}"
        yield ""
    else:
        yield "its directory is removed; with --keep it stays, with the log and the state"
    yield "to try next:"
    yield f"  headrace describe {_MODULE}"
    yield "  headrace generate purchases transactions --count 100000"
    yield f"  headrace run {_MODULE} --until-end"
    yield "  headrace consume rewards --last 10"
