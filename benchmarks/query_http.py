"""How fast are stores over HTTP, with the topology idle and running, and how many can follow changes?

Key look-ups by wrk, held at 2,000 requests/s and without a limit; then changes to 200 subscribers. The server lives in
the process of the application, whose tasks run there without Spark; wrk and the subscribers are processes of their own.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from headrace import Materialized, Streams, StreamsBuilder
from headrace.app.engine import local_engine
from tests.views.kit import SOON, Place, topology_of

RATE, P99_MS, SUBSCRIBERS = 2000, 10.0, 200
KEYS = 10_000
CONNECTIONS = 32


def build(builder: StreamsBuilder) -> None:
    builder.stream("in").group_by_key().count(materialized=Materialized("counts"))


class Writer:
    """Writes records at a steady rate."""

    def __init__(self, place: Place, rate: int) -> None:
        self._place, self._rate = place, rate
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)

    def _run(self) -> None:
        step, each = max(1, self._rate // 20), 0
        while not self._stopping.wait(0.05):
            now_ms = int(time.time() * 1000)
            keys = [f"key-{(each + n) % KEYS:05}".encode() for n in range(step)]
            self._place.log.append("in", [(None, now_ms, key, b"1", ()) for key in keys])
            each += step

    def __enter__(self) -> None:
        self._thread.start()

    def __exit__(self, *_error: object) -> None:
        self._stopping.set()
        self._thread.join()


def script(directory: Path, pause_ms: float) -> Path:
    """Writes what wrk does: another key each time, with a pause between two requests of a connection."""
    file = directory / "keys.lua"
    delay = f"function delay() return {pause_ms:.0f} end\n" if pause_ms else ""
    file.write_text(
        f"{delay}function request()\n"
        f'  return wrk.format("GET", string.format("/stores/counts/keys/key-%05d", math.random(0, {KEYS - 1})))\nend\n'
    )
    return file


def wrk(url: str, seconds: int, file: Path) -> dict[str, float]:
    command = ["wrk", "-t1", f"-c{CONNECTIONS}", f"-d{seconds}s", "--latency", "-s", str(file), url]
    text = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    found = {"rate": float(re.search(r"Requests/sec:\s+([\d.]+)", text)[1])}  # type: ignore[index]  # wrk prints it
    for name, label in (("p50", "50%"), ("p99", "99%")):
        value, unit = re.search(rf"{label}\s+([\d.]+)(us|ms|s)", text).groups()  # type: ignore[union-attr]
        found[name] = float(value) * {"us": 0.001, "ms": 1.0, "s": 1000.0}[unit]
    errors = re.search(r"Non-2xx or 3xx responses: (\d+)", text)
    found["errors"] = float(errors[1]) if errors else 0.0
    return found


async def follow(url: str, count: int, changes: int) -> list[list[float]]:
    """Follows changes with many connections; returns when each got each, in seconds of the clock."""
    parts = urlsplit(url)
    request = f"GET {parts.path} HTTP/1.1\r\nHost: localhost\r\nAccept: text/event-stream\r\n\r\n".encode()
    ready = asyncio.Semaphore(0)

    async def one() -> list[float]:
        reader, writer = await asyncio.open_connection(parts.hostname, parts.port)
        writer.write(request)
        await reader.readuntil(b": changes\n\n")
        ready.release()
        seen: list[float] = []
        while len(seen) < changes:
            line = await reader.readline()
            if line.startswith(b"data:"):
                seen.append(time.time())
        writer.close()
        return seen

    tasks = [asyncio.create_task(one()) for _ in range(count)]
    for _ in range(count):
        await ready.acquire()
    print("ready", flush=True)
    return await asyncio.gather(*tasks)


def fan_out(place: Place, url: str) -> dict[str, float]:
    """Measures from the append of a record until the last of all subscribers has its change."""
    changes = 30
    command = [sys.executable, "-m", "benchmarks.query_http", "--follow", f"{url}/stores/counts/changes"]
    with subprocess.Popen([*command, "--changes", str(changes)], stdout=subprocess.PIPE, text=True) as listening:
        assert listening.stdout is not None
        listening.stdout.readline()
        sent = []
        for each in range(changes):
            sent.append(time.time())
            place.log.append("in", [(None, 1_000_000, f"fan-{each}".encode(), b"1", ())])
            time.sleep(0.2)
        seen = json.loads(listening.stdout.read())
    first = [min(several[each] for several in seen) - at for each, at in enumerate(sent)]
    last = [max(several[each] for several in seen) - at for each, at in enumerate(sent)]
    return {
        "subscribers": len(seen),
        "first_ms": statistics.median(first) * 1000,
        "last_ms": statistics.median(last) * 1000,
        "worst_ms": max(last) * 1000,
    }


def measure(seconds: int) -> dict[str, Any]:
    with tempfile.TemporaryDirectory(prefix="headrace-bench-") as directory:
        place = Place(Path(directory), **{"in": 2})
        config = place.config()
        streams = Streams(topology_of(build, config), config, log=place.log, engine=local_engine, http="localhost:0")
        streams.start()
        url = streams.http_address or ""
        bound = place.write("in", [(f"key-{each:05}", 1, 1000) for each in range(KEYS)])
        assert streams._own_views.views().wait_for(bound.position, SOON), "the views have caught up"
        # A request itself takes about a millisecond.
        paced, free = CONNECTIONS * 1000 / RATE - 1, 0.0
        found: dict[str, Any] = {}
        for state, rate in (("idle", 0), ("running", 5000)):
            for load, pause_ms in (("paced", paced), ("unlimited", free)):
                file = script(Path(directory), pause_ms)
                if rate:
                    with Writer(place, rate):
                        found[f"{state}, {load}"] = wrk(url, seconds, file)
                else:
                    found[f"{state}, {load}"] = wrk(url, seconds, file)
        found["fan-out"] = fan_out(place, url)
        streams.close()
        place.close()
        return found


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=int, default=10)
    parser.add_argument("--follow", metavar="URL", help=argparse.SUPPRESS)
    parser.add_argument("--changes", type=int, default=30, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.follow:
        print(json.dumps(asyncio.run(follow(options.follow, SUBSCRIBERS, options.changes))))
        return 0
    if shutil.which("wrk") is None:
        print("wrk is not installed, so requests over HTTP are not measured")
        return 0
    found = measure(options.seconds)
    fan = found.pop("fan-out")
    for name, each in found.items():
        figures = f"p50 {each['p50']:6.2f} ms, p99 {each['p99']:6.2f} ms, {each['errors']:.0f} errors"
        print(f"key query, topology {name:20} {each['rate']:8,.0f} requests/s   {figures}")
    print(
        f"{fan['subscribers']:.0f} subscribers: from append to the first {fan['first_ms']:.0f} ms, to the last "
        f"{fan['last_ms']:.0f} ms (median), {fan['worst_ms']:.0f} ms (worst)"
    )
    paced = found["idle, paced"]
    good = paced["p99"] < P99_MS and paced["errors"] == 0
    print(f"target: p99 under {P99_MS:.0f} ms at {RATE:,} requests/s: {'reached' if good else 'missed'}")
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
