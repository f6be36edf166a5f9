"""Session of a client: settings and variables, for one request or as long as a prompt is open."""

from __future__ import annotations

from dataclasses import dataclass, field

from headrace.sql.server.settings import check_setting
from headrace.sql.syntax.statements import DefineVariable, SetProperty, Statement, UndefineVariable, UnsetProperty


@dataclass
class Session:
    """Settings and variables beyond those of the server."""

    settings: dict[str, object] = field(default_factory=dict)
    variables: dict[str, str] = field(default_factory=dict)
    """By name in upper case."""

    @classmethod
    def of(cls, settings: dict[str, object], variables: dict[str, object]) -> Session:
        return cls(dict(settings), {name.upper(): str(value) for name, value in variables.items()})

    def take(self, statement: Statement) -> bool:
        """Sets what a statement sets; returns whether it is one that does. Raises ``RequestError`` for a bad one."""
        match statement:
            case SetProperty():
                check_setting(statement.name, statement.value)
                self.settings[statement.name] = statement.value
            case UnsetProperty():
                self.settings.pop(statement.name, None)
            case DefineVariable():
                self.variables[statement.name.upper()] = statement.value
            case UndefineVariable():
                self.variables.pop(statement.name.upper(), None)
            case _:
                return False
        return True

    def copy(self) -> Session:
        return Session(dict(self.settings), dict(self.variables))
