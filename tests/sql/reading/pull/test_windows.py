"""Pull queries on windowed tables."""

from __future__ import annotations

import pytest

from headrace.sql.errors import SqlStatementError
from headrace.sql.reading.tables.expiry import expiry_of
from tests.sql.places import QueryPlace

VISITS = """
CREATE STREAM visits (page STRING KEY, ms INT) WITH (KAFKA_TOPIC='visits', VALUE_FORMAT='JSON', PARTITIONS=2);
CREATE TABLE counts AS SELECT page, COUNT(*) AS n FROM visits WINDOW TUMBLING (SIZE 1 SECOND) GROUP BY page;
CREATE TABLE sessions AS SELECT page, COUNT(*) AS n FROM visits WINDOW SESSION (1 SECOND) GROUP BY page;
INSERT INTO visits (ROWTIME, page, ms) VALUES (100, 'a', 1);
INSERT INTO visits (ROWTIME, page, ms) VALUES (900, 'a', 1);
INSERT INTO visits (ROWTIME, page, ms) VALUES (1100, 'a', 1);
INSERT INTO visits (ROWTIME, page, ms) VALUES (5100, 'a', 1);
INSERT INTO visits (ROWTIME, page, ms) VALUES (1200, 'ab', 1);
"""


@pytest.fixture
def visits(place: QueryPlace) -> QueryPlace:
    place.run(VISITS)
    return place


def test_all_windows_of_a_key(visits: QueryPlace) -> None:
    result = visits.pulled("SELECT * FROM counts WHERE page = 'a';")
    assert str(result.schema) == "`PAGE` STRING KEY, `WINDOWSTART` BIGINT KEY, `WINDOWEND` BIGINT KEY, `N` BIGINT"
    assert [row.columns for row in result.rows] == [
        ["a", 0, 1000, 2],
        ["a", 1000, 2000, 1],
        ["a", 5000, 6000, 1],
    ]


@pytest.mark.parametrize(
    ("condition", "starts"),
    [
        ("windowstart = 1000", [1000]),
        ("windowstart > 0", [1000, 5000]),
        ("windowstart >= 0 AND windowend <= 2000", [0, 1000]),
        ("windowend = 2000", [1000]),
        ("1000 < windowend AND windowstart < 5000", [1000]),
        ("windowstart < -1", []),
        ("windowstart = '1970-01-01T00:00:01'", [1000]),
        ("windowstart <> 1000", [0, 5000]),
        ("windowstart BETWEEN 500 AND 9000", [1000, 5000]),
    ],
)
def test_bounds_of_windows(visits: QueryPlace, condition: str, starts: list[int]) -> None:
    found = visits.rows(f"SELECT windowstart FROM counts WHERE page = 'a' AND {condition};")
    assert [row[0] for row in found] == starts
    scanned = visits.rows(f"SELECT page, windowstart FROM counts WHERE {condition};")
    assert [row[1] for row in scanned if row[0] == "a"] == starts


def test_windows_of_several_keys_differ_by_alternative(visits: QueryPlace) -> None:
    condition = "page = 'a' AND windowstart = 0 OR page = 'ab' AND windowend > 0 OR page = 'a' AND windowstart = 0"
    found = visits.rows(f"SELECT page, windowstart FROM counts WHERE {condition};")
    assert sorted(found) == [["a", 0], ["ab", 1000]]


def test_sessions_have_the_bounds_of_their_records(visits: QueryPlace) -> None:
    found = visits.rows("SELECT windowstart, windowend, n, rowtime FROM sessions WHERE page = 'a';")
    assert found == [[100, 1100, 3, 1100], [5100, 5100, 1, 5100]]
    assert visits.rows("SELECT n FROM sessions WHERE page = 'a' AND windowstart = 5100;") == [[1]]


def test_windows_are_gone_after_their_retention(place: QueryPlace) -> None:
    place.run(
        """CREATE STREAM v (page STRING KEY, ms INT) WITH (KAFKA_TOPIC='v', VALUE_FORMAT='JSON', PARTITIONS=1);
        CREATE TABLE c AS SELECT page, COUNT(*) AS n FROM v
            WINDOW TUMBLING (SIZE 1 SECOND, RETENTION 3 SECONDS, GRACE PERIOD 1 SECOND) GROUP BY page;
        CREATE TABLE kept AS SELECT page, COUNT(*) AS n FROM v WINDOW TUMBLING (SIZE 1 SECOND) GROUP BY page;"""
    )
    shown = []
    for time_ms in (500, 1500, 3500, 9500):
        place.run(f"INSERT INTO v (ROWTIME, page, ms) VALUES ({time_ms}, 'a', 1);")
        shown.append([row[0] for row in place.rows("SELECT windowstart FROM c WHERE page = 'a';")])
    assert shown == [[0], [0, 1000], [1000, 3000], [9000]]
    assert place.rows("SELECT windowstart FROM c;") == [[9000]]
    assert len(place.rows("SELECT * FROM kept;")) == 4
    expiry = expiry_of(place.engine.catalog.source("C"), place.engine.catalog)
    with place.tables.view(place.engine.catalog.source("C"), expiry).reading() as snapshot:
        assert len(list(snapshot.scan_all())) == 1


@pytest.mark.parametrize(
    ("condition", "message"),
    [
        ("windowstart <> 1000", "Unsupported `WINDOWSTART` bounds: NOT_EQUAL"),
        ("windowstart > 1 AND windowstart >= 5", "Duplicate `WINDOWSTART` bounds on: GREATER_THAN"),
        (
            "windowend = 5 AND windowend < 9",
            r"`\(WINDOWEND < 9\)` cannot be combined with other `WINDOWEND` bounds",
        ),
        ("windowstart = 1.5", "Window bounds must resolve to an INT, BIGINT, or STRING containing a datetime"),
        ("windowstart > CAST(2 AS DOUBLE)", "Window bounds must resolve to an INT"),
    ],
)
def test_bounds_that_ksqldb_refuses_are_refused_without_the_extensions(
    visits: QueryPlace, condition: str, message: str
) -> None:
    query = f"SELECT n FROM counts WHERE page = 'a' AND {condition};"
    visits.rows(query)
    with pytest.raises(SqlStatementError, match=message):
        visits.pulled(query, ksql__query__pull__extensions__enabled="false")
