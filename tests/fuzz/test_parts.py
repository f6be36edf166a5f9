"""Each part of the fuzzing for a few seconds; ``make soak`` runs them for an hour."""

from __future__ import annotations

import logging

import pytest

from tests.fuzz.running import PARTS, run

_SECONDS = 3.0


@pytest.mark.parametrize("part", PARTS)
def test_part_finds_nothing(part: str) -> None:
    # Errors of requests are logged by the thousand.
    logging.disable(logging.CRITICAL)
    try:
        outcomes = run(part, _SECONDS, seed=0)
    finally:
        logging.disable(logging.NOTSET)
    assert len(outcomes) > 1, "all trials come to the same, so they try nothing"
