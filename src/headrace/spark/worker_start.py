"""The start of a Python worker."""

from __future__ import annotations

import gc

from headrace.spark.worker_logging import leave_failures_to_the_driver


def prepare_worker() -> None:
    """Gets a worker ready, once, when everything is imported.

    ``pyspark/daemon.py`` lets the collector look at all objects after every task, 16 to 19 ms with our modules loaded;
    at frozen ones it does not look.
    """
    leave_failures_to_the_driver()
    gc.collect()
    gc.freeze()
