"""Compiled expressions over rows: several make a new row, one makes a filter."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from typing import Any

from headrace.sql.errors import SqlStatementError
from headrace.sql.expressions.typed import TypedExpression

PROCESSING_LOG = logging.getLogger("headrace.sql.processing")
"""Where expressions that fail on a row are reported; one line per failure."""

# Python reads 200 brackets in one another, fewer where a frame of its own is around them.
_DEEPEST = 150


class _Compiled:
    """Source and constants travel; the code object is made where it runs, once."""

    __slots__ = ("_function", "constants", "source", "texts")

    def __init__(self, source: str, constants: dict[str, object], texts: tuple[str, ...]) -> None:
        self.source = source
        """The Python source of the function."""
        self.constants = constants
        self.texts = texts
        """What each expression is called in the processing log."""
        self._function: Callable[[Sequence[object]], Any] | None = None
        if source.count("(") + source.count("[") >= _DEEPEST:
            self._check_depth()

    def _check_depth(self) -> None:
        """Compiles at once what may be nested deeper than Python can, so that whoever wrote it is told."""
        try:
            compile(self.source, f"<{type(self).__name__}>", "exec")
        except (SyntaxError, MemoryError, RecursionError) as error:
            message = "The statement is nested too deeply; write parts of it as columns of a stream of their own."
            raise SqlStatementError(message) from error

    @property
    def function(self) -> Callable[[Sequence[object]], Any]:
        """The compiled function itself: the quickest way to call it many times."""
        if self._function is None:
            names: dict[str, Any] = {**self.constants, "failed": self._failed}
            exec(compile(self.source, f"<{type(self).__name__}>", "exec"), names)
            self._function = names["function"]
        return self._function

    def variant(self, parameters: str, guard: str) -> Callable[..., Any]:
        """Returns the function with other parameters, one of them ``row``, and a statement before its own.

        >>> from headrace.sql.types import INTEGER
        >>> first = RowFunction([TypedExpression(INTEGER, "row[0]")])
        >>> first.variant("key, row", "if row is None: return None")("k", None) is None
        True
        """
        names: dict[str, Any] = {**self.constants, "failed": self._failed}
        body = self.source.partition("\n")[2]
        exec(compile(f"def function({parameters}):\n    {guard}\n{body}", f"<{type(self).__name__}>", "exec"), names)
        variant: Callable[..., Any] = names["function"]
        return variant

    def _failed(self, index: int, error: Exception) -> None:
        PROCESSING_LOG.warning("expression %s: %s: %s", self.texts[index], type(error).__name__, error)

    def __getstate__(self) -> tuple[str, dict[str, object], tuple[str, ...]]:
        return (self.source, self.constants, self.texts)

    def __setstate__(self, state: tuple[str, dict[str, object], tuple[str, ...]]) -> None:
        self.source, self.constants, self.texts = state
        self._function = None


class RowFunction(_Compiled):
    """A row to a list of values, one per expression. An expression that raises gives NULL and is reported.

    >>> from headrace.sql.types import INTEGER
    >>> twice = RowFunction([TypedExpression(INTEGER, "row[0] * 2", can_fail=True), TypedExpression(INTEGER, "row[0]")])
    >>> twice([4])
    [8, 4]
    """

    __slots__ = ()

    def __init__(self, expressions: Sequence[TypedExpression], texts: Sequence[str] = ()) -> None:
        constants: dict[str, object] = {}
        lines = ["def function(row):"]
        values: list[str] = []
        for index, expression in enumerate(expressions):
            constants.update(expression.constants)
            if not expression.can_fail:
                values.append(expression.code)
                continue
            lines += [
                "    try:",
                f"        v{index} = {expression.code}",
                "    except Exception as error:",
                f"        v{index} = failed({index}, error)",
            ]
            values.append(f"v{index}")
        lines.append(f"    return [{', '.join(values)}]")
        names = tuple(texts) or tuple(expression.code for expression in expressions)
        super().__init__("\n".join(lines), constants, names)

    def __call__(self, row: Sequence[object]) -> list[object]:
        values: list[object] = (self._function or self.function)(row)
        return values


class RowPredicate(_Compiled):
    """Whether a row passes. NULL does not; neither does a row on which the expression raises, which is reported."""

    __slots__ = ()

    def __init__(self, expression: TypedExpression, text: str = "") -> None:
        truth = f"{expression.code} is True" if expression.nullable else expression.code
        if expression.can_fail:
            source = (
                "def function(row):\n"
                "    try:\n"
                f"        return {truth}\n"
                "    except Exception as error:\n"
                "        failed(0, error)\n"
                "        return False"
            )
        else:
            source = f"def function(row):\n    return {truth}"
        super().__init__(source, dict(expression.constants), (text or expression.code,))

    def __call__(self, row: Sequence[object]) -> bool:
        passes: bool = (self._function or self.function)(row)
        return passes
