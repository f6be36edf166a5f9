"""Compares what Headrace gives for a case with what Kafka Streams gave: the first difference, or None."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable
from itertools import zip_longest
from types import ModuleType
from typing import Any

from golden_cases import dsl, papi
from golden_cases.case import Case
from golden_cases.drive import ENGINES, Observed, Outcome, Row, config, sort_key
from golden_cases.dsl_build import Effects
from headrace import Topology, TopologyError

_LONGEST = 400
_NAMES = re.compile(r"\b(?:Topic|Processor|node|StateStore|Source|Sink) (\S+)|(\w+)\(\)")


def first_difference(
    case: Case, functions: ModuleType, *, engine: str = "driver", describe_only: bool = False, strict: bool = False
) -> str | None:
    """Builds and runs one case; ``strict`` compares the count of dropped records wherever it was recorded."""
    effects: Effects = []
    if "build_error" in case:
        return _build_error(case, functions)
    topology = _build(case, functions, effects, optimization="none")
    found = _text("describe", case["describe"], str(topology.describe()))
    if found is None and "build_error_optimized" not in case and case["api"] == "dsl":
        optimized = _build(case, functions, [], optimization="all")
        expected = case["describe_optimized" if "describe_optimized" in case else "describe"]
        found = _text("describe optimized", expected, str(optimized.describe()))
    if found is not None or describe_only:
        return found
    observed = ENGINES[engine](case, topology, config(case), effects)
    return _run(case, observed, strict=strict) or _run_optimized(case, functions, engine)


def _build(case: Case, functions: ModuleType, effects: Effects, *, optimization: str) -> Topology:
    if case["api"] == "papi":
        return papi.build(case, functions)
    return dsl.build(case, functions, config(case, optimization=optimization), effects)


def _build_error(case: Case, functions: ModuleType) -> str | None:
    message = case["build_error"]["message"]
    try:
        _build(case, functions, [], optimization="none").describe()
    except TopologyError as error:
        names = [plain or call for plain, call in _NAMES.findall(message)]
        missing = [name for name in names if name not in str(error)]
        return f"build error: {missing} not named in {str(error)!r}; Kafka: {message}" if missing else None
    return f"build error: nothing raised; Kafka: {message}"


def _text(what: str, expected: str, got: str) -> str | None:
    if expected.rstrip() == got.rstrip():
        return None
    pairs = zip_longest(expected.rstrip().splitlines(), got.rstrip().splitlines())
    line, (wanted, found) = next((n, pair) for n, pair in enumerate(pairs, start=1) if pair[0] != pair[1])
    return _cut(f"{what} line {line}: expected {wanted!r}, got {found!r}")


def _run(case: Case, observed: Observed, *, strict: bool) -> str | None:
    found = _steps(case, case["expected"], observed)
    if found is not None and "expected_in_memory" in case:
        found = _steps(case, case["expected_in_memory"], observed) and found
    return found or _effects(case, observed) or _stores(case, observed) or _dropped(case, observed, strict=strict)


def _run_optimized(case: Case, functions: ModuleType, engine: str) -> str | None:
    if "describe_optimized" not in case:
        return None
    effects: Effects = []
    topology = _build(case, functions, effects, optimization="all")
    observed = ENGINES[engine](case, topology, config(case, optimization="all"), effects)
    expected = case["expected_optimized" if "expected_optimized" in case else "expected"]
    # The order inside a step was not recorded for the optimised topology unless its records differ.
    found = _steps(case, expected, observed, ordered="expected_optimized" in case)
    return found and f"optimized, {found}"


def _steps(case: Case, expected: list[Any], observed: Observed, *, ordered: bool = True) -> str | None:
    for index, (wanted, got) in enumerate(zip_longest(map(_outcome, expected), observed.steps)):
        same = wanted == got if ordered or isinstance(wanted, dict) else _same_records(wanted, got)
        if not same:
            # Cases end with their first error, so the steps of only one side can have run out.
            step = _step(case["steps"][index])
            failure = f" ({observed.failure!r})" if observed.failure is not None and got is observed.steps[-1] else ""
            return _cut(f"step {index} ({step}): expected {_show(wanted)}, got {_show(got)}{failure}")
    return None


def _same_records(wanted: Outcome | None, got: Outcome | None) -> bool:
    return isinstance(wanted, list) and isinstance(got, list) and Counter(wanted) == Counter(got)


def _outcome(recorded: Any) -> Outcome:
    if isinstance(recorded, dict):
        return recorded
    return [
        (
            row["topic"],
            row["key"],
            row["value"],
            row["ts"],
            tuple((name, text) for name, text in row.get("headers", ())),
        )
        for row in recorded
    ]


def _effects(case: Case, observed: Observed) -> str | None:
    none: list[Effects] = [[] for _ in observed.effects]
    for index, (wanted, got) in enumerate(zip_longest(case.get("effects", none), observed.effects)):
        if wanted != got:
            return _cut(f"effects of step {index}: expected {wanted}, got {got}")
    return None


def _stores(case: Case, observed: Observed) -> str | None:
    if observed.stores is None:
        return None
    for name, recorded in case["stores"].items():
        wanted = sorted(recorded, key=sort_key)
        got = observed.stores[name]
        if wanted != got:
            return _cut(f"store {name}: missing {_without(wanted, got)}, unexpected {_without(got, wanted)}")
    return None


def _without(rows: Iterable[Row], others: list[Row]) -> list[Row]:
    return [row for row in rows if row not in others]


def _dropped(case: Case, observed: Observed, *, strict: bool) -> str | None:
    if observed.dropped is None or observed.dropped == case["dropped"]:
        return None
    # Kafka's window stores count refused writes as drops, each kind in its own way.
    if not strict and any("windows" in node or node.get("type") == "window" for node in case["nodes"]):
        return None
    return f"dropped: expected {case['dropped']}, got {observed.dropped}"


def _step(step: dict[str, Any]) -> str:
    if "advance_ms" in step:
        return f"advance {step['advance_ms']}"
    return f"{step['topic']} {step['key']}={step['value']} @{step['ts']}"


def _show(outcome: Outcome | None) -> str:
    if outcome is None:
        return "no step"
    if isinstance(outcome, dict):
        return f"{outcome['error']} caused by {outcome['cause']}"
    shown = []
    for topic, key, value, ts, headers in outcome:
        tail = "".join(f" {name}:{text}" for name, text in headers)
        shown.append(f"{topic} {key}={value} @{ts}{tail}")
    return f"[{'; '.join(shown)}]"


def _cut(text: str) -> str:
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}…"
