"""Stock performance: reports, every ten seconds, the stocks that trade away from their recent average.

Shows the Processor API inside the DSL: a processor that brings its own store, remembers the last trades of
each stock in it, and reports from a punctuator, so that reports come by the clock and not with every trade.
"""

from dataclasses import dataclass
from datetime import timedelta
from statistics import fmean
from typing import ClassVar

from headrace import (
    Consumed,
    KeyValueStore,
    KStream,
    Processor,
    ProcessorContext,
    Produced,
    PunctuationType,
    Record,
    Serdes,
    StoreBuilder,
    Stores,
    StreamsBuilder,
    TopologyTestDriver,
)

TRADES = "trades"
REPORTS = "stock-reports"
PERFORMANCE_STORE = "stock-performance"

REPORT_INTERVAL = timedelta(seconds=10)
LOOK_BACK = 20
PRICE_THRESHOLD = 0.02
VOLUME_THRESHOLD = 0.5


@dataclass(frozen=True, slots=True)
class Trade:
    price: float
    shares: int


@dataclass(frozen=True, slots=True)
class Report:
    price: float
    price_change: float
    """Of the last trade against the average of those before it; 0.05 is five percent up."""
    volume_change: float
    """The same for the number of shares."""

    def is_remarkable(self) -> bool:
        return abs(self.price_change) >= PRICE_THRESHOLD or abs(self.volume_change) >= VOLUME_THRESHOLD


@dataclass(frozen=True, slots=True)
class Performance:
    """The last trade of a stock and up to twenty before it."""

    trades: tuple[Trade, ...] = ()

    def after(self, trade: Trade) -> "Performance":
        return Performance((*self.trades[-LOOK_BACK:], trade))

    def report(self) -> Report:
        *earlier, last = self.trades
        if not earlier:
            return Report(last.price, 0.0, 0.0)
        return Report(
            last.price,
            last.price / fmean(trade.price for trade in earlier) - 1,
            last.shares / fmean(trade.shares for trade in earlier) - 1,
        )


class PerformanceProcessor(Processor[str, Trade, str, Report]):
    """Takes trades by stock symbol and forwards a report for each remarkable stock at every tick of the clock."""

    stores: ClassVar[tuple[StoreBuilder, ...]] = (
        Stores.key_value_store_builder(
            Stores.persistent_key_value_store(PERFORMANCE_STORE), Serdes.string(), Serdes.json(Performance)
        ),
    )

    def init(self, context: ProcessorContext) -> None:
        super().init(context)
        self.performances: KeyValueStore[str, Performance] = context.get_state_store(PERFORMANCE_STORE)
        context.schedule(REPORT_INTERVAL, PunctuationType.WALL_CLOCK_TIME, self.report)

    def process(self, record: Record[str, Trade]) -> None:
        performance = self.performances.get(record.key) or Performance()
        self.performances.put(record.key, performance.after(record.value))

    def report(self, now_ms: int) -> None:
        with self.performances.all() as rows:
            for symbol, performance in rows:
                report = performance.report()
                if report.is_remarkable():
                    self.context.forward(Record(symbol, report, now_ms))


def build(builder: StreamsBuilder) -> None:
    trades = builder.stream(TRADES, Consumed(Serdes.string(), Serdes.json(Trade), name="trades-source"))
    reports: KStream[str, Report] = trades.process(PerformanceProcessor, name="watch-performance")
    reports.to(REPORTS, Produced(Serdes.string(), Serdes.json(Report), name="reports-sink"))


def main() -> None:
    builder = StreamsBuilder()
    build(builder)
    with TopologyTestDriver(builder.build(), initial_wall_clock_ms=0) as driver:
        trades = driver.create_input_topic(TRADES, Serdes.string(), Serdes.json(Trade))
        reports = driver.create_output_topic(REPORTS, Serdes.string(), Serdes.json(Report))
        for symbol, price in (("ACME", 100.0), ("DULL", 50.0), ("ACME", 104.0), ("DULL", 50.1)):
            trades.pipe_input(symbol, Trade(price, shares=100))
        driver.advance_wall_clock_time(REPORT_INTERVAL)
        for symbol, report in reports.read_key_values():
            print(f"{symbol}: {report.price:.2f}, price {report.price_change:+.1%}, volume {report.volume_change:+.1%}")


if __name__ == "__main__":
    main()
