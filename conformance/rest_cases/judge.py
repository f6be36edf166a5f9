"""Judges a case: what the server answers, the error it gives, the records it writes."""

from __future__ import annotations

import base64
import re
import threading
from datetime import timedelta
from typing import Any

from qtt_cases.case import Case
from qtt_cases.compare import same_json, same_value
from rest_cases.protobuf_text import message_text
from rest_cases.serving import PROTOBUF, Answer, Running, serving

_KINDS = {
    "io.confluent.ksql.rest.entity.KsqlStatementErrorMessage": "statement_error",
    "io.confluent.ksql.rest.entity.KsqlErrorMessage": "generic_error",
}
_QUERY = re.compile(r"\s*(SELECT|PRINT)\b", re.IGNORECASE)


def judge(case: Case, engine: str, patience: timedelta) -> str | None:
    """Returns the first difference between a case and what happened; None if there is none."""
    statements = [text.replace("{FORMAT}", case["format"] or "{FORMAT}") for text in case["statements"]]
    first = next((number for number, text in enumerate(statements) if _QUERY.match(text)), len(statements))
    admin, queries = statements[:first], statements[first:]
    with serving(case, engine, patience) as running:
        answers: list[tuple[str, Answer]] = []
        answer = running.post("/ksql", "\n".join(admin)) if admin else Answer(200, [])
        if answer.status != 200:
            return _judge_error(case, answer)
        answers += [("admin", Answer(200, entity)) for entity in answer.body]
        # One that begins at the latest records has to have begun.
        running.settle()
        waits = bool((case["inputConditions"] or {}).get("waitForActivePushQuery"))
        if not waits:
            running.feed()
            running.settle()
        for number, text in enumerate(queries):
            found = _while_feeding(running, text) if waits and number == 0 else running.post("/query", text)
            if found.status != 200:
                return _judge_error(case, found)
            answers.append(("query", found))
        if case["testPullWithProtoFormat"]:
            answers += [("queryProto", running.post("/query", text, accept=PROTOBUF)) for text in queries]
        if case["expectedError"] is not None:
            return _judge_late_error(case, answers)
        return _judge_answers(case, answers) or _judge_records(case, running)


def _while_feeding(running: Running, text: str) -> Answer:
    """Asks a push query, and writes the records when it is there."""
    found: list[Answer | Exception] = []
    done = threading.Event()

    def ask() -> None:
        try:
            found.append(running.post("/query", text))
        except Exception as error:
            found.append(error)
        finally:
            done.set()

    thread = threading.Thread(target=ask)
    thread.start()
    running.wait_for_push_query(done)
    if not done.is_set():
        running.feed()
    thread.join()
    if isinstance(found[0], Exception):
        raise found[0]
    return found[0]


def _judge_late_error(case: Case, answers: list[tuple[str, Answer]]) -> str | None:
    """An error may come behind the header of a query."""
    for kind, answer in answers:
        if kind == "query":
            for part in answer.body:
                if "errorMessage" in part:
                    return _judge_error(case, Answer(part["errorMessage"]["error_code"] // 100, part["errorMessage"]))
    return f"no error; expected {case['expectedError'].get('message')!r}"


def _judge_error(case: Case, answer: Answer) -> str | None:
    expected = case["expectedError"]
    if expected is None:
        return f"{answer.status}: {answer.body.get('message')!r}"
    status = expected.get("status")
    if status is not None and status != answer.status:
        return f"status {answer.status} instead of {status}: {answer.body}"
    kind = _KINDS.get(expected.get("type") or "")
    if kind is not None and kind != answer.body.get("@type"):
        return f"{answer.body.get('@type')} instead of {kind}: {answer.body.get('message')!r}"
    if expected.get("message", "") not in answer.body.get("message", ""):
        return f"message {answer.body.get('message')!r}; expected {expected['message']!r}"
    return None


def _judge_answers(case: Case, answers: list[tuple[str, Answer]]) -> str | None:
    expected = case["responses"]
    if not expected:
        return None
    if len(expected) != len(answers):
        return f"{len(answers)} answers instead of {len(expected)}"
    for number, (wanted, (kind, answer)) in enumerate(zip(expected, answers, strict=True)):
        if kind not in wanted:
            return f"answer {number} is for {kind} instead of {list(wanted)}"
        judged = _judge_entity if kind == "admin" else _judge_rows if kind == "query" else _judge_proto
        difference = judged(wanted[kind], answer.body)
        if difference is not None:
            return f"answer {number}: {difference}"
    return None


def _judge_entity(wanted: dict[str, Any], found: Any) -> str | None:
    return _subset(wanted, found)


def _judge_rows(wanted: list[dict[str, Any]], found: list[dict[str, Any]]) -> str | None:
    if not found or _subset(wanted[0], found[0]) is not None:
        return f"header {found[:1]} instead of {wanted[0]}"
    left = list(found[1:])
    for row in wanted[1:]:
        match = next((each for each in left if _subset(row, each) is None), None)
        if match is None:
            return f"no {row} among {left}"
        left.remove(match)
    return f"superfluous: {left[0]}" if left else None


def _judge_proto(wanted: list[dict[str, Any]], found: list[dict[str, Any]]) -> str | None:
    schema = found[0].get("header", {}).get("protoSchema") if found else None
    if schema != wanted[0]["header"]["protoSchema"]:
        return f"schema {schema!r} instead of {wanted[0]['header']['protoSchema']!r}"
    texts = [
        {"row": message_text(schema, base64.b64decode(each["row"]["protobufBytes"]))} if "row" in each else each
        for each in found[1:]
    ]
    left = [_sorted_lines(each) for each in texts]
    for each in wanted[1:]:
        if _sorted_lines(each) not in left:
            return f"no {each} among {texts}"
        left.remove(_sorted_lines(each))
    return f"superfluous: {left[0]}" if left else None


def _sorted_lines(part: dict[str, Any]) -> Any:
    """The entries of a map have no order."""
    return sorted(part["row"].splitlines()) if "row" in part else part


def _subset(wanted: Any, found: Any) -> str | None:
    """Returns where what is wanted is not in what was found; there may be more of it."""
    if isinstance(wanted, dict):
        if not isinstance(found, dict):
            return f"{found} instead of {wanted}"
        for name, value in wanted.items():
            plain, _, rule = name.partition("|")
            if plain not in found:
                return f"no {plain} in {found}"
            if rule == "starts_with":
                if not str(found[plain]).startswith(value):
                    return f"{plain} {found[plain]!r} does not start with {value!r}"
            elif (difference := _subset(value, found[plain])) is not None:
                return f"{plain}: {difference}"
        return None
    if isinstance(wanted, list) and isinstance(found, list):
        if len(wanted) != len(found):
            return f"{found} instead of {wanted}"
        return next((each for each in map(_subset, wanted, found) if each is not None), None)
    return None if same_json(wanted, found, exact=False) else f"{found!r} instead of {wanted!r}"


def _judge_records(case: Case, running: Running) -> str | None:
    expected: dict[str, list[dict[str, Any]]] = {}
    for record in case["outputs"]:
        expected.setdefault(record["topic"], []).append(record)
    for topic, records in expected.items():
        wire = running.wire(topic)
        if wire is None:
            return f"topic '{topic}': no source has it"
        found = running.records(topic, len(records))
        if len(found) != len(records):
            return f"topic '{topic}': {len(found)} records instead of {len(records)}"
        for wanted, (_, time_ms, key_bytes, value_bytes, _) in zip(records, found, strict=True):
            key, _ = wire.split_key(key_bytes)
            for side, actual, format in (
                ("key", wire.read_key(key), wire.source.key_format),
                ("value", wire.read_value(value_bytes), wire.source.value_format),
            ):
                is_json = format == "JSON"
                same = (
                    same_json(wanted.get(side), actual, exact=False)
                    if is_json
                    else same_value(wanted.get(side), actual)
                )
                if not same:
                    return f"topic '{topic}': {side} {actual!r} instead of {wanted.get(side)!r}"
            if wanted.get("timestamp") is not None and int(wanted["timestamp"]) != time_ms:
                return f"topic '{topic}': timestamp {time_ms} instead of {wanted['timestamp']}"
    return None
