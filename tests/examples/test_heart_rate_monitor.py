from collections.abc import Iterator

import pytest

from examples.heart_rate_monitor import (
    ALERT,
    ALERTS,
    PULSE,
    PULSES,
    STRING,
    TEMPERATURE,
    TEMPERATURES,
    Alert,
    Pulse,
    Temperature,
    build,
)
from headrace import StreamsBuilder, TopologyTestDriver

SECOND_MS = 1_000
MINUTE_MS = 60_000


@pytest.fixture
def driver() -> Iterator[TopologyTestDriver]:
    builder = StreamsBuilder()
    build(builder)
    with TopologyTestDriver(builder.build()) as driver:
        yield driver


def beat(driver: TopologyTestDriver, *times_ms: int, patient: str = "ada") -> None:
    pulses = driver.create_input_topic(PULSES, STRING, PULSE)
    for time_ms in times_ms:
        pulses.pipe_input(patient, Pulse(time_ms))


def first_minute(beats: int) -> range:
    """Returns the times of so many beats, half a second apart and the last at 59.5 seconds."""
    return range(MINUTE_MS - beats * 500, MINUTE_MS, 500)


def measure(driver: TopologyTestDriver, celsius: float, *, at_ms: int, patient: str = "ada") -> None:
    temperatures = driver.create_input_topic(TEMPERATURES, STRING, TEMPERATURE)
    temperatures.pipe_input(patient, Temperature(at_ms, celsius))


def alerts(driver: TopologyTestDriver) -> list[tuple[str, Alert]]:
    return [(key, value) for key, value in driver.create_output_topic(ALERTS, STRING, ALERT).read_key_values()]


def test_fast_heart_with_fever_raises_one_alert(driver: TopologyTestDriver) -> None:
    measure(driver, 39.1, at_ms=20 * SECOND_MS)
    beat(driver, *first_minute(beats=110), 65 * SECOND_MS)
    assert alerts(driver) == [("ada", Alert(110, 39.1))]


def test_rate_is_not_judged_before_the_minute_and_its_grace_are_over(driver: TopologyTestDriver) -> None:
    measure(driver, 39.1, at_ms=20 * SECOND_MS)
    beat(driver, *first_minute(beats=110), 65 * SECOND_MS - 1)
    assert alerts(driver) == []
    beat(driver, 65 * SECOND_MS)
    assert alerts(driver) == [("ada", Alert(110, 39.1))]


@pytest.mark.parametrize(("beats", "celsius"), [(99, 39.1), (110, 37.9), (99, 37.9)])
def test_one_sign_alone_is_no_alert(driver: TopologyTestDriver, beats: int, celsius: float) -> None:
    measure(driver, celsius, at_ms=20 * SECOND_MS)
    beat(driver, *first_minute(beats), 65 * SECOND_MS)
    assert alerts(driver) == []


def test_limits_themselves_raise_an_alert(driver: TopologyTestDriver) -> None:
    measure(driver, 38.0, at_ms=20 * SECOND_MS)
    beat(driver, *first_minute(beats=100), 65 * SECOND_MS)
    assert alerts(driver) == [("ada", Alert(100, 38.0))]


def test_patients_are_not_mixed_up(driver: TopologyTestDriver) -> None:
    measure(driver, 39.1, at_ms=20 * SECOND_MS, patient="bob")
    beat(driver, *first_minute(beats=110), 65 * SECOND_MS)
    assert alerts(driver) == []


def test_beat_of_any_patient_shows_that_the_minute_is_over(driver: TopologyTestDriver) -> None:
    measure(driver, 39.1, at_ms=20 * SECOND_MS)
    beat(driver, *first_minute(beats=110))
    beat(driver, 70 * SECOND_MS, patient="bob")
    assert alerts(driver) == [("ada", Alert(110, 39.1))]


def test_late_beat_counts_during_the_grace(driver: TopologyTestDriver) -> None:
    measure(driver, 39.1, at_ms=20 * SECOND_MS)
    beat(driver, *first_minute(beats=99), 64 * SECOND_MS, 1 * SECOND_MS, 65 * SECOND_MS)
    assert alerts(driver) == [("ada", Alert(100, 39.1))]


def test_beat_after_the_grace_is_dropped_and_counted(driver: TopologyTestDriver) -> None:
    measure(driver, 39.1, at_ms=20 * SECOND_MS)
    beat(driver, *first_minute(beats=99), 65 * SECOND_MS, 1 * SECOND_MS)
    beat(driver, 200 * SECOND_MS)
    assert alerts(driver) == []
    assert driver.metrics()["dropped-records-total"] == 1


@pytest.mark.parametrize(("measured_ms", "raised"), [(119_500, True), (119_501, False)])
def test_fever_counts_within_a_minute_of_the_last_beat(
    driver: TopologyTestDriver, *, measured_ms: int, raised: bool
) -> None:
    beat(driver, *first_minute(beats=110), 65 * SECOND_MS)
    measure(driver, 39.1, at_ms=measured_ms)
    assert bool(alerts(driver)) is raised


def test_every_fast_minute_raises_its_own_alert(driver: TopologyTestDriver) -> None:
    measure(driver, 39.1, at_ms=61 * SECOND_MS)
    beat(driver, *first_minute(beats=110))
    beat(driver, *(MINUTE_MS + time_ms for time_ms in first_minute(beats=105)))
    beat(driver, 125 * SECOND_MS)
    assert alerts(driver) == [("ada", Alert(110, 39.1)), ("ada", Alert(105, 39.1))]


def test_measurement_without_a_time_is_skipped(driver: TopologyTestDriver) -> None:
    driver.create_input_topic(PULSES, STRING, PULSE).pipe_input("ada", None)
    beat(driver, -1)
    assert driver.metrics()["dropped-records-total"] == 2
