"""Limits of an HTTP server: rows, waits, bytes and connections."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class Limits:
    """Limits on one request, and on all of them together."""

    page_rows: int = 1000
    """Rows in one answer."""
    scanned_rows: int = 100_000
    """Rows that one request may walk over."""
    wait_ms: int = 30_000
    """How long a request may wait for a position."""
    request_seconds: float = 30.0
    """How long an answer may take, the waiting left out. Streams of events have no end."""
    head_seconds: float = 10.0
    """How long a client may take to send the head of a request."""
    body_bytes: int = 64 * 1024
    """Size of a request's body; nothing that is asked has one."""
    subscribers: int = 500
    """Clients that follow changes at once."""
    queued_bytes: int = 4 * 1024 * 1024
    """What may wait for one slow subscriber before it is sent away; it comes back where it was."""
    snapshot_bytes: int = 256 * 1024 * 1024
    """What the snapshots of all subscribers together may take until they are sent."""
    connections: int = 1000
    """Connections at once."""
