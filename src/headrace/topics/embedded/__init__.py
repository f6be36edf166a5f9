"""The embedded log: topics in a directory of this machine, for any number of processes, without a server.

| module | |
|---|---|
| ``embedded_log`` | the log |
| ``journal``, ``committing`` | commit of a micro-batch: one transaction |
| ``reading`` | reads by offset and by time |
| ``staging``, ``staged_append`` | uncommitted output of tasks, and of processes that append together |
| ``tables``, ``environment`` | layout in LMDB, and its environment |
| ``housekeeping``, ``cleaning``, ``compaction``, ``rewriting`` | retention, compaction, small blobs |
"""

from headrace.topics.embedded.embedded_log import EmbeddedLog

__all__ = ["EmbeddedLog"]
