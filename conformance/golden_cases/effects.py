"""Sinks for the calls of ``peek`` and ``for_each``."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

# [node id, key, value] of each call of a peek or for_each.
Effects = list[list[Any]]


class EffectSink(Protocol):
    """A list, or what stands for one where a topology runs in another process."""

    def append(self, effect: list[Any], /) -> None: ...


@dataclass
class EffectFile:
    """A file to which effects are appended by whichever process has them."""

    path: Path
    _read: int = 0

    def append(self, effect: list[Any], /) -> None:
        with self.path.open("a", encoding="utf-8") as file:
            file.write(json.dumps(effect) + "\n")

    def take(self) -> Effects:
        """Returns what is new since the last call."""
        if not self.path.exists():
            return []
        with self.path.open(encoding="utf-8") as file:
            file.seek(self._read)
            effects = [json.loads(line) for line in file.read().splitlines()]
            self._read = file.tell()
        return effects
