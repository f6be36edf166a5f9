"""``python -m tests.fuzz``: all parts, or one of them, for some time; the exit code is 1 if something was found."""

from __future__ import annotations

import argparse
import logging
import secrets
import sys
import traceback

from tests.fuzz.running import PARTS, FuzzError, run


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description=__doc__)
    parser.add_argument("--seconds", type=float, default=60.0, help="for all parts together")
    parser.add_argument("--part", choices=PARTS, action="append", help="only these")
    parser.add_argument("--seed", type=int, default=secrets.randbelow(1 << 32))
    parser.add_argument("--trial", type=int, help="only this one")
    given = parser.parse_args()
    # What a server logs about a bad request is not what is looked for.
    logging.disable(logging.CRITICAL)
    parts = given.part or list(PARTS)
    failed = False
    for part in parts:
        print(f"{part}: seed {given.seed}", flush=True)
        try:
            found = run(part, given.seconds / len(parts), seed=given.seed, only=given.trial, watched=True)
        except FuzzError as error:
            failed = True
            traceback.print_exception(error.__cause__)
            print(error, file=sys.stderr, flush=True)
        else:
            words = ", ".join(f"{count} {word}" for word, count in found.most_common())
            print(f"{part}: {found.total()} trials: {words}", flush=True)
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
