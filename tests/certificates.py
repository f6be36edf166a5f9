"""Certificates of this machine's own, for servers that speak TLS."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest


def make_certificate(directory: Path) -> tuple[Path, Path]:
    """Returns the files of a certificate for localhost, and of its key; it is its own authority."""
    return _make(directory / "certificate.pem", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost")


def make_signed_certificate(directory: Path) -> tuple[Path, Path, Path]:
    """Returns the files of a certificate for localhost, of its key, and of the authority that has signed it."""
    authority, secret = _make(directory / "authority.pem", "/CN=an authority of its own")
    signed = ["-addext", "subjectAltName=DNS:localhost", "-CA", str(authority), "-CAkey", str(secret)]
    return *_make(directory / "signed.pem", "/CN=localhost", *signed), authority


def _make(certificate: Path, subject: str, *options: str) -> tuple[Path, Path]:
    key = certificate.with_suffix(".key")
    command = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "1", "-subj", subject, *options]
    done = subprocess.run([*command, "-keyout", key, "-out", certificate], capture_output=True, check=False)
    if done.returncode:
        pytest.skip("openssl cannot make a certificate here")
    return certificate, key
