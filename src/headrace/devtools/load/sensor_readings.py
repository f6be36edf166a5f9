"""Readings of sensors: temperature and humidity, each sensor around a value of its own."""

from __future__ import annotations

from collections.abc import Iterator

from headrace.devtools.load.columns import Column, dice

# A sum of dice is nearly a bell curve: most readings are near the sensor's usual one.
_DEVIATIONS = [a + b + c - 15 for a in range(11) for b in range(11) for c in range(11)]


def sensor_readings(keys: int, seed: int, size: int) -> Iterator[list[tuple[bytes | None, bytes]]]:
    """Yields readings of ``keys`` sensors; the sensor is the key."""
    random = dice("sensors", seed=seed)
    # The name, and tenths of a degree.
    known = [(b"sensor-%d" % number, random.randrange(150, 260)) for number in range(keys)]
    sensors = Column("sensor", known, seed=seed)
    deviations = Column("deviation", _DEVIATIONS, seed=seed)
    humidities = Column("humidity", range(30, 71), seed=seed)
    while True:
        yield [
            (name, b'{"sensor":"%b","celsius":%d.%d,"humidity":%d}' % (name, *divmod(usual + deviation, 10), humidity))
            for (name, usual), deviation, humidity in zip(
                sensors.take(size), deviations.take(size), humidities.take(size), strict=True
            )
        ]
