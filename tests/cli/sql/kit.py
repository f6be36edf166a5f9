"""Common part of the tests of the prompt."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from headrace.cli.sql.session import Session


@dataclass
class Typed:
    """A session, and what it has printed."""

    session: Session
    captured: pytest.CaptureFixture[str]

    def __call__(self, text: str) -> list[str]:
        """Carries out statements; returns the lines that were printed."""
        self.captured.readouterr()
        self.session.run(text)
        return self.captured.readouterr().out.splitlines()
