"""The simulation: histories without a violation, and a violation for every rule that is not kept.

They run in a process of their own, whose modules are patched, and where sets have the same order each time.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.simulation.rules import EMBEDDED_SWITCHES, SWITCHES

FIRST = 20_261
"""The same histories each time: this run judges a change. ``make soak`` looks for what nobody knows, with new seeds."""
HISTORIES = 400
UNTIL_FOUND = 1_500
"""Histories within which a rule that is not kept shows."""


def simulate(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "tests.simulation", *arguments],
        cwd=Path(__file__).parents[2],
        env={**os.environ, "PYTHONHASHSEED": "0"},
        capture_output=True,
        text=True,
        check=False,
    )


def test_everything_is_done_exactly_once() -> None:
    done = simulate("--first", str(FIRST), "--histories", str(HISTORIES))
    assert done.returncode == 0, done.stdout + done.stderr
    assert f"kafka: {HISTORIES} histories" in done.stdout
    assert f"embedded: {HISTORIES} histories" in done.stdout


def test_processes_share_the_seeds() -> None:
    done = simulate("--first", str(FIRST), "--histories", "5", "--processes", "2")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "kafka: 5 histories" in done.stdout
    assert "embedded: 5 histories" in done.stdout


def test_process_tells_what_it_finds() -> None:
    options = ("--switch", "run-again", "--histories", str(UNTIL_FOUND), "--until-found")
    done = simulate(*options, "--processes", "2")
    assert done.returncode == 1, done.stdout + done.stderr
    assert "--log kafka --switch run-again --seed" in done.stdout


@pytest.mark.parametrize("switch", [each.name for each in (*SWITCHES, *EMBEDDED_SWITCHES)])
def test_rule_that_is_not_kept_shows(switch: str) -> None:
    done = simulate("--switch", switch, "--histories", str(UNTIL_FOUND), "--until-found")
    assert done.returncode == 1, done.stdout + done.stderr


def test_seed_is_the_same_history_again() -> None:
    first, second = (simulate("--log", "kafka", "--seed", "11").stdout for _ in range(2))
    assert len(first) > 10_000
    assert first == second


def test_all_rules_have_a_switch() -> None:
    assert {each.rule for each in SWITCHES} == set(map(str, range(1, 14)))
