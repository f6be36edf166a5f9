"""A certificate of this machine's own, for servers that speak TLS."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest


def make_certificate(directory: Path) -> tuple[Path, Path]:
    """Returns the files of a certificate for localhost, and of its key."""
    certificate, key = directory / "certificate.pem", directory / "key.pem"
    subject = ["-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost"]
    command = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "1", *subject]
    done = subprocess.run([*command, "-keyout", key, "-out", certificate], capture_output=True, check=False)
    if done.returncode:
        pytest.skip("openssl cannot make a certificate here")
    return certificate, key
