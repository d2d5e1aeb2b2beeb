"""Trust in certificates by the rules of Java and Go, as Kafka's and Kubernetes' own clients have them."""

import ssl
from pathlib import Path


def make_client_context(authorities: Path | None = None, certificates: str | None = None) -> ssl.SSLContext:
    """Return a client's context that trusts the PEM certificates of a file or a text, by default the system's.

    Raises `OSError` and `ValueError`."""
    context = ssl.create_default_context(cafile=authorities, cadata=certificates)
    trust_each_certificate(context)
    return context


def trust_each_certificate(context: ssl.SSLContext) -> None:
    """Let a context trust each certificate in its trust store, also an issuing authority's or a server's own.

    OpenSSL alone trusts only chains that end at a self-signed certificate.
    """
    context.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN
    # From Python 3.13 on, the default refuses certificates without an Authority Key Identifier.
    context.verify_flags &= ~ssl.VERIFY_X509_STRICT
