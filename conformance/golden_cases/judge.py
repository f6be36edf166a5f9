"""Says whether a run passes: as recorded, or within the declared rules."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations
from types import ModuleType
from typing import Any

from golden_cases.case import Case
from golden_cases.compare import (
    Variant,
    building_difference,
    cut,
    optimizations,
    outcome,
    run_difference,
    steps_difference,
    store_difference,
    variant,
)
from golden_cases.drive import ENGINES, Observed, Row, run_batched, run_without, sort_key
from golden_cases.effects import Effects
from golden_cases.graph import CaseGraph
from golden_cases.rules import RULES, Keeps, Rule
from golden_cases.undone import Cause, Causes

# The records of one topic by step.
Steps = list[list[tuple[Any, ...]]]


@dataclass(frozen=True)
class Touched:
    """A topic or a store that is not as recorded, record by record."""

    name: str
    rules: frozenset[str]
    """Those that touch it."""
    promised: bool
    """Whether the rules say that it keeps something, which was checked."""
    rows: int
    """Of its table: a row per key with its last value, those of either side."""
    rows_as_recorded: int

    @property
    def as_recorded(self) -> bool:
        """Whether it ends as recorded."""
        return self.rows == self.rows_as_recorded


@dataclass(frozen=True)
class Verdict:
    """None as the difference says that the case passes, perhaps thanks to some rules."""

    difference: str | None
    rules: frozenset[str] = frozenset()
    touched: tuple[Touched, ...] = ()

    def __and__(self, other: Verdict) -> Verdict:
        """Returns the verdict on two runs of a case."""
        difference = other.difference if self.difference is None else self.difference
        return Verdict(difference, self.rules | other.rules, self.touched + other.touched)


def judge_case(
    case: Case, functions: ModuleType, *, engine: str = "driver", describe_only: bool = False, strict: bool = False
) -> Verdict:
    """Builds and runs one case in this process."""
    found = building_difference(case, functions)
    if found is not None or describe_only or "build_error" in case:
        return Verdict(found)
    verdict = Verdict(None)
    for optimization in optimizations(case):
        effects: Effects = []
        run = variant(case, functions, effects, optimization)
        observed = ENGINES[engine](case, run.topology, run.config, effects)
        if engine == "batched":
            verdict &= judge_run(run, observed, Again(case, functions, optimization), strict=strict)
        else:
            verdict &= Verdict(run_difference(run, observed, strict=strict))
    return verdict


@dataclass(frozen=True)
class Again:
    """Runs a case once more, in this process."""

    case: Case
    functions: ModuleType
    optimization: str

    def batched(self) -> Observed:
        """Returns what the batched driver gives."""
        effects: Effects = []
        run = variant(self.case, self.functions, effects, self.optimization)
        return run_batched(self.case, run.topology, run.config, effects)

    def without(self, causes: Causes) -> Observed:
        """Returns what it gives without some causes of differences."""
        effects: Effects = []
        run = variant(self.case, self.functions, effects, self.optimization)
        return run_without(causes, self.case, run.topology, run.config, effects)


def judge_run(run: Variant, observed: Observed, again: Again, *, strict: bool = False) -> Verdict:
    """Judges a run of micro-batches, of the batched driver or of any other engine."""
    found = run_difference(run, observed, strict=strict)
    if found is None:
        return Verdict(None)
    if run.throws or any(isinstance(step, dict) for step in observed.steps):
        return Verdict(f"no rule is about errors: {found}")
    in_order = again.without(frozenset())
    for who, wanted in (("the batched driver", again.batched()), ("a micro-batch record by record", in_order)):
        for what in ("steps", "effects", "stores", "dropped"):
            if getattr(wanted, what) != getattr(observed, what):
                return Verdict(cut(f"{found}; {who} has other {what}: {getattr(wanted, what)}"))
    return _under_rules(run, observed, again, found, strict=strict)


def _under_rules(run: Variant, observed: Observed, again: Again, found: str, *, strict: bool) -> Verdict:
    graph = CaseGraph(run.case, run.topology)
    applicable = [rule for rule in RULES if rule.touches(graph)]
    if not applicable:
        return Verdict(f"no rule applies: {found}")
    for causes in _sets_of(rule.cause for rule in applicable):
        undone = again.without(causes)
        if run_difference(run, undone, strict=strict) is None:
            rules = [rule for rule in applicable if rule.cause in causes]
            expected = next(steps for steps in run.expected if steps_difference(run, steps, undone) is None)
            return _within(rules, graph, run, list(map(outcome, expected)), observed, found)
    names = ", ".join(rule.name for rule in applicable)
    return Verdict(f"it does not go away without the causes of the rules that apply ({names}): {found}")


def _sets_of(causes: Iterable[Cause]) -> Iterator[Causes]:
    """Yields the sets of causes, small ones first: what explains a difference shall be no more than is needed."""
    several = sorted(set(causes), key=lambda cause: cause.name)
    for size in range(1, len(several) + 1):
        yield from map(frozenset, combinations(several, size))


def _within(
    rules: list[Rule], graph: CaseGraph, run: Variant, expected: list[Any], observed: Observed, found: str
) -> Verdict:
    """Checks that nothing differs but what the rules touch, and that it keeps what they say."""
    touched: list[Touched] = []
    for topic in run.case["outputs"]:
        wanted, got = _of_topic(topic, expected), _of_topic(topic, observed.steps)
        if _same(wanted, got, ordered=run.ordered):
            continue
        mine = [rule for rule in rules if topic in graph.topics(rule.touched(graph))]
        if not mine:
            return Verdict(f"no rule touches {topic}: {found}")
        promised = not any(topic in graph.topics(rule.lost(graph)) for rule in mine)
        if promised:
            broken = [rule for rule in mine if not _KEPT[rule.keeps](wanted, got)]
            # What one rule keeps another may not: the weakest promise is the one that must hold.
            if len(broken) == len(mine):
                promises = ", ".join(f"{rule.name} keeps {rule.keeps.value}" for rule in mine)
                return Verdict(cut(f"{topic}: {promises}: {found}"))
        touched.append(_touched(topic, mine, _table(wanted), _table(got), promised=promised))
    for store in _different_stores(run, observed):
        mine = [rule for rule in rules if store in graph.stores(rule.touched(graph))]
        if not mine:
            return Verdict(f"no rule touches {store}: {found}")
        if all(rule.keeps is Keeps.TABLE and store not in graph.stores(rule.lost(graph)) for rule in mine):
            return Verdict(cut(f"{_names(mine)}: the store {store} must keep its rows: {found}"))
        assert observed.stores is not None, "a store that differs has been read"
        rows, found_rows = _by_row(run.case["stores"][store]), _by_row(observed.stores[store])
        touched.append(_touched(store, mine, rows, found_rows, promised=False))
    # Effects and counts follow the records: where only they differ, all of the rules have done it.
    used = {name for each in touched for name in each.rules} or {rule.name for rule in rules}
    return Verdict(None, frozenset(used), tuple(touched))


def _names(rules: Iterable[Rule]) -> str:
    return ", ".join(rule.name for rule in rules)


def _different_stores(run: Variant, observed: Observed) -> list[str]:
    # What the stores of the optimised topology hold was not recorded.
    if run.optimized or observed.stores is None:
        return []
    return [name for name in run.case["stores"] if store_difference(run.case, observed, name)]


def _of_topic(topic: str, steps: list[Any]) -> Steps:
    return [[row for row in step if row[0] == topic] for step in steps]


def _same(wanted: Steps, got: Steps, *, ordered: bool = False) -> bool:
    return wanted == got if ordered else list(map(Counter, wanted)) == list(map(Counter, got))


def _table(steps: Steps) -> dict[Any, Any]:
    """Returns the last value per key; a key that was deleted is as if it had never been there."""
    rows = {key: value for step in steps for _, key, value, _, _ in step}
    return {key: value for key, value in rows.items() if value is not None}


def _by_row(rows: Iterable[Row]) -> dict[Any, Any]:
    # Rows of a store are told apart as a whole; how many there are counts, not which key differs.
    return {sort_key(row): row for row in rows}


def _touched(
    name: str, rules: Iterable[Rule], wanted: dict[Any, Any], got: dict[Any, Any], *, promised: bool
) -> Touched:
    keys = wanted.keys() | got.keys()
    same = sum(key in wanted and key in got and wanted[key] == got[key] for key in keys)
    return Touched(name, frozenset(rule.name for rule in rules), promised, len(keys), same)


def _keys(steps: Steps) -> set[Any]:
    return {row[1] for step in steps for row in step}


def _without_values(steps: Steps) -> Steps:
    return [[(key, timestamp_ms, headers) for _, key, _, timestamp_ms, headers in step] for step in steps]


_KEPT: dict[Keeps, Callable[[Steps, Steps], bool]] = {
    Keeps.TABLE: lambda wanted, got: _table(wanted) == _table(got),
    Keeps.RECORDS: _same,
    Keeps.ALL_BUT_VALUES: lambda wanted, got: _without_values(wanted) == _without_values(got),
    Keeps.KEYS: lambda wanted, got: _keys(wanted) == _keys(got),
    Keeps.NOTHING: lambda _wanted, _got: True,
}


def summary(verdicts: Iterable[Verdict]) -> Iterator[str]:
    """Yields a line per rule, and one for all: how many cases fell under it, and how what it touched has ended."""
    several = [verdict for verdict in verdicts if verdict.rules]
    for rule in RULES:
        mine = [verdict for verdict in several if rule.name in verdict.rules]
        if mine:
            touched = [each for verdict in mine for each in verdict.touched if rule.name in each.rules]
            yield f"rule {rule.name}: {len(mine)} cases, {_tables(touched)}"
    if several:
        yield (
            f"under rules: {len(several)} cases, {_tables([each for verdict in several for each in verdict.touched])}; "
            "without the causes all is as recorded"
        )


def _tables(touched: Sequence[Touched]) -> str:
    return (
        f"{len(touched)} topics and stores differ on the way; "
        f"{sum(each.promised for each in touched)} keep what the rules say, "
        f"{sum(each.as_recorded for each in touched)} end as recorded, "
        f"with {sum(each.rows_as_recorded for each in touched)} of {sum(each.rows for each in touched)} rows"
    )
