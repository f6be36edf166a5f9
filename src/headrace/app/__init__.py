"""``Streams``, the handle of a running application: start, close, states, listeners, metrics, starting over.

Start with ``streams`` (the handle), then ``startup`` (what happens before an engine runs) and ``engine`` (what an
engine must be able to do). ``directories`` says where everything is kept.

| module | |
|---|---|
| ``streams``, ``streams_state`` | the handle, and its states |
| ``streams_arguments``, ``callbacks``, ``uncaught_exceptions`` | checks of arguments; calls of listeners and handlers |
| ``startup``, ``directories``, ``lock``, ``topics`` | what happens before an engine runs |
| ``description``, ``fingerprint`` | what the log knows of an application, and whether a topology still fits |
| ``engine`` | the engine protocol |
| ``backoff``, ``latch``, ``failure_watch``, ``signals`` | waits after failures, flags, failed tasks, SIGTERM |
| ``progress``, ``start_line`` | figures, and the line on the terminal |
| ``application_server``, ``store_queries`` | its HTTP server, and queries of its stores in this process |
| ``reset`` | starting over |
"""

from headrace.app.streams import Streams
from headrace.app.streams_state import StreamsState

__all__ = ["Streams", "StreamsState"]
