"""Says whether a run passes: as recorded, or within the declared rules."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial
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
    store_difference,
    variant,
)
from golden_cases.drive import ENGINES, Observed, run_batched
from golden_cases.effects import Effects
from golden_cases.graph import CaseGraph
from golden_cases.rules import RULES, Rule

_NO_RULES: frozenset[str] = frozenset()


@dataclass(frozen=True)
class Verdict:
    """None as the difference says that the case passes, perhaps thanks to some rules."""

    difference: str | None
    rules: frozenset[str] = _NO_RULES


def judge_case(
    case: Case, functions: ModuleType, *, engine: str = "driver", describe_only: bool = False, strict: bool = False
) -> Verdict:
    """Builds and runs one case in this process."""
    found = building_difference(case, functions)
    if found is not None or describe_only or "build_error" in case:
        return Verdict(found)
    rules: set[str] = set()
    for optimization in optimizations(case):
        effects: Effects = []
        run = variant(case, functions, effects, optimization)
        observed = ENGINES[engine](case, run.topology, run.config, effects)
        if engine == "batched":
            verdict = judge_run(run, observed, partial(_itself, observed), strict=strict)
        else:
            verdict = Verdict(run_difference(run, observed, strict=strict))
        if verdict.difference is not None:
            return verdict
        rules |= verdict.rules
    return Verdict(None, frozenset(rules))


def _itself(observed: Observed) -> Observed:
    return observed


def judge_run(run: Variant, observed: Observed, reference: Callable[[], Observed], *, strict: bool = False) -> Verdict:
    """Judges a run of micro-batches; ``reference`` is asked for what the batched driver gives if it must be known."""
    found = run_difference(run, observed, strict=strict)
    if found is None:
        return Verdict(None)
    wanted = reference()
    for what in ("steps", "effects", "stores", "dropped"):
        if getattr(wanted, what) != getattr(observed, what):
            return Verdict(cut(f"{found}; the batched driver has other {what}: {getattr(wanted, what)}"))
    verdicts = [_under_rules(run, list(map(outcome, expected)), observed, found) for expected in run.expected]
    return next((verdict for verdict in verdicts if verdict.difference is None), verdicts[0])


def reference_run(case: Case, functions: ModuleType, *, optimized: bool) -> Observed:
    """Returns what the batched driver gives."""
    effects: Effects = []
    run = variant(case, functions, effects, "all" if optimized else "none")
    return run_batched(case, run.topology, run.config, effects)


def _under_rules(run: Variant, expected: list[Any], observed: Observed, found: str) -> Verdict:
    graph = CaseGraph(run.case, run.topology)
    rules = [rule for rule in RULES if rule.touches(graph)]
    if not rules:
        return Verdict(f"no rule applies: {found}")
    if any(isinstance(step, dict) for step in (*expected, *observed.steps)):
        return Verdict(f"no rule is about errors: {found}")
    different = {topic for topic in run.case["outputs"] if _differs(run, topic, expected, observed.steps)}
    stores = {
        name
        for name in run.case.get("stores", ())
        if not run.optimized and observed.stores is not None and store_difference(run.case, observed, name)
    }
    used = {
        rule.name
        for rule in rules
        if graph.topics(rule.touched(graph)) & different or graph.stores(rule.touched(graph)) & stores
    }
    touched = _all(rule.touched(graph) for rule in rules)
    unsettled = _all(rule.unsettled(graph) for rule in rules)
    undeclared = (different - graph.topics(touched)) | (stores - graph.stores(touched))
    if undeclared:
        return Verdict(f"no rule touches {sorted(undeclared)}: {found}")
    for topic in sorted(different - graph.topics(unsettled)):
        wanted, got = _table(topic, expected), _table(topic, observed.steps)
        if wanted != got:
            return Verdict(cut(f"the rules leave the table in {topic} alone: {_unlike(wanted, got)}; {found}"))
    lost = stores - graph.stores(unsettled)
    if lost:
        return Verdict(f"the rules leave the tables in {sorted(lost)} alone: {found}")
    # What remains are effects and counts, which follow the records.
    return Verdict(None, frozenset(used or {rule.name for rule in rules}))


def _all(sets: Iterable[set[str]]) -> set[str]:
    return {name for each in sets for name in each}


def _differs(run: Variant, topic: str, expected: list[Any], got: list[Any]) -> bool:
    wanted, found = _of_topic(topic, expected), _of_topic(topic, got)
    if run.ordered:
        return wanted != found
    return [Counter(step) for step in wanted] != [Counter(step) for step in found]


def _of_topic(topic: str, steps: list[Any]) -> list[list[tuple[Any, ...]]]:
    return [[row for row in step if row[0] == topic] for step in steps]


def _table(topic: str, steps: list[Any]) -> dict[Any, Any]:
    """Returns the last value per key; a key that was deleted is as if it had never been there."""
    rows = {key: value for step in steps for name, key, value, _, _ in step if name == topic}
    return {key: value for key, value in rows.items() if value is not None}


def _unlike(wanted: dict[Any, Any], got: dict[Any, Any]) -> str:
    keys = sorted({key for key, _ in wanted.items() ^ got.items()}, key=repr)
    return ", ".join(f"{key}: expected {wanted.get(key)}, got {got.get(key)}" for key in keys)


def used_rules(verdicts: Iterable[Verdict]) -> dict[Rule, int]:
    """Returns how many cases fell under each rule."""
    counted = Counter(name for verdict in verdicts for name in verdict.rules)
    return {rule: counted[rule.name] for rule in RULES if counted[rule.name]}
