"""The golden cases that the project carries: topologies with the answers that Apache Kafka Streams gave."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

from golden import main
from golden_cases import judge
from golden_cases.case import Case, case_lines, functions_path, left_out, load_functions, parse
from golden_cases.compare import optimizations, run_difference, variant
from golden_cases.drive import ENGINES
from golden_cases.graph import CaseGraph
from golden_cases.judge import Again, Verdict, judge_case
from golden_cases.rules import RULES, Keeps
from golden_cases.undone import Cause

FOLDER = Path(__file__).parent / "golden"
FILES = ("scenarios.jsonl.gz", "cases.jsonl.gz", "found.jsonl.gz")
CHUNK = 20


def chunks() -> list[tuple[str, int]]:
    counts = {name: sum(1 for _ in case_lines(FOLDER / name)) for name in FILES}
    return [(name, start) for name, count in counts.items() for start in range(0, count, CHUNK)]


def own_cases() -> list[Case]:
    cases = [parse(line) for name in FILES for line in case_lines(FOLDER / name)]
    return [case for case in cases if str(case["id"]) not in left_out()]


def scenario(case_id: str) -> Case:
    cases = map(parse, case_lines(FOLDER / "scenarios.jsonl.gz"))
    return next(case for case in cases if case["id"] == case_id)


def difference(case: Case, engine: str = "driver") -> str | None:
    return verdict(case, engine).difference


def verdict(case: Case, engine: str = "driver") -> Verdict:
    return judge_case(case, load_functions(FOLDER / "functions.py"), engine=engine)


@pytest.mark.parametrize("engine", sorted(ENGINES))
@pytest.mark.parametrize(("name", "start"), chunks())
def test_golden_cases_give_what_kafka_streams_gave(name: str, start: int, engine: str) -> None:
    skipped = left_out()
    cases = [parse(line) for line in list(case_lines(FOLDER / name))[start : start + CHUNK]]
    found = {case["id"]: difference(case, engine) for case in cases if str(case["id"]) not in skipped}
    assert {case_id: text for case_id, text in found.items() if text is not None} == {}


def test_at_most_ten_cases_are_left_out_each_with_a_reason() -> None:
    reasons = left_out()
    assert len(reasons) <= 10
    assert all(len(reason) > 20 for reason in reasons.values())


def test_a_changed_record_is_reported_with_its_step() -> None:
    case = scenario("table-filter")
    index, step = next((index, step) for index, step in enumerate(case["expected"]) if step)
    step[0]["ts"] += 1
    assert (difference(case) or "").startswith(f"step {index} ")


def test_a_changed_description_is_reported_with_its_line() -> None:
    case = scenario("table-filter")
    case["describe"] = case["describe"].replace("Sub-topology: 0", "Sub-topology: 1")
    assert (difference(case) or "").startswith("describe line 2: expected '   Sub-topology: 1'")


def test_a_changed_store_is_reported_with_the_row() -> None:
    case = scenario("table-filter-stored")
    name = next(name for name, rows in case["stores"].items() if rows)
    case["stores"][name].pop()
    assert (difference(case) or "").startswith(f"store {name}: missing [], unexpected [[")


def test_a_changed_error_is_reported() -> None:
    case = scenario("suppress-time-limit-shut-down")
    case["expected"][-1]["cause"] = "NullPointerException"
    assert "expected StreamsException caused by NullPointerException" in (difference(case) or "")


def test_an_error_while_building_must_name_what_kafka_names() -> None:
    case = scenario("papi-unknown-parent")
    case["build_error"]["message"] = "Invalid topology: Parent node somebody is unknown."
    assert (difference(case) or "").startswith("build error: ['somebody'] not named in")


def test_the_command_ends_with_a_summary_and_status_1_on_failure(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    good, bad = scenario("table-filter"), scenario("table-filter")
    bad["id"] = "bad"
    bad["describe"] = "Topologies:"
    file = tmp_path / "cases.jsonl"
    file.write_text(f"{json.dumps(good)}\n{json.dumps(bad)}\n")
    assert functions_path(file) == FOLDER.resolve() / "functions.py"
    assert main([str(file), "--jobs", "1"]) == 1
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith("bad: describe line 2: ")
    assert lines[-1] == "1 passed, 1 failed"
    assert main([str(file), "--ids", "table-filter", "--jobs", "1"]) == 0


def test_a_difference_of_the_batched_driver_falls_under_a_declared_rule() -> None:
    found = verdict(scenario("one-stream-time-for-all"), "batched")
    assert found.difference is None
    assert found.rules == {"stream-time-values"}


def test_a_difference_that_no_rule_explains_is_reported() -> None:
    case = scenario("table-filter")
    step = next(step for step in case["expected"] if step)
    step[0]["ts"] += 1
    assert (difference(case, "batched") or "").startswith("no rule applies: step ")


def test_a_rule_does_not_excuse_what_stays_without_its_cause() -> None:
    case = scenario("word-count-cached")
    assert verdict(case, "batched").rules == {"commit-interval"}
    case["expected"][-1][-1]["ts"] += 1
    assert (difference(case, "batched") or "").startswith(
        "it does not go away without the causes of the rules that apply (commit-interval): step "
    )


def test_a_rule_must_keep_what_it_says(monkeypatch: pytest.MonkeyPatch) -> None:
    stricter = [replace(rule, keeps=Keeps.RECORDS) for rule in RULES]
    monkeypatch.setattr(judge, "RULES", stricter)
    found = difference(scenario("word-count-cached"), "batched") or ""
    assert found.startswith("counts: commit-interval keeps the records of each step, perhaps in another order: step ")


def test_a_rule_does_not_excuse_a_topic_that_it_does_not_touch(monkeypatch: pytest.MonkeyPatch) -> None:
    def one_sink(graph: CaseGraph) -> set[str]:
        return {name for name in graph.named("to") if graph.nodes[name]["topic"] == "out-t"}

    monkeypatch.setattr(judge, "RULES", [replace(rule, touches=one_sink) for rule in RULES])
    found = difference(scenario("one-stream-time-for-all"), "batched") or ""
    assert found.startswith("no rule touches out-s: step ")


def test_a_cause_that_is_not_taken_away_explains_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(judge, "RULES", [replace(rule, cause=Cause.LEVELS) for rule in RULES])
    found = difference(scenario("one-stream-time-for-all"), "batched") or ""
    assert found.startswith("it does not go away without the causes of the rules that apply (stream-time-values): ")


def test_micro_batches_without_any_cause_give_what_was_recorded() -> None:
    functions = load_functions(FOLDER / "functions.py")
    for case in own_cases()[::10]:
        for optimization in optimizations(case) if "build_error" not in case else ():
            run = variant(case, functions, [], optimization)
            if not run.throws:
                undone = Again(case, functions, optimization).without(frozenset(Cause))
                assert run_difference(run, undone) is None, case["id"]


def test_micro_batches_with_all_causes_are_those_of_the_batched_driver() -> None:
    functions = load_functions(FOLDER / "functions.py")
    for case in own_cases()[::10]:
        if "build_error" not in case and not variant(case, functions, [], "none").throws:
            again = Again(case, functions, "none")
            assert again.without(frozenset()) == again.batched(), case["id"]


def test_of_the_tables_that_rules_touch_no_fewer_end_as_recorded() -> None:
    touched = [each for case in own_cases() for each in verdict(case, "batched").touched]
    assert len(touched) <= 21
    assert sum(each.promised for each in touched) >= 10
    assert sum(each.as_recorded for each in touched) >= 11
    assert sum(each.rows - each.rows_as_recorded for each in touched) <= 13


def test_every_rule_has_a_reason() -> None:
    assert all(len(rule.reason) > 60 and len(rule.unless) > 60 for rule in RULES)


def passed(printed: str) -> int:
    return int(printed.splitlines()[-1].split()[0])


def test_the_tasks_of_spark_give_the_same_without_spark(capsys: pytest.CaptureFixture[str]) -> None:
    files = [str(FOLDER / name) for name in FILES]
    status = main(["--engine", "tasks-restarted", "--sample", "60", "--jobs", "1", *files])
    assert (status, passed(capsys.readouterr().out) >= 55) == (0, True)


@pytest.mark.spark
def test_golden_cases_on_spark(capsys: pytest.CaptureFixture[str]) -> None:
    files = [str(FOLDER / name) for name in FILES]
    status = main(["--engine", "spark", "--sample", "320", "--jobs", "2", *files])
    assert (status, passed(capsys.readouterr().out) >= 300) == (0, True)
