"""Certificates that sign themselves, for servers on this machine that have to speak TLS."""

from dataclasses import dataclass
from pathlib import Path

from devcluster.building.toolchain import require, run

_DAYS = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class CertificateFiles:
    """A certificate, which is also who has to be trusted for it, and its key, both as PEM."""

    certificate: Path
    key: Path


def make_certificate(folder: Path, *names: str) -> CertificateFiles:
    """Makes one for these host names or `IP:` addresses, in a folder; what was there is replaced at once."""
    made = CertificateFiles(certificate=folder / "tls.crt", key=folder / "tls.key")
    new = CertificateFiles(certificate=folder / "new.crt", key=folder / "new.key")
    subject = ",".join(name if name.startswith("IP:") else f"DNS:{name}" for name in names)
    options = ["-x509", "-newkey", "rsa:2048", "-nodes", "-days", str(_DAYS), "-subj", "/CN=kontroller"]
    files = ["-keyout", str(new.key), "-out", str(new.certificate)]
    extension = ["-addext", f"subjectAltName={subject}"]
    run([require("openssl"), "req", *options, *files, *extension], what="making a certificate")
    new.key.replace(made.key)
    new.certificate.replace(made.certificate)
    return made
