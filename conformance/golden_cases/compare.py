"""Compares what Headrace gives for a case with what Kafka Streams gave: the first difference, or None."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import zip_longest
from types import ModuleType
from typing import Any

from golden_cases import dsl, papi
from golden_cases.case import Case
from golden_cases.drive import Observed, Outcome, Row, config, sort_key
from golden_cases.effects import Effects, EffectSink
from headrace import StreamsConfig, Topology, TopologyError

_LONGEST = 400
_NAMES = re.compile(r"\b(?:Topic|Processor|node|StateStore|Source|Sink) (\S+)|(\w+)\(\)")


@dataclass(frozen=True)
class Variant:
    """A case as it is built for a run: as it is, or optimised."""

    case: Case
    topology: Topology
    config: StreamsConfig
    optimized: bool

    @property
    def expected(self) -> list[list[Any]]:
        """What the steps may give: either is right."""
        if not self.optimized:
            return [self.case[name] for name in ("expected", "expected_in_memory") if name in self.case]
        return [self.case["expected_optimized" if "expected_optimized" in self.case else "expected"]]

    @property
    def ordered(self) -> bool:
        # The order inside a step was not recorded for the optimised topology unless its records differ.
        return not self.optimized or "expected_optimized" in self.case

    @property
    def throws(self) -> bool:
        """Whether a step ended with an error."""
        return any(isinstance(step, dict) for steps in self.expected for step in steps)


def build(case: Case, functions: ModuleType, effects: EffectSink, *, optimization: str) -> Topology:
    if case["api"] == "papi":
        return papi.build(case, functions)
    return dsl.build(case, functions, config(case, optimization=optimization), effects)


def optimizations(case: Case) -> Iterator[str]:
    """Returns the values of ``topology.optimization`` for which a case records results."""
    yield "none"
    if "describe_optimized" in case:
        yield "all"


def variant(case: Case, functions: ModuleType, effects: EffectSink, optimization: str) -> Variant:
    topology = build(case, functions, effects, optimization=optimization)
    return Variant(case, topology, config(case, optimization=optimization), optimization == "all")


def building_difference(case: Case, functions: ModuleType) -> str | None:
    """Builds a case and compares the description of its topology, or the error that building it must give."""
    if "build_error" in case:
        return _build_error(case, functions)
    topology = build(case, functions, [], optimization="none")
    found = _text("describe", case["describe"], str(topology.describe()))
    if found is None and "build_error_optimized" not in case and case["api"] == "dsl":
        optimized = build(case, functions, [], optimization="all")
        expected = case["describe_optimized" if "describe_optimized" in case else "describe"]
        found = _text("describe optimized", expected, str(optimized.describe()))
    return found


def run_difference(run: Variant, observed: Observed, *, strict: bool = False) -> str | None:
    """Compares what a run gave; ``strict`` compares the count of dropped records wherever it was recorded."""
    differences = [steps_difference(run, expected, observed) for expected in run.expected]
    found = None if None in differences else differences[0]
    if run.optimized:
        return found and f"optimized, {found}"
    case = run.case
    return found or _effects(case, observed) or _stores(case, observed) or _dropped(case, observed, strict=strict)


def _build_error(case: Case, functions: ModuleType) -> str | None:
    message = case["build_error"]["message"]
    try:
        build(case, functions, [], optimization="none").describe()
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
    return cut(f"{what} line {line}: expected {wanted!r}, got {found!r}")


def steps_difference(run: Variant, expected: list[Any], observed: Observed) -> str | None:
    for index, (wanted, got) in enumerate(zip_longest(map(outcome, expected), observed.steps)):
        same = wanted == got if run.ordered or isinstance(wanted, dict) else _same_records(wanted, got)
        if not same:
            # Cases end with their first error, so the steps of only one side can have run out.
            step = _step(run.case["steps"][index])
            failure = f" ({observed.failure!r})" if observed.failure is not None and got is observed.steps[-1] else ""
            return cut(f"step {index} ({step}): expected {_show(wanted)}, got {_show(got)}{failure}")
    return None


def _same_records(wanted: Outcome | None, got: Outcome | None) -> bool:
    return isinstance(wanted, list) and isinstance(got, list) and Counter(wanted) == Counter(got)


def outcome(recorded: Any) -> Outcome:
    """Returns a recorded step in the form in which runs note theirs."""
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
            return cut(f"effects of step {index}: expected {wanted}, got {got}")
    return None


def _stores(case: Case, observed: Observed) -> str | None:
    if observed.stores is None:
        return None
    differences = (store_difference(case, observed, name) for name in case["stores"])
    return next((found for found in differences if found is not None), None)


def store_difference(case: Case, observed: Observed, name: str) -> str | None:
    assert observed.stores is not None, "the caller has checked"
    wanted = sorted(case["stores"][name], key=sort_key)
    got = observed.stores[name]
    if wanted == got:
        return None
    return cut(f"store {name}: missing {_without(wanted, got)}, unexpected {_without(got, wanted)}")


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


def cut(text: str) -> str:
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}…"
