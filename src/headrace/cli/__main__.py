"""``python -m headrace.cli`` is the command ``headrace``."""

from headrace.cli.main_command import main

if __name__ == "__main__":
    main()
