"""TLS of clients: the certificates of servers that they accept."""

from __future__ import annotations

import os
import ssl

from headrace.errors import ConfigError


def client_context(authority: str | os.PathLike[str] | None) -> ssl.SSLContext:
    """Returns what a client checks servers with: the authorities of a file alone, or else those of the machine."""
    try:
        return ssl.create_default_context(cafile=authority)
    except OSError as error:
        message = f"http.tls.authority must be a file of certificates (PEM); '{authority}' is none: {error.strerror}"
        raise ConfigError(message) from error


def certificate_problem(error: BaseException | None) -> str | None:
    """Returns why the certificate of a server was not accepted, if an error comes from that.

    >>> certificate_problem(TimeoutError())
    """
    while error is not None:
        if isinstance(error, ssl.SSLCertVerificationError):
            return error.verify_message
        error = error.__cause__ or error.__context__
    return None
