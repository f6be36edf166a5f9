"""Pictures of joins in time: records of two inputs, and the results that the test driver gives for them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import timedelta

from headrace import (
    Joined,
    JoinWindows,
    Materialized,
    Stores,
    StreamJoined,
    StreamsBuilder,
    TopologyTestDriver,
)
from tools.site.svg import BLUE, GREEN, GREY, GRID, INK, MUTED, ORANGE, Canvas

WIDTH, LEFT, RIGHT = 500, 88, 484
LANES = (86, 146, 218)
"""Where the left input, the right input and the results are drawn."""


@dataclass(frozen=True)
class Arrival:
    """A record of an input; the order in a scene is the order of arrival."""

    side: int
    value: str | None
    seconds: int


@dataclass(frozen=True)
class Scene:
    """A join, what arrives, and how its inputs are drawn."""

    title: str
    hint: str
    names: tuple[str, str]
    build: Callable[[StreamsBuilder], None]
    arrivals: Sequence[Arrival]
    seconds: int
    """How long the axis is."""
    reach: int | None = None
    """Seconds before and after a left record in which partners are found."""
    tables: tuple[bool, bool] = (False, False)
    """Which inputs are tables: a row lasts until the next one."""


def pair(left: str | None, right: str | None) -> str:
    """Joins two values so that one sees both."""
    return f"{left or '–'}{right or '–'}"


_WITHIN = JoinWindows.of_time_difference_and_grace(timedelta(seconds=10), grace=timedelta(seconds=5))
_ARRIVALS = (Arrival(0, "A", 4), Arrival(1, "x", 10), Arrival(0, "B", 17), Arrival(0, "C", 32), Arrival(1, "y", 50))


def _inner(builder: StreamsBuilder) -> None:
    left, right = builder.stream("left"), builder.stream("right")
    left.join(right, pair, windows=_WITHIN).to("out")


def _left(builder: StreamsBuilder) -> None:
    left, right = builder.stream("left"), builder.stream("right")
    left.left_join(right, pair, windows=_WITHIN, joined=StreamJoined(name="paid")).to("out")


def _stream_table(builder: StreamsBuilder) -> None:
    builder.stream("left").left_join(builder.table("right"), pair).to("out")


def _versioned(builder: StreamsBuilder) -> None:
    store = Stores.persistent_versioned_key_value_store("prices", timedelta(hours=1))
    prices = builder.table("right", materialized=Materialized(store))
    builder.stream("left").join(prices, pair, joined=Joined(name="priced")).to("out")


def _tables(builder: StreamsBuilder) -> None:
    builder.table("left").outer_join(builder.table("right"), pair).to_stream().to("out")


SCENES = {
    "join-inner.svg": Scene(
        "Stream with stream, inner join within 10 s",
        "a pair comes out when the second of its records arrives",
        ("orders", "payments"),
        _inner,
        _ARRIVALS,
        56,
        reach=10,
    ),
    "join-left.svg": Scene(
        "The same as a left join, grace 5 s",
        "C has no partner: it comes out when stream time has passed 32 + 10 + 5 s",
        ("orders", "payments"),
        _left,
        _ARRIVALS,
        56,
        reach=10,
    ),
    "join-table.svg": Scene(
        "Stream with table, left join",
        "an order looks at the row of the moment; changes of the table are silent",
        ("orders", "users"),
        _stream_table,
        (Arrival(0, "A", 4), Arrival(1, "x", 12), Arrival(0, "B", 20), Arrival(1, "y", 32), Arrival(0, "C", 44)),
        56,
        tables=(False, True),
    ),
    "join-versioned.svg": Scene(
        "Stream with versioned table",
        "3 arrives after y and belongs to second 20: it finds x, the row of that time",
        ("orders", "prices"),
        _versioned,
        (Arrival(1, "x", 4), Arrival(1, "y", 32), Arrival(0, "A", 20), Arrival(0, "B", 44)),
        56,
        tables=(False, True),
    ),
    "join-tables.svg": Scene(
        "Table with table, outer join",
        "the result is a table, too: every change of either side changes it",
        ("names", "cities"),
        _tables,
        (Arrival(0, "A", 4), Arrival(1, "x", 14), Arrival(0, "B", 26), Arrival(1, None, 38), Arrival(0, None, 48)),
        56,
        tables=(True, True),
    ),
}


def results(scene: Scene) -> list[tuple[int, list[tuple[str | None, int]]]]:
    """Runs a scene: for each arrival the results that it brings, with their timestamps in seconds."""
    builder = StreamsBuilder()
    scene.build(builder)
    found = []
    with TopologyTestDriver(builder.build()) as driver:
        inputs = [driver.create_input_topic("left"), driver.create_input_topic("right")]
        out = driver.create_output_topic("out")
        for number, arrival in enumerate(scene.arrivals):
            inputs[arrival.side].pipe_input("key", arrival.value, timestamp_ms=arrival.seconds * 1000)
            given = [(record.value, (record.timestamp_ms or 0) // 1000) for record in out.read_records()]
            found.append((number, given))
    return found


def draw(scene: Scene) -> Canvas:
    """Draws the inputs along time, numbered by arrival, and the results below what brought them."""
    canvas = Canvas(WIDTH, 290, scene.title)
    canvas.text(16, 26, scene.title, size=15, bold=True)
    canvas.text(16, 45, scene.hint, size=11, color=MUTED)
    for name, y in zip((*scene.names, "result"), LANES, strict=True):
        canvas.text(16, y + 5, name, bold=True)
        canvas.line(LEFT, y, RIGHT, y, GRID, width=2)
    _draw_axis(canvas, scene)
    if scene.reach is not None:
        _draw_reach(canvas, scene)
    for side in (0, 1):
        if scene.tables[side]:
            _draw_rows(canvas, scene, side)
    for number, given in results(scene):
        _draw_results(canvas, scene, scene.arrivals[number], given)
    for number, arrival in enumerate(scene.arrivals, start=1):
        _draw_arrival(canvas, scene, number, arrival)
    return canvas


def _x(scene: Scene, seconds: float) -> float:
    return LEFT + (RIGHT - LEFT) * min(max(seconds, 0), scene.seconds) / scene.seconds


def _draw_axis(canvas: Canvas, scene: Scene) -> None:
    for seconds in range(0, scene.seconds, 10):
        x = _x(scene, seconds)
        canvas.line(x, 254, x, 260, MUTED)
        canvas.text(x, 275, f"{seconds} s", size=11, color=MUTED, anchor="middle")
    canvas.line(LEFT, 254, RIGHT, 254, MUTED)
    canvas.text(16, 275, "event time", size=11, color=MUTED)


def _draw_reach(canvas: Canvas, scene: Scene) -> None:
    lefts = [arrival.seconds for arrival in scene.arrivals if arrival.side == 0]
    for place, seconds in enumerate(lefts):
        reach = scene.reach or 0
        start, end, y = _x(scene, seconds - reach), _x(scene, seconds + reach), LANES[0] + 18 + 6 * place
        canvas.box(start, y, end - start, LANES[1] + 14 - y, BLUE, opacity=0.08)
        canvas.line(start, y, end, y, BLUE, width=1.5)
        canvas.line(_x(scene, seconds), LANES[0], _x(scene, seconds), y, BLUE, width=1.5)


def _draw_rows(canvas: Canvas, scene: Scene, side: int) -> None:
    rows = sorted((each for each in scene.arrivals if each.side == side), key=lambda each: each.seconds)
    for number, row in enumerate(rows):
        end = rows[number + 1].seconds if number + 1 < len(rows) else scene.seconds
        if row.value is not None:
            start = _x(scene, row.seconds)
            canvas.box(start, LANES[side] - 7, _x(scene, end) - start, 14, BLUE if side == 0 else GREEN, opacity=0.22)


def _draw_arrival(canvas: Canvas, scene: Scene, number: int, arrival: Arrival) -> None:
    x, y, color = _x(scene, arrival.seconds), LANES[arrival.side], BLUE if arrival.side == 0 else GREEN
    canvas.dot(x, y, 11, color, hollow=arrival.value is None)
    canvas.text(x, y + 5, arrival.value or "∅", color=INK if arrival.value is None else "#fff", anchor="middle")
    canvas.text(x + 14, y - 8, str(number), size=11, color=MUTED)


def _draw_results(canvas: Canvas, scene: Scene, trigger: Arrival, given: Sequence[tuple[str | None, int]]) -> None:
    x, y = _x(scene, trigger.seconds), LANES[2]
    if given:
        canvas.line(x, LANES[trigger.side], x, y - 11, GREY, dashes="3 3")
    for place, (value, seconds) in enumerate(given):
        middle = x + place * 44
        canvas.box(middle - 18, y - 11, 36, 22, ORANGE, radius=11)
        canvas.text(middle, y + 5, value or "∅", color="#fff", anchor="middle", bold=True)
        if seconds != trigger.seconds:
            canvas.text(middle, y + 25, f"of {seconds} s", size=11, color=MUTED, anchor="middle")
