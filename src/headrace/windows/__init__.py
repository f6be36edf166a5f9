"""Windows: the spans of time that records are grouped by, and the specifications that say which.

A specification (``TimeWindows``, ``SlidingWindows``, …) is a frozen value with pure arithmetic; the operators that keep
aggregates per window are built from it. ``Windows`` is the protocol for windows of one's own.
"""

from headrace.windows.custom import Windows, custom_windows
from headrace.windows.emit import EmitStrategy
from headrace.windows.join import JoinWindows
from headrace.windows.session import SessionWindows
from headrace.windows.sliding import SlidingWindows
from headrace.windows.time import TimeWindows
from headrace.windows.unlimited import UnlimitedWindows
from headrace.windows.window import SessionWindow, TimeWindow, UnlimitedWindow, Window, Windowed

__all__ = [
    "EmitStrategy",
    "JoinWindows",
    "SessionWindow",
    "SessionWindows",
    "SlidingWindows",
    "TimeWindow",
    "TimeWindows",
    "UnlimitedWindow",
    "UnlimitedWindows",
    "Window",
    "Windowed",
    "Windows",
    "custom_windows",
]
