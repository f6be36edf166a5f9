"""Each part of the fuzzing for a few seconds; ``make soak`` runs them for an hour."""

from __future__ import annotations

import logging

import pytest

from tests.fuzz.running import PARTS, run

_SECONDS = 3.0
_TRIALS = 20
"""On a machine that is busy with other things they may take longer."""


@pytest.mark.parametrize("part", PARTS)
def test_part_finds_nothing(part: str) -> None:
    # Errors of requests are logged by the thousand.
    logging.disable(logging.CRITICAL)
    try:
        outcomes = run(part, _SECONDS, seed=0, least=_TRIALS)
    finally:
        logging.disable(logging.NOTSET)
    assert len(outcomes) > 1, "all trials come to the same, so they try nothing"
