"""The wheel and the sdist are complete, and an empty environment with the wheel and its dependencies alone works."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tarfile
import tomllib
import venv
import zipfile
from importlib.metadata import distribution
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
EXTRAS: dict[str, list[str]] = PROJECT["optional-dependencies"]
NAME = re.compile(r"^[A-Za-z0-9_.-]+")

PROGRAM = """
import sys, tempfile
import headrace
from headrace import Consumer, Producer, StreamsBuilder, StreamsConfig, TopologyTestDriver

assert sys.prefix in headrace.__file__, headrace.__file__
builder = StreamsBuilder()
builder.stream("in").group_by_key().count().to_stream().to("out")
with TopologyTestDriver(builder.build()) as driver:
    driver.create_input_topic("in").pipe_input("a", 1)
    assert driver.create_output_topic("out").read_key_values() == [("a", 1)]
config = StreamsConfig(state_dir=tempfile.mkdtemp())
with Producer(config, "in", partitions=1) as producer:
    producer.send("a", {"n": 1})
with Consumer(config, "in") as consumer:
    print([record.value for record in consumer])
"""


def run(*command: str | Path, cwd: Path, code: int = 0) -> subprocess.CompletedProcess[str]:
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "HEADRACE"))}
    done = subprocess.run(
        [str(each) for each in command], cwd=cwd, env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == code, done.stdout + done.stderr
    return done


def build(source: Path, target: Path, *kinds: str) -> list[Path]:
    run(sys.executable, "-m", "hatchling", "build", "-d", target, *kinds, cwd=source)
    return sorted(target.iterdir())


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """The wheel and the sdist."""
    wheel, sdist = build(ROOT, tmp_path_factory.mktemp("dist"))
    return wheel, sdist


def names_in(wheel: Path) -> set[str]:
    return set(zipfile.ZipFile(wheel).namelist())


def test_wheel_has_everything_that_the_package_has(built: tuple[Path, Path]) -> None:
    source = ROOT / "src"
    files = {str(path.relative_to(source)) for path in source.rglob("*") if path.is_file() and path.suffix != ".pyc"}
    packed = {name for name in names_in(built[0]) if ".dist-info/" not in name}
    assert packed == {name for name in files if ".egg-info" not in name}
    assert "headrace/py.typed" in packed


def test_sdist_is_enough_to_build_the_same_wheel(built: tuple[Path, Path], tmp_path: Path) -> None:
    wheel, sdist = built
    with tarfile.open(sdist) as archive:
        archive.extractall(tmp_path, filter="data")
    (unpacked,) = tmp_path.iterdir()
    (again,) = build(unpacked, tmp_path / "dist", "-t", "wheel")
    assert names_in(again) == names_in(wheel)
    assert (unpacked / "tests" / "test_packaging.py").exists()


def closure(requirements: list[str]) -> set[str]:
    """Returns distributions with all that they need, without extras."""
    found: set[str] = set()
    waiting = list(requirements)
    while waiting:
        requirement = waiting.pop()
        match = NAME.match(requirement)
        assert match is not None, requirement
        if match[0] not in found and "extra ==" not in requirement and "python_version <" not in requirement:
            found.add(match[0])
            waiting += distribution(match[0]).requires or []
    return found


def install_beside(environment: Path, names: set[str]) -> None:
    """Puts packages of this environment into another one, as links: pip would fetch them from somewhere."""
    (site,) = environment.glob("lib/python*/site-packages")
    for name in names:
        installed = distribution(name)
        tops = {Path(str(file)).parts[0] for file in installed.files or () if ".." not in Path(str(file)).parts}
        for top in tops - {"__pycache__"}:
            link = site / top
            if not link.exists():
                link.symlink_to(Path(str(installed.locate_file(top))))


def test_wheel_works_in_an_empty_environment(built: tuple[Path, Path], tmp_path: Path) -> None:
    place = tmp_path / "environment"
    venv.create(place, with_pip=False)
    python, headrace = place / "bin" / "python", place / "bin" / "headrace"
    pip = (sys.executable, "-m", "pip", "--disable-pip-version-check", "--python", python)
    run(*pip, "install", "--quiet", "--no-deps", "--no-index", built[0], cwd=tmp_path)
    install_beside(place, closure(PROJECT["dependencies"]))

    assert run(python, "-c", PROGRAM, cwd=tmp_path).stdout.strip() == "[{'n': 1}]"
    assert PROJECT["version"] in run(headrace, "--version", cwd=tmp_path).stdout
    # Without extras it says what is missing, and how to get it.
    said = json.loads(run(headrace, "doctor", "--json", cwd=tmp_path, code=1).stdout)
    findings = {each["what"]: each for each in said}
    assert findings["Spark"]["remedy"] == "`pip install 'headrace[spark]'`"
    missing = {each["what"].removeprefix("extra ") for each in said if each["what"].startswith("extra ")}
    assert missing == EXTRAS.keys() - {"dev", "docs", "java", "spark"}
    assert all(findings[f"extra {name}"]["status"] == "missing" for name in missing)


def test_guide_has_one_table_of_all_extras_with_their_packages() -> None:
    page = (ROOT / "docs" / "quickstart.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| `headrace\[([\w-]+)\]` \| [^|]+ \| ([^|]+) \|$", page, re.MULTILINE)
    listed = {extra: set(re.findall(r"`([^`]+)`", packages)) for extra, packages in rows}
    wanted = {
        extra: {match[0] for each in packages if (match := re.match(r"[\w.-]+(\[[\w,-]+\])?", each)) is not None}
        for extra, packages in EXTRAS.items()
        if extra not in ("dev", "docs")
    }
    assert listed == wanted
