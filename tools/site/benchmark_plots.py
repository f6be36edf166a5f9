"""Plots of the benchmark next to Kafka Streams, from the figures that the benchmark has kept."""

from __future__ import annotations

from collections.abc import Sequence

from benchmarks.kafka_results import Result
from tools.site.svg import BLUE, GREEN, GREY, GRID, INK, MUTED, ORANGE, Canvas

WIDTH, LEFT, RIGHT = 500, 16, 484
ROW, TOP, BAR = 58, 74, 13


def throughput(results: Sequence[Result]) -> Canvas:
    """Draws the rates of both sides, with the target of each program and whether it was missed."""
    canvas = _canvas("Throughput, records per second, exactly once on Kafka", len(results), "longer is better")
    end = 375
    largest = max(max(result.headrace.rate, result.kafka_streams.rate) for result in results)
    scale = (end - LEFT) / largest
    for place, result in enumerate(results):
        y = _heading(canvas, place, result)
        wanted = LEFT + min(result.kafka_streams.rate * result.wanted_ratio * scale, end)
        for number, (figures, color) in enumerate(((result.kafka_streams, GREY), (result.headrace, BLUE))):
            top, length = y + number * (BAR + 2), figures.rate * scale
            canvas.box(LEFT, top, length, BAR, color)
            # Where the line of the target would cross the number, the number stands behind it.
            behind = number == 1 and length < wanted - LEFT < length + 55
            x = wanted if behind else LEFT + length
            canvas.text(x + 5, top + 11, f"{figures.rate:,.0f}", size=11, color=MUTED)
        canvas.line(wanted, y + BAR, wanted, y + 2 * BAR + 6, INK, width=2)
        met = result.ratio >= result.wanted_ratio
        canvas.text(RIGHT, y - 6, f"{result.ratio:.2f} ×", color=GREEN if met else ORANGE, anchor="end", bold=True)
        if not met:
            said = "slower: target missed" if result.ratio < 1 else "target missed"
            canvas.text(RIGHT, y + 25, said, size=11, color=ORANGE, anchor="end", bold=True)
    _legend(canvas, len(results), "black line: the target, 1.5 × for (a) and 2 × for the others")
    return canvas


def latency(results: Sequence[Result]) -> Canvas:
    """Draws p50 and p99 of both sides, and what a side lacks: latencies beyond the scale, targets of cores."""
    canvas = _canvas("Latency at 1,000 records/s, ms, exactly once on Kafka", len(results), "shorter is better")
    largest = max(side.p99 or 0 for result in results for side in (result.headrace, result.kafka_streams))
    scale = (RIGHT - 110 - LEFT) / largest
    for place, result in enumerate(results):
        y = _heading(canvas, place, result)
        for number, (figures, color) in enumerate(((result.kafka_streams, GREY), (result.headrace, BLUE))):
            top = y + number * (BAR + 2)
            if figures.p50 is None or figures.p99 is None:
                canvas.box(LEFT, top, RIGHT - LEFT, BAR, color, opacity=0.25)
                canvas.text(LEFT + 6, top + 11, "tens of seconds: still behind when it was measured", size=11)
                continue
            canvas.box(LEFT, top, figures.p99 * scale, BAR, color, opacity=0.35)
            canvas.box(LEFT, top, figures.p50 * scale, BAR, color)
            canvas.text(
                LEFT + figures.p99 * scale + 5,
                top + 11,
                f"{figures.p50:g} / {figures.p99:g}",
                size=11,
                color=MUTED,
            )
        missed = result.headrace.missed
        cores = f"{result.kafka_streams.cores:.2f} and {result.headrace.cores:.2f} cores"
        said = f"{cores}, missed: {', '.join(missed)}" if missed else cores
        canvas.text(RIGHT, y - 6, said, size=11, color=ORANGE if missed else MUTED, anchor="end", bold=bool(missed))
    _legend(
        canvas, len(results), "dark: half of the results (p50), light: 99 of 100 (p99); cores in the order of the bars"
    )
    return canvas


def _canvas(title: str, programs: int, hint: str) -> Canvas:
    canvas = Canvas(WIDTH, TOP + programs * ROW + 46, title)
    canvas.text(LEFT, 26, title, size=15, bold=True)
    canvas.text(LEFT, 44, f"one machine, 2 cores that the broker shares; {hint}", size=11, color=MUTED)
    return canvas


def _heading(canvas: Canvas, place: int, result: Result) -> float:
    """Writes the name of a program and returns where its bars begin."""
    y = TOP + place * ROW + 4
    if place:
        canvas.line(LEFT, y - 23, RIGHT, y - 23, GRID)
    canvas.text(LEFT, y - 6, f"({result.name}) {_short(result.title)}", size=12)
    return y


def _short(title: str) -> str:
    return title.replace("stream-stream join, windows of ", "stream-stream join, ")


def _legend(canvas: Canvas, programs: int, more: str) -> None:
    y = TOP + programs * ROW + 8
    canvas.box(LEFT, y - 9, 10, 10, GREY)
    canvas.text(LEFT + 15, y, "Kafka Streams 4.1.1", size=11)
    canvas.box(LEFT + 140, y - 9, 10, 10, BLUE)
    canvas.text(LEFT + 155, y, "Headrace", size=11)
    canvas.text(LEFT, y + 20, more, size=11, color=MUTED)
