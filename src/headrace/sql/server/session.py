"""What a client has set: it lasts for one request, or as long as a prompt is open."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass
class Session:
    """Settings and variables beyond those of the server."""

    settings: dict[str, object] = field(default_factory=dict)
    variables: dict[str, str] = field(default_factory=dict)
    """By name in upper case."""

    @classmethod
    def of(cls, settings: dict[str, object], variables: dict[str, object]) -> Session:
        return cls(dict(settings), {name.upper(): str(value) for name, value in variables.items()})

    def copy(self) -> Session:
        return Session(dict(self.settings), dict(self.variables))
