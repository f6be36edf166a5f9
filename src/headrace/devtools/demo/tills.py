"""The tills of a shopping centre: they report purchases to the input topic at a steady rate."""

from __future__ import annotations

import threading
import time
from itertools import chain, islice

from headrace.devtools.demo.retail_purchases import TRANSACTIONS
from headrace.devtools.load import LOADS
from headrace.topics.log import Output, TopicLog

CUSTOMERS = 5_000
_TICK_SECONDS = 0.05
_FIRST_LOT = 500


class Tills:
    """Writes purchases from a thread of its own. A record's timestamp is the moment at which it is appended."""

    def __init__(self, log: TopicLog, rate: float) -> None:
        self._log = log
        self._rate = rate
        self._pairs = chain.from_iterable(LOADS["purchases"].blocks(keys=CUSTOMERS, size=_FIRST_LOT))
        self._closed = threading.Event()
        self._thread = threading.Thread(target=self._run, name="headrace-demo-tills", daemon=True)
        self.written = 0
        self.failure: BaseException | None = None

    def sell_first(self) -> None:
        """Writes a lot at once, so that the first micro-batch has something to show."""
        self._append(max(1, min(_FIRST_LOT, int(self._rate))))

    def open(self) -> None:
        """Begins with the steady rate."""
        self._thread.start()

    def close(self) -> None:
        """Ends it, if it has begun."""
        self._closed.set()
        if self._thread.ident is not None:
            self._thread.join()

    def _run(self) -> None:
        begun, before = time.monotonic(), self.written
        try:
            while not self._closed.wait(_TICK_SECONDS):
                self._append(int((time.monotonic() - begun) * self._rate) + before - self.written)
        except BaseException as error:
            # A full disk, for instance: it has to end the demo, not only this thread.
            self.failure = error

    def _append(self, number: int) -> None:
        pairs = list(islice(self._pairs, number))
        now_ms = time.time_ns() // 1_000_000
        records: list[Output] = [(None, now_ms, key, value, ()) for key, value in pairs]
        if records:
            self._log.append(TRANSACTIONS, records)
            self.written += len(records)
