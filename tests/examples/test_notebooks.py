"""The notebooks run from their first cell to their last, and are kept without what a run leaves in them."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import Any

import nbformat
import pytest
from nbclient import NotebookClient

NOTEBOOKS = sorted((Path(__file__).parents[2] / "examples" / "notebooks").glob("*.ipynb"))


def _read(path: Path) -> Any:
    """Returns a notebook; Any: nodes of nbformat are dicts with attributes."""
    notebook = nbformat.read(path, as_version=4)  # type: ignore[no-untyped-call]  # comes without
    nbformat.validate(notebook)
    return notebook


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_is_kept_without_outputs_and_places(path: Path) -> None:
    notebook = _read(path)
    assert notebook.metadata == {
        "kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"},
        "language_info": {"name": "python"},
    }
    for cell in notebook.cells:
        assert cell.metadata == {}
        if cell.cell_type == "code":
            assert cell.outputs == []
            assert cell.execution_count is None
    assert re.findall(r"/(?:home|root|tmp|work|Users)/\S*", path.read_text(encoding="utf-8")) == []


@pytest.fixture
def shown(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Returns what runs a notebook of the examples and gives what each of its code cells shows, by kind."""
    monkeypatch.setenv("IPYTHONDIR", str(tmp_path / "ipython"))
    monkeypatch.setenv("JUPYTER_CONFIG_DIR", str(tmp_path / "config"))
    monkeypatch.setenv("JUPYTER_DATA_DIR", str(tmp_path / "data"))
    monkeypatch.setenv("JUPYTER_RUNTIME_DIR", str(tmp_path / "runtime"))
    # It takes seconds to look for all fonts, so what was found is kept for the next run.
    monkeypatch.setenv("MPLCONFIGDIR", str(Path(sys.prefix) / "var" / "matplotlib"))

    def run(name: str) -> list[dict[str, str]]:
        notebook = _read(next(path for path in NOTEBOOKS if path.stem == name))
        place = {"metadata": {"path": str(tmp_path)}}
        NotebookClient(notebook, timeout=300, kernel_name="python3", resources=place).execute()
        cells = [cell for cell in notebook.cells if cell.cell_type == "code"]
        return [{k: v for output in cell.outputs for k, v in output.get("data", {}).items()} for cell in cells]

    return run


def test_live_table_shows_graph_frames_store_and_plot(shown: Any) -> None:
    _, graph, tried, first, store, plot, second, _ = shown("live_table")
    assert "<svg" in graph["text/html"]
    assert graph["image/svg+xml"].count("by-minute") > 0
    assert [line.split()[1:3] for line in tried["text/plain"].splitlines()[1:]] == [
        ["tea", "350"],
        ["books", "1200"],
        ["tea", "500"],
    ]
    assert all(shop in first["text/plain"] for shop in ("books", "shoes", "tea"))
    assert store["text/html"].count("<tr>") == 1 + 3
    assert "image/png" in plot
    # The notebook itself asserts that every cent is in the table.
    assert second["text/plain"] != first["text/plain"]
