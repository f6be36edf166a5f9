"""``python -m headrace.cli`` is the command ``headrace``."""

from headrace.cli.application import main

if __name__ == "__main__":
    main()
