"""Whatever is asked, the answer is one that the description names, and never a failure of the server."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
import schemathesis
from hypothesis import HealthCheck, Phase, given, settings
from schemathesis import GenerationMode

from tests.views_http.running import Running

QUICK = settings(
    max_examples=30,
    deadline=None,
    derandomize=True,
    phases=[Phase.explicit, Phase.generate],
    suppress_health_check=list(HealthCheck),
)
# Names that are there: otherwise nearly all questions would end at one that is not.
NAMES = {
    "store": ["counts", "windows", "sessions", "history", "everywhere", "nothing"],
    "topic": ["in", "app-counts-changelog", "nothing"],
}
# Streams have no end, and are tested where they are read.
ENDLESS = ("/console/api/live", "/stores/{store}/changes")


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    found = Running(tmp_path_factory.mktemp("fuzzed"))
    yield found
    found.close()


def description(running: Running) -> dict[str, Any]:
    found: dict[str, Any] = running.get("/openapi.json").json()
    for path in ENDLESS:
        del found["paths"][path]
    for operation in found["paths"].values():
        for parameter in operation["get"]["parameters"]:
            if parameter["in"] == "path" and parameter["name"] in NAMES:
                parameter["schema"] = {"type": "string", "enum": NAMES[parameter["name"]]}
    return found


# Any: a case of schemathesis, whose types are not all public.
def check(running: Running, case: Any) -> None:
    answer = case.call(base_url=running.streams.http_address)
    said = f"{answer.request.method} {answer.request.url}: {answer.status_code} {answer.text[:300]}"
    assert answer.status_code in (200, 307, 400, 404, 405, 410, 413, 503), said
    if answer.status_code >= 400 and case.path not in ("/healthz", "/readyz"):
        body = answer.json()
        assert set(body) == {"error"}, said
        assert set(body["error"]) == {"code", "message"}, said


@pytest.mark.parametrize("mode", [GenerationMode.POSITIVE, GenerationMode.NEGATIVE])
def test_every_answer_is_one_that_is_described(running: Running, mode: GenerationMode) -> None:
    schema = schemathesis.openapi.from_dict(description(running))
    found: list[Any] = list(schema.get_all_operations())
    operations = [each.ok() for each in found]
    assert len(operations) >= 9
    for operation in operations:
        if mode is GenerationMode.NEGATIVE and not operation.definition.raw.get("parameters"):
            continue

        @QUICK
        @given(case=operation.as_strategy(generation_mode=mode))
        def ask(case: Any) -> None:
            check(running, case)

        ask()
