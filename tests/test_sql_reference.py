"""The pages of `docs/sql` that are made from the code are up to date; making them carries their examples out."""

import pytest

from headrace.sql.functions import BUILTIN_FUNCTIONS
from tools.sql_reference.functions import functions_page
from tools.sql_reference.pages import DIRECTORY, pages


@pytest.fixture(scope="module")
def made() -> dict[str, str]:
    return pages()


@pytest.mark.parametrize("name", ["statements.md", "functions.md", "settings.md"])
def test_the_page_is_up_to_date(made: dict[str, str], name: str) -> None:
    assert (DIRECTORY / name).read_text(encoding="utf-8") == made[name], "run `make docs`"


def test_every_function_has_an_example() -> None:
    parts = functions_page().split("\n### ")[1:]
    assert len(parts) == len(list(BUILTIN_FUNCTIONS))
    assert [part.split("\n")[0] for part in parts if "\n* `" not in part] == []
