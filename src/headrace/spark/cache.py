"""The per-user directory for what can be made again: a Java home for Spark, class-data archives."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path


def cache_directory(environment: Mapping[str, str] = os.environ) -> Path | None:
    """Returns the cache directory, made if it is missing, or None if nothing can be written there.

    ``HEADRACE_CACHE_DIR`` names it, else it is ``headrace`` in ``XDG_CACHE_HOME`` or ``~/.cache``.
    """
    named = environment.get("HEADRACE_CACHE_DIR")
    base = environment.get("XDG_CACHE_HOME")
    home = environment.get("HOME")
    if named:
        path = Path(named)
    elif base:
        path = Path(base) / "headrace"
    elif home:
        path = Path(home) / ".cache" / "headrace"
    else:
        return None
    try:
        path.mkdir(mode=0o700, parents=True, exist_ok=True)
        # What lies there is executed: another user's directory, or one that others may change, is not ours.
        if path.stat().st_uid != os.getuid() or path.stat().st_mode & 0o022:
            return None
    except OSError:
        return None
    return path.resolve() if os.access(path, os.W_OK | os.X_OK) else None
