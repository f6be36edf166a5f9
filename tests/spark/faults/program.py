"""The application in a process of its own: ``python -m tests.spark.faults.program <options as JSON>``.

It runs until it is killed or asked to stop; with ``until_end`` until it has processed its input. What happens is
told on standard output, a line of JSON each: a pipe takes them also when the disk takes nothing.
"""

from __future__ import annotations

import faulthandler
import json
import signal
import sys
import time
from pathlib import Path
from typing import Any

from headrace.app import Streams
from headrace.app.directories import log_directory
from headrace.handlers import StreamThreadExceptionResponse
from headrace.topics.embedded import EmbeddedLog
from tests.spark.faults import shop


def main(options: dict[str, Any]) -> None:
    directory = Path(options["directory"])
    config = shop.config(directory, options["master"], **options.get("settings", {}))

    def tell(event: str, **more: object) -> None:
        print(json.dumps({"event": event, "time": time.time(), **more}), flush=True)

    def failed(error: Exception) -> StreamThreadExceptionResponse:
        tell("failure", error=f"{type(error).__name__}: {error}")
        return StreamThreadExceptionResponse.REPLACE_THREAD

    # Whoever thinks that it hangs asks for this.
    faulthandler.register(signal.SIGUSR1)
    tell("start")
    log = None
    if config.bootstrap_servers is None:
        log = EmbeddedLog(log_directory(config), max_size=options.get("max_size"))
    stumbles = directory / "stumbles"
    # Machines that share no directory cannot tell which order has failed before.
    streams = Streams(shop.build(stumbles if stumbles.is_dir() else None), config, log=log)
    streams.set_uncaught_exception_handler(failed)
    streams.add_batch_listener(lambda batch: tell("batch", batch=batch.batch_id, lag=batch.lag))
    try:
        streams.run(until_end=options.get("until_end", False))
    except BaseException as error:
        tell("end", error=f"{type(error).__name__}: {error}")
        raise
    tell("end")


if __name__ == "__main__":
    main(json.loads(sys.argv[1]))
