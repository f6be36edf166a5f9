"""Process that Spark's Python workers are forked from, with everything imported that they need.

Spark's own daemon imports nothing, so that every worker does it for itself and has it in memory for itself. To a first
result of two workers that is 0.85 s of processor time; with this module it is 0.5 s. Nothing that is imported here may
start threads, which a fork does not keep, or print, because Spark reads the daemon's standard output.
"""

from __future__ import annotations

import gc

import pyspark.daemon
import pyspark.worker

import headrace.spark.level
import headrace.topics.embedded  # noqa: F401 - the same
from headrace.spark.worker_garbage import GARBAGE

if __name__ == "__main__":
    # Workers share these pages as long as no collector writes to them.
    gc.collect()
    gc.freeze()
    # A worker of Spark's collects garbage after every task, and asks this module for it. By itself the collector would
    # walk through all that is new as soon as a micro-batch is over.
    gc.disable()
    setattr(pyspark.daemon, "gc", GARBAGE)  # noqa: B010 - to mypy it is a module
    pyspark.daemon.manager()
