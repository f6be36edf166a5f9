"""The benchmark of SQL's formats at a tiny size."""

import pytest

from benchmarks.sql_formats import CASES, main


def test_both_sides_are_measured_in_both_directions(capsys: pytest.CaptureFixture[str]) -> None:
    # Whether the target was met says nothing at this size.
    assert main(["--records", "5", "--rounds", "1"]) in (0, 1)
    lines = capsys.readouterr().out.splitlines()[1:]
    assert [line[:14].strip() for line in lines] == [case for case in CASES for _ in ("read", "write")]
