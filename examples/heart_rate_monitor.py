"""Heart-rate monitor: alerts when a patient has a fast heart and a fever at the same time.

The monitor sends one event per heartbeat, so the heart rate is a count of events in windows of one minute. A
rate must not be judged before its minute is over: ``suppress`` holds each window back until it is closed, and
gives one final result. Fast rates are then joined with high temperatures of the same patient that were
measured within a minute.

Also shows event time taken from the measurement itself, by a timestamp extractor, because devices send when
they can.
"""

from dataclasses import dataclass
from datetime import timedelta

from headrace import (
    BufferConfig,
    Consumed,
    ConsumedRecord,
    Grouped,
    JoinWindows,
    Materialized,
    Produced,
    Serdes,
    StreamJoined,
    StreamsBuilder,
    Suppressed,
    TimeWindows,
    TopologyTestDriver,
)

PULSES = "pulses"
TEMPERATURES = "temperatures"
ALERTS = "patient-alerts"
PULSE_STORE = "pulse-count-store"

FAST_PULSE = 100
FEVER_CELSIUS = 38.0
PER_MINUTE = TimeWindows.of_size_and_grace(timedelta(minutes=1), grace=timedelta(seconds=5))
WITHIN_A_MINUTE = JoinWindows.of_time_difference_and_grace(timedelta(minutes=1), grace=timedelta(seconds=10))


@dataclass(frozen=True, slots=True)
class Pulse:
    measured_ms: int


@dataclass(frozen=True, slots=True)
class Temperature:
    measured_ms: int
    celsius: float


@dataclass(frozen=True, slots=True)
class Alert:
    beats_per_minute: int
    celsius: float


STRING, LONG = Serdes.string(), Serdes.long()
PULSE = Serdes.json(Pulse)
TEMPERATURE = Serdes.json(Temperature)
ALERT = Serdes.json(Alert)


def measured_at(record: ConsumedRecord, _partition_time_ms: int) -> int:
    """Extracts the time of the measurement; a negative time makes the record be skipped."""
    return -1 if record.value is None else record.value.measured_ms


def alert(beats_per_minute: int, temperature: Temperature) -> Alert:
    return Alert(beats_per_minute, temperature.celsius)


def build(builder: StreamsBuilder) -> None:
    pulses = builder.stream(PULSES, Consumed(STRING, PULSE, measured_at, name="pulses-source"))
    temperatures = builder.stream(TEMPERATURES, Consumed(STRING, TEMPERATURE, measured_at, name="temperatures-source"))
    rates = (
        pulses.group_by_key(Grouped("by-patient", STRING, PULSE))
        .windowed_by(PER_MINUTE)
        .count(materialized=Materialized(PULSE_STORE, key_serde=STRING, value_serde=LONG), name="count-pulses")
        # A buffer that emitted early when it is full would give rates of unfinished minutes.
        .suppress(
            Suppressed.until_window_closes(
                BufferConfig.max_records(100_000).shut_down_when_full(), name="wait-for-the-minute"
            )
        )
    )
    fast = (
        rates.to_stream(name="final-rates")
        .filter(lambda _patient, rate: rate >= FAST_PULSE, name="fast-pulse")
        .select_key(lambda patient, _rate: patient.key, name="patient-without-window")
    )
    fever = temperatures.filter(lambda _patient, measured: measured.celsius >= FEVER_CELSIUS, name="fever")
    fast.join(
        fever,
        alert,
        windows=WITHIN_A_MINUTE,
        joined=StreamJoined(STRING, LONG, TEMPERATURE, name="fast-and-fever", store_name="fast-and-fever"),
    ).to(ALERTS, Produced(STRING, ALERT, name="alerts-sink"))


def main() -> None:
    builder = StreamsBuilder()
    build(builder)
    with TopologyTestDriver(builder.build()) as driver:
        pulses = driver.create_input_topic(PULSES, STRING, PULSE)
        temperatures = driver.create_input_topic(TEMPERATURES, STRING, TEMPERATURE)
        temperatures.pipe_input("ada", Temperature(measured_ms=20_000, celsius=39.1))
        temperatures.pipe_input("bob", Temperature(measured_ms=25_000, celsius=36.8))
        for beat in range(120):
            pulses.pipe_input("ada", Pulse(measured_ms=beat * 500))
            pulses.pipe_input("bob", Pulse(measured_ms=beat * 500))
        # Nothing can be said about the first minute until a later beat shows that it is over.
        pulses.pipe_input("ada", Pulse(measured_ms=65_000))
        for patient, found in driver.create_output_topic(ALERTS, STRING, ALERT).read_key_values():
            print(f"{patient}: {found.beats_per_minute} beats per minute at {found.celsius} °C")


if __name__ == "__main__":
    main()
