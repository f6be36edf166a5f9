from __future__ import annotations

from pathlib import Path

import httpx
import pytest

from tests.cli.conftest import Command

pytest.importorskip("starlette")


def test_registry_is_started_once_and_its_schemas_stay(headrace: Command, state_dir: Path) -> None:
    started = headrace("registry", "start", "--port", 0)
    url = started.out.strip()
    try:
        assert url.startswith("http://localhost:")
        assert "not for production" in started.err
        body = {"schema": '"string"'}
        assert httpx.post(f"{url}/subjects/s/versions", json=body, trust_env=False).json() == {"id": 1}
        again = headrace("registry", "start", code=1)
        assert f"a schema registry runs in '{state_dir}/registry' already" in again.err
        assert url in again.err
    finally:
        assert f"the registry on {url} is gone" in headrace("registry", "stop").err
    assert f"no schema registry runs in '{state_dir}/registry'" in headrace("registry", "stop").err
    url = headrace("registry", "start", "--port", 0).out.strip()
    try:
        assert httpx.get(f"{url}/subjects", trust_env=False).json() == ["s"]
    finally:
        headrace("registry", "stop")


def test_registry_that_does_not_start_says_why(headrace: Command, tmp_path: Path) -> None:
    (tmp_path / "taken").write_text("", encoding="utf-8")
    failed = headrace("registry", "start", "--port", 0, "--log-dir", tmp_path / "taken", code=1)
    assert "the schema registry ended while it was starting" in failed.err
    assert "taken" in failed.err
