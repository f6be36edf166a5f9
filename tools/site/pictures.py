"""All pictures of the site that are drawn by programs."""

from __future__ import annotations

from pathlib import Path

from benchmarks.kafka_results import read_results
from tools.site.benchmark_plots import latency, throughput
from tools.site.join_pictures import SCENES, draw
from tools.site.svg import Canvas

DIRECTORY = Path(__file__).parent.parent.parent / "docs" / "pictures"


def pictures() -> dict[str, Canvas]:
    """Returns the pictures by their file names."""
    results = read_results()
    plots = {"throughput.svg": throughput(results), "latency.svg": latency(results)}
    return plots | {name: draw(scene) for name, scene in SCENES.items()}
