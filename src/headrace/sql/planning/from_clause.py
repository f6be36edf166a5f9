"""The FROM clause: which sources are joined, on what, and which columns hold the key of the result."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from headrace.sql.catalog import SourceDefinition
from headrace.sql.errors import SqlStatementError
from headrace.sql.planning.names import synthetic_key
from headrace.sql.planning.sources import FromSource, Sources
from headrace.sql.planning.tree import references
from headrace.sql.syntax.formatter import expression_text
from headrace.sql.syntax.nodes import ColumnReference, Comparison, Expression, Logical
from headrace.sql.syntax.statements import Join, Query, Within

KINDS = {
    "INNER": "[INNER] JOIN",
    "LEFT": "LEFT [OUTER] JOIN",
    "RIGHT": "RIGHT [OUTER] JOIN",
    "OUTER": "[FULL] OUTER JOIN",
}


@dataclass(frozen=True, slots=True)
class JoinOn:
    """One join: of everything before it with one more source."""

    kind: str
    left_alias: str
    """The source to which the left expression belongs."""
    right: FromSource
    left_expression: Expression
    right_expression: Expression
    sides: tuple[Expression, Expression]
    """The condition as it was written, with the source of each column."""
    within: Within | None
    foreign_key: bool
    """Whether a table's rows look for their partner by something else than their key."""
    moves_left: bool
    """Whether the left side has another key than its expression, and gets it."""
    moves_right: bool
    """The same for the right side."""
    equal: tuple[Expression, ...]
    """Expressions that have the value of the result's key."""

    @property
    def computed(self) -> tuple[Expression, ...]:
        """The sides that are computed from rows; the others are keys already."""
        left = (self.left_expression,) if self.moves_left or self.foreign_key else ()
        return (*left, self.right_expression) if self.moves_right else left

    @property
    def condition(self) -> str:
        """The condition as messages show it."""
        return " = ".join(expression_text(side) for side in self.sides)

    def text(self, sources: Sources) -> str:
        """Returns the join as messages show it: the names of its sources, not their aliases."""
        left = sources[self.left_alias].definition.name
        return f"{left} {KINDS[self.kind]} {self.right.definition.name}"


@dataclass(frozen=True, slots=True)
class FromClause:
    """The sources of a query, and how they are joined, one after the other."""

    sources: Sources
    joins: tuple[JoinOn, ...]

    @property
    def viable_keys(self) -> tuple[ColumnReference, ...]:
        """Columns that hold the key of the join; none if it has a synthetic one."""
        return tuple(one for one in self.joins[-1].equal if isinstance(one, ColumnReference))

    @property
    def is_table(self) -> bool:
        """Whether the result is a table: that is so if all sources are."""
        return self.sources.items[0].is_table


def from_clause(query: Query, find: Callable[[str], SourceDefinition]) -> FromClause:
    """Returns the sources and joins of a query, checked against each other."""
    items = [FromSource(query.source.alias, find(query.source.name))]
    items += [FromSource(join.source.alias, find(join.source.name)) for join in query.joins]
    sources = Sources(tuple(items))
    _check_distinct(items)
    joins: list[JoinOn] = []
    conditions = [_condition(join, sources, number) for number, join in enumerate(query.joins)]
    for sides in conditions:
        _check_windows(*(sources[_source_of(side)] for side in sides))
    for join, sides, right in zip(query.joins, conditions, sources.items[1:], strict=True):
        joins.append(_join(join, sides, right, sources, joins))
    last = joins[-1] if joins else None
    if last and not last.foreign_key and not any(isinstance(one, ColumnReference) for one in last.equal):
        sources = replace(sources, synthetic_key=synthetic_key(sources.all_columns()))
    return FromClause(sources, tuple(joins))


def _check_distinct(items: list[FromSource]) -> None:
    names = [item.definition.name for item in items]
    for place, name in enumerate(names):
        if name in names[:place]:
            message = (
                f"Can not join '{name}' to '{name}': self joins are not yet supported. "
                f"N-way joins do not support multiple occurrences of the same source. Source: '{name}'."
            )
            raise SqlStatementError(message)


def _condition(join: Join, sources: Sources, number: int) -> tuple[Expression, Expression]:
    """Returns both sides of the condition, with the source of every column."""
    condition = join.condition
    if not isinstance(condition, Comparison):
        text = expression_text(condition)
        message = f"Unsupported join expression: {text}. Joins are only supported on an equality of two expressions."
        if isinstance(condition, Logical) and _is_equality(condition.left) and _is_equality(condition.right):
            message = f"Invalid join condition: joins on multiple conditions are not yet supported. Got {text}."
        raise SqlStatementError(message, position=condition.position)
    if not _is_equality(condition):
        message = f"Only equality join criteria is supported. Got {expression_text(condition)}."
        raise SqlStatementError(message, position=condition.position)
    known = Sources(sources.items[: number + 2])
    for reference in references(condition):
        if reference.source is not None and sources.find(reference.source) and not known.find(reference.source):
            # It is joined further on.
            raise known.unresolved(reference, "JOIN ON")
    sides = known.qualified(condition.left, "JOIN ON"), known.qualified(condition.right, "JOIN ON")
    left, right = (_only_source(side, condition) for side in sides)
    if left == right:
        message = (
            "Each side of the join must reference exactly one source and not the same source. "
            f"Left side references `{left}` and right references `{right}`"
        )
        raise SqlStatementError(message, position=condition.position)
    joined = sources.items[number + 1].alias
    if joined not in (left, right):
        message = (
            f"A join criteria is expected to reference the source (`{joined}`) in the FROM clause, instead the "
            f"right source references `{right}` and the left source references `{left}`"
        )
        raise SqlStatementError(message, position=condition.position)
    return sides


def _is_equality(condition: Expression) -> bool:
    return isinstance(condition, Comparison) and condition.operator == "="


def _source_of(side: Expression) -> str:
    return str(next(references(side)).source)


def _check_windows(left: FromSource, right: FromSource) -> None:
    """Raises unless both sources are windowed in ways that can be joined, or neither is."""
    windows = left.definition.window, right.definition.window
    if windows == (None, None):
        return
    if windows[0] is None or windows[1] is None:
        texts = [
            f"`{item.alias}` is {'not' if window is None else window.kind} windowed"
            for item, window in zip((left, right), windows, strict=True)
        ]
        message = "Can not join windowed source to non-windowed source.\n" + "\n".join(texts)
        raise SqlStatementError(message)
    kinds = [window.kind for window in windows if window is not None]
    if "SESSION" in kinds and kinds[0] != kinds[1]:
        message = (
            f"Incompatible windowed sources.\nLeft source: {kinds[0]}\nRight source: {kinds[1]}\n"
            "Session windowed sources can only be joined to other session windowed sources, and may still not "
            "result in expected behaviour as session bounds must be an exact match for the join to work\n"
            "Hopping and tumbling windowed sources can only be joined to other hopping and tumbling windowed "
            "sources"
        )
        raise SqlStatementError(message)


def _join(
    join: Join,
    sides: tuple[Expression, Expression],
    right: FromSource,
    sources: Sources,
    before: list[JoinOn],
) -> JoinOn:
    of_right = any(reference.source == right.alias for reference in references(sides[0]))
    left_side, right_side = (sides[1], sides[0]) if of_right else sides
    first = sources.items[0]
    left_equal = before[-1].equal if before else _key_of(first)
    on_key = left_side in left_equal or _key_of(sources[_source_of(left_side)]) == (left_side,)
    foreign = right.is_table and first.is_table and not on_key
    made = JoinOn(
        join.kind,
        _source_of(left_side),
        right,
        left_side,
        right_side,
        sides,
        join.within,
        foreign,
        moves_left=not foreign and left_side not in left_equal,
        moves_right=_key_of(right) != (right_side,),
        equal=(),
    )
    return replace(made, equal=_equal(made, left_equal))


def _only_source(side: Expression, condition: Comparison) -> str:
    aliases = {reference.source for reference in references(side)}
    if len(aliases) != 1:
        message = (
            f"Invalid comparison expression '{expression_text(side)}' in join '{expression_text(condition)}'. "
            "Each side of the join comparision must contain references from exactly one source."
        )
        raise SqlStatementError(message, position=condition.position)
    return str(aliases.pop())


def _key_of(source: FromSource) -> tuple[Expression, ...]:
    key = source.definition.schema.key
    return (ColumnReference(key[0].name, source.alias),) if len(key) == 1 else ()


def _equal(join: JoinOn, left_equal: tuple[Expression, ...]) -> tuple[Expression, ...]:
    if join.kind == "OUTER":
        return ()
    if join.foreign_key:
        return left_equal
    both = (join.left_expression, join.right_expression)
    # What equals the left expression equals the key, too: the sources of a chain of joins share one key.
    return tuple(dict.fromkeys((*left_equal, *both))) if join.left_expression in left_equal else both


def check_joins(clause: FromClause) -> None:
    """Raises if sources of these kinds cannot be joined in this way, on these columns."""
    left_is_table = clause.is_table
    for join in clause.joins:
        if left_is_table and not join.right.is_table:
            message = (
                "Invalid join order: table-stream joins are not supported; only stream-table joins. "
                f"Got {join.text(clause.sources)}."
            )
            raise SqlStatementError(message)
        if left_is_table:
            _check_table_table(join, clause)
        elif join.right.is_table:
            _check_stream_table(join, clause)


def _on_right_key(join: JoinOn) -> bool:
    return _key_of(join.right) == (join.right_expression,)


def _check_stream_table(join: JoinOn, clause: FromClause) -> None:
    if join.kind == "OUTER":
        message = (
            f"Invalid join type: full-outer join not supported for stream-table join. Got {join.text(clause.sources)}."
        )
        raise SqlStatementError(message)
    if not _on_right_key(join):
        message = (
            "Invalid join condition: stream-table joins require to join on the table's primary key. "
            f"Got {join.condition}."
        )
        raise SqlStatementError(message)


def _check_table_table(join: JoinOn, clause: FromClause) -> None:
    if not _on_right_key(join):
        message = (
            "Invalid join condition: table-table joins require to join on the primary key of the right input table. "
            f"Got {join.condition}."
        )
        raise SqlStatementError(message)
    if join.moves_left:
        before = clause.joins[clause.joins.index(join) - 1]
        keys = [clause.sources.internal_name(one) for one in before.equal if isinstance(one, ColumnReference)]
        column = keys[0] if keys else synthetic_key(clause.sources.all_columns())
        text = expression_text(clause.sources.internal(join.left_expression))
        message = (
            "Cannot repartition a TABLE source. If this is a join, make sure that the criteria uses the TABLE's key "
            f"column {column} instead of [{text}]. Got {join.condition}."
        )
        raise SqlStatementError(message)
    if not join.foreign_key:
        return
    if join.kind == "OUTER":
        message = (
            "Invalid join type: full-outer join not supported for foreign-key table-table join. "
            f"Got {join.text(clause.sources)}."
        )
        raise SqlStatementError(message)
    if join is not clause.joins[0]:
        message = (
            "Invalid join condition: foreign-key table-table joins are not supported as part of n-way joins. "
            f"Got {join.condition}."
        )
        raise SqlStatementError(message)


def check_join_kinds(clause: FromClause) -> None:
    """Raises if a join has a WITHIN clause that it must not have, lacks one, or is of a kind that cannot be run."""
    for join in clause.joins:
        if not clause.is_table and not join.right.is_table:
            if join.within is None:
                message = (
                    "Stream-Stream joins must have a WITHIN clause specified. None was provided. "
                    "To learn about how to specify a WITHIN clause with a stream-stream join, please visit: "
                    "https://docs.ksqldb.io/en/latest/developer-guide/joins/join-streams-and-tables"
                )
                raise SqlStatementError(message)
            continue
        if join.within is not None:
            what, short, again = (
                ("Table-Table", "i.e.", "Table-Table join") if clause.is_table else ("Stream-Table", "ie.", "join")
            )
            message = (
                f"A window definition was provided for a {what} join. These joins are not windowed. Please drop the "
                f"window definition ({short} the WITHIN clause) and try to execute your {again} again."
            )
            raise SqlStatementError(message, position=join.within.position)
        if join.kind == "RIGHT" and not clause.is_table:
            message = (
                f"Invalid join type encountered: {KINDS[join.kind]}. A stream is joined with a table by [INNER] JOIN "
                f"or LEFT [OUTER] JOIN. Got {join.text(clause.sources)}."
            )
            raise SqlStatementError(message)
        if join.kind == "RIGHT" and join.foreign_key:
            message = "RIGHT OUTER JOIN on a foreign key is not supported"
            raise SqlStatementError(message)
