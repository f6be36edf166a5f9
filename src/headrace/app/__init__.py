"""``Streams``, the handle of a running application: start, close, states, listeners, metrics, starting over.

Start with ``streams`` (the handle), then ``startup`` (what happens before an engine runs) and ``engine`` (what an
engine must be able to do). ``directories`` says where everything is kept.
"""

from headrace.app.streams import Streams
from headrace.app.streams_state import StreamsState

__all__ = ["Streams", "StreamsState"]
