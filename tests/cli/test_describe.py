from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from headrace import StreamsBuilder, StreamsConfig
from headrace.cli.targets import load_topology
from tests.cli.conftest import Command

PROGRAM = """
from headrace import StreamsBuilder, Topology

builder = StreamsBuilder()
builder.stream("in").to("out")
topology = Topology().add_source("source", "in").add_sink("sink", "out", "source")
number = 5

def build(builder): builder.stream("in").to("out")
def returns(builder): return topology
def makes_builder(): return builder
def makes_topology(name="x"): return topology
def nothing(): return None
def two(builder, other): pass
def raises(builder): raise RuntimeError("no coffee")
def wrong(builder): builder.stream("in").filtr(lambda k, v: True)

class Shop:
    @staticmethod
    def build(builder): builder.stream("in").to("out")
"""


@pytest.fixture
def program(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    before = set(sys.modules)
    monkeypatch.setattr(sys, "path", [*sys.path])
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "a_shop_program.py"
    path.write_text(PROGRAM)
    yield path
    for name in set(sys.modules) - before:
        del sys.modules[name]


@pytest.mark.parametrize(
    "name", ["build", "returns", "makes_builder", "makes_topology", "builder", "topology", "Shop.build"]
)
@pytest.mark.parametrize("place", ["a_shop_program", "a_shop_program.py", "./a_shop_program.py"])
def test_all_forms_of_a_topology(headrace: Command, program: Path, place: str, name: str) -> None:
    assert "(topics: [in])" in headrace("describe", f"{place}:{name}").out


def test_build_is_the_default(headrace: Command, program: Path) -> None:
    assert "(topics: [in])" in headrace("describe", program).out
    assert "(topics: [in])" in headrace("describe", "a_shop_program").out


@pytest.mark.parametrize(
    ("form", "begin"),
    [
        ("text", "Topologies:"),
        ("mermaid", "flowchart TD"),
        ("dot", "digraph topology {"),
        ("svg", "<svg "),
        ("json", "{\n"),
    ],
)
def test_formats(headrace: Command, program: Path, form: str, begin: str) -> None:
    assert headrace("describe", "a_shop_program:build", "--format", form).out.startswith(begin)


def test_json(headrace: Command, program: Path) -> None:
    assert headrace("describe", "a_shop_program", "--json").json["subtopologies"][0]["id"] == 0


@pytest.mark.parametrize(
    ("target", "code", "message"),
    [
        ("a_shop_program:biuld", 2, "module 'a_shop_program' has no 'biuld'; did you mean 'build'?"),
        ("a_shop_progam:build", 2, "did you mean 'a_shop_program'?"),
        ("a_shop_progam.py:build", 2, "did you mean 'a_shop_program.py'?"),
        ("shop.orders:build", 2, "there is no module 'shop'"),
        (":build", 2, "names no topology; write module:function"),
        ("a_shop_program:number", 2, "is int, which is no topology"),
        ("a_shop_program:nothing", 2, "gives NoneType, which is no topology"),
        ("a_shop_program:two", 2, "takes builder, other"),
        ("a_shop_program:raises", 1, "RuntimeError: no coffee ("),
        ("a_shop_program:wrong", 1, "did you mean 'filter'? ("),
    ],
)
def test_what_is_no_topology(headrace: Command, program: Path, target: str, code: int, message: str) -> None:
    assert message in headrace("describe", target, code=code).err


@pytest.mark.parametrize(
    ("code", "message"),
    [
        ("import no_such_package", "ModuleNotFoundError: No module named 'no_such_package'"),
        ("x = (", "line 1)"),
        ("\n1 / 0", "ZeroDivisionError: division by zero"),
    ],
)
def test_a_module_that_cannot_be_imported(headrace: Command, program: Path, code: str, message: str) -> None:
    Path("broken_program.py").write_text(code)
    for place in ("broken_program", "broken_program.py"):
        done = headrace("describe", place, code=1)
        assert "cannot be imported" in done.err
        assert message in done.err
        assert "broken_program.py, line" in done.err


def test_a_file_whose_name_is_taken(headrace: Command, program: Path) -> None:
    Path("json.py").write_text(PROGRAM)
    assert "another module is called 'json'" in headrace("describe", "json.py", code=2).err


def test_a_file_in_a_package_keeps_its_relative_imports(program: Path) -> None:
    package = program.parent / "a_shop_package"
    package.mkdir()
    (package / "__init__.py").touch()
    (package / "names.py").write_text("TOPIC = 'in'")
    (package / "orders.py").write_text("from .names import TOPIC\ndef build(builder): builder.stream(TOPIC).to('out')")
    topology = load_topology("a_shop_package/orders.py:build", StreamsConfig(), program.parent)
    assert topology.source_nodes[0].topics == ("in",)


def test_settings_change_the_topology(headrace: Command, program: Path) -> None:
    Path("joins.py").write_text(
        "from datetime import timedelta\nfrom headrace import JoinWindows\n"
        "def build(builder):\n"
        "    one = builder.stream('in')\n"
        "    windows = JoinWindows.of_time_difference_with_no_grace(timedelta(1))\n"
        "    one.join(one, lambda a, b: a, windows=windows).to('out')\n"
    )
    plain = headrace("describe", "joins.py").out
    Path("all.properties").write_text("# comment\ntopology.optimization = all\n")
    assert headrace("describe", "joins.py", "--set", "topology.optimization=all").out != plain
    assert headrace("describe", "joins.py", "--config", "all.properties").out != plain


def test_builder_gets_the_configuration() -> None:
    # The class itself takes a configuration, which may be left out.
    assert load_topology("headrace:StreamsBuilder", StreamsConfig()).nodes == StreamsBuilder().build().nodes
