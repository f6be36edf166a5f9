"""Masters of Spark: where the tasks of a ``spark.master`` run, and on how many cores."""

from __future__ import annotations

import ipaddress
import os
import re
import socket
from urllib.parse import urlsplit

_LOCAL = re.compile(r"local(?:\[\s*(\*|\d+)\s*(?:,\s*(\d+)\s*)?\])?")
_LOCAL_CLUSTER = re.compile(r"local-cluster\[\s*(\d+)\s*,\s*(\d+)\s*,\s*\d+\s*\]")


def is_local(master: str) -> bool:
    """Returns whether the driver's own JVM runs the tasks: ``local[…]``."""
    return _LOCAL.fullmatch(master) is not None


def starts_executors_here(master: str) -> bool:
    """Returns whether the driver starts executors on its own machine: ``local-cluster[…]``."""
    return _LOCAL_CLUSTER.fullmatch(master) is not None


def cores(master: str) -> int | None:
    """Returns how many tasks run at once, or None if only the cluster knows.

    >>> cores("local[3,4]"), cores("local-cluster[2,3,1024]"), cores("local"), cores("spark://localhost:7077")
    (3, 6, 1, None)
    """
    if found := _LOCAL.fullmatch(master):
        count = found.group(1) or "1"
        return usable_cores() if count == "*" else int(count)
    if found := _LOCAL_CLUSTER.fullmatch(master):
        return int(found.group(1)) * int(found.group(2))
    return None


def with_more_threads(master: str, count: int) -> str:
    """Returns a local master that runs so many more tasks at once; others are as many as their cluster has cores.

    >>> with_more_threads("local[2,4]", 32), with_more_threads("local", 32), with_more_threads("yarn", 32)
    ('local[34,4]', 'local[33,1]', 'yarn')
    """
    found = _LOCAL.fullmatch(master)
    if found is None or count == 0:
        return master
    return f"local[{(cores(master) or 1) + count},{found.group(2) or 1}]"


def usable_cores() -> int:
    """Returns how many cores this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def is_on_this_machine(master: str) -> bool:
    """Returns whether all hosts of a standalone master are this machine: localhost, its name or an address of it."""
    if is_local(master) or starts_executors_here(master):
        return True
    address = urlsplit(master)
    if address.scheme != "spark":
        return False
    hosts = [urlsplit(f"spark://{one}").hostname for one in address.netloc.split(",")]
    return all(host is not None and _is_this_host(host) for host in hosts)


def _is_this_host(host: str) -> bool:
    own = socket.gethostname()
    if host.lower() in {"localhost", own.lower(), own.lower().split(".")[0], socket.getfqdn().lower()}:
        return True
    try:
        if ipaddress.ip_address(host).is_loopback:
            return True
        return any(host == found[4][0] for found in socket.getaddrinfo(own, None))
    except (ValueError, OSError):
        return False
