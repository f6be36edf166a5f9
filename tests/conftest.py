"""Options of the whole suite."""

from __future__ import annotations

import pytest


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--log", action="append", choices=["embedded"], help="run the contract of the topic log on this one"
    )
