"""Pull queries on streams: everything that is there, once."""

from __future__ import annotations

import pytest

from headrace.sql.errors import SqlStatementError
from tests.sql.places import QueryPlace

STREAM = """
CREATE STREAM s (k INT KEY, v INT, tags ARRAY<STRING>) WITH (KAFKA_TOPIC='s', VALUE_FORMAT='JSON', PARTITIONS=2);
INSERT INTO s VALUES (1, 10, ARRAY['x', 'y']);
INSERT INTO s VALUES (2, 20, ARRAY['z']);
INSERT INTO s VALUES (3, NULL, NULL);
"""


@pytest.fixture
def stream(place: QueryPlace) -> QueryPlace:
    place.run(STREAM)
    return place


def test_all_records_are_read_once(stream: QueryPlace) -> None:
    result = stream.pulled("SELECT k, v, rowtime FROM s;")
    assert str(result.schema) == "`K` INTEGER, `V` INTEGER, `ROWTIME` BIGINT"
    assert sorted(row.columns for row in result.rows) == [[1, 10, 1], [2, 20, 2], [3, None, 3]]
    assert result.final_message == "Query Completed"


def test_records_without_value_or_that_cannot_be_read_give_nothing(stream: QueryPlace) -> None:
    stream.log.append("s", [(0, 5, b"\0\0\0\4", None, ()), (0, 5, b"\0\0\0\4", b"{", ())])
    assert len(stream.rows("SELECT * FROM s;")) == 3


def test_a_limit_ends_the_query(stream: QueryPlace) -> None:
    result = stream.pulled("SELECT * FROM s LIMIT 2;")
    assert len(list(result.rows)) == 2
    assert result.final_message == "Limit Reached"


def test_conditions_and_table_functions(stream: QueryPlace) -> None:
    assert sorted(stream.rows("SELECT k, EXPLODE(tags) AS tag FROM s WHERE v >= 10;")) == [
        [1, "x"],
        [1, "y"],
        [2, "z"],
    ]


@pytest.mark.parametrize("clause", ["GROUP BY k", "PARTITION BY v", "WINDOW TUMBLING (SIZE 1 DAY)"])
def test_clauses_of_push_queries_are_refused(stream: QueryPlace, clause: str) -> None:
    name = clause.split(" BY ")[0].split(" TUM")[0]
    with pytest.raises(SqlStatementError, match=f"Pull queries don't support {name}") as raised:
        stream.rows(f"SELECT * FROM s {clause};")
    assert "Add EMIT CHANGES" in raised.value.message


def test_aggregates_are_refused(stream: QueryPlace) -> None:
    with pytest.raises(SqlStatementError, match="Pull queries don't support GROUP BY") as raised:
        stream.rows("SELECT COUNT(*) FROM s;")
    assert "Add EMIT CHANGES" in raised.value.message


def test_they_can_be_switched_off(stream: QueryPlace) -> None:
    with pytest.raises(SqlStatementError, match="Pull queries on streams are disabled"):
        stream.rows("SELECT * FROM s;", ksql__query__pull__stream__enabled=False)
    with pytest.raises(SqlStatementError, match="LIMIT clause in pull queries is currently disabled"):
        stream.rows("SELECT * FROM s LIMIT 1;", ksql__query__pull__limit__clause__enabled="false")
