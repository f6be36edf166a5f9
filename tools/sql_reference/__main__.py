"""Writes the pages: ``python -m tools.sql_reference``, from the project's directory."""

from tools.sql_reference.pages import DIRECTORY, pages


def main() -> None:
    DIRECTORY.mkdir(exist_ok=True)
    for name, text in pages().items():
        (DIRECTORY / name).write_text(text, encoding="utf-8")
        print(f"docs/sql/{name}: {text.count(chr(10))} lines")


if __name__ == "__main__":
    main()
