"""Proof that a process is one of those that share the views of an application: it knows their token.

The token itself is never sent to a peer. Announcements carry a signature, so that a process that does not know the
token is not asked for anything; requests carry one instead of the token, made for one address and one minute, so that
whoever has taken over the address of a peer learns nothing that would open another.
"""

from __future__ import annotations

import hmac
from hashlib import sha256

SCHEME = "Headrace-Peer"
"""What ``Authorization`` begins with on what one process asks another."""
_LIFETIME_MS = 60_000
"""How long a request is good; the clocks of the processes may differ by so much."""


class PeerProof:
    """Signs, and checks signatures, with a key that is made of the token.

    >>> proof = PeerProof("sesame")
    >>> signature = proof.sign("announcement", "view-1")
    >>> proof.is_signed(signature, "announcement", "view-1"), proof.is_signed(signature, "announcement", "view-2")
    (True, False)
    """

    def __init__(self, token: str) -> None:
        self._key = hmac.digest(token.encode(), b"headrace peers, version 1", sha256)

    @classmethod
    def of(cls, token: str | None) -> PeerProof | None:
        """Returns the proof of a token; None without a token, since then every peer may ask."""
        return None if token is None else cls(token)

    def sign(self, *parts: str) -> str:
        """Returns the signature of texts; where one ends and the next begins is part of it."""
        content = b"".join(
            len(each := part.encode(errors="surrogateescape")).to_bytes(8, "big") + each for part in parts
        )
        return hmac.new(self._key, content, sha256).hexdigest()

    def is_signed(self, signature: str, *parts: str) -> bool:
        """Tells whether a signature is that of texts."""
        return hmac.compare_digest(signature.encode(errors="replace"), self.sign(*parts).encode())

    def authorization(self, address: str, target: str, now_ms: int) -> str:
        """Returns the value of ``Authorization`` for a GET of path and query at ``host:port``.

        >>> PeerProof("sesame").authorization("db1:7070", "/stores", 1000).partition(".")[0]
        'Headrace-Peer 1000'
        """
        return f"{SCHEME} {now_ms}.{self.sign('request', address, target, str(now_ms))}"

    def authorizes(self, given: str, address: str, target: str, now_ms: int) -> bool:
        """Tells whether what follows the scheme was made by a peer, for this address and request, and just now.

        >>> proof = PeerProof("sesame")
        >>> given = proof.authorization("db1:7070", "/stores", 1000).partition(" ")[2]
        >>> proof.authorizes(given, "db1:7070", "/stores", 2000), proof.authorizes(given, "db2:7070", "/stores", 2000)
        (True, False)
        """
        time, _, signature = given.partition(".")
        if not (time.isascii() and time.isdecimal() and len(time) < 16) or abs(now_ms - int(time)) > _LIFETIME_MS:
            return False
        return self.is_signed(signature, "request", address, target, time)
