"""TLS certificates for servers and clients on this machine: self-signed ones, and ones that an authority has signed."""

from dataclasses import dataclass
from pathlib import Path

from devcluster.building.toolchain import require, run

_DAYS = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class CertificateFiles:
    """A certificate and its key, both as PEM. A self-signed certificate is also the one to trust."""

    certificate: Path
    key: Path

    def store(self) -> Path:
        """Write the key and the certificate into one file beside them, in ZooKeeper's and Kafka's format; atomically."""
        store, new = self.key.with_name("keystore.pem"), self.key.with_name("keystore.new")
        new.write_text(self.key.read_text() + self.certificate.read_text())
        return new.replace(store)

    def write_locked_store(self, password: str) -> Path:
        """Write both into a PKCS12 file with a password, for servers that need one; atomically."""
        store, new = self.key.with_name("keystore.p12"), self.key.with_name("keystore.new")
        files = ["-inkey", str(self.key), "-in", str(self.certificate), "-out", str(new)]
        _openssl("pkcs12", "-export", *files, "-passout", f"pass:{password}")
        return new.replace(store)


def make_certificate(folder: Path, *names: str, common_name: str = "kontroller") -> CertificateFiles:
    """Make a certificate for these host names or `IP:` addresses in a folder; an old one is replaced atomically."""
    made, new = _files(folder)
    options = ["-x509", *_new_key(common_name, names), "-days", str(_DAYS)]
    _openssl("req", *options, "-keyout", str(new.key), "-out", str(new.certificate))
    return _replace_files(new, made)


class Authority:
    """An authority that signs certificates, in folders below its own."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._own = make_certificate(_make_folder(folder / "authority"), common_name="authority")

    @property
    def certificate(self) -> Path:
        return self._own.certificate

    def issue(self, common_name: str, *names: str, days: int = _DAYS) -> CertificateFiles:
        """Issue a certificate for a name, and for these host names or `IP:` addresses; an old one is replaced
        atomically.

        `days`: below zero for an expired one.
        """
        made, new = _files(_make_folder(self._folder / common_name))
        asked = new.key.with_name("asked.csr")
        _openssl("req", *_new_key(common_name, names), "-keyout", str(new.key), "-out", str(asked))
        signed_by = ["-CA", str(self._own.certificate), "-CAkey", str(self._own.key), "-copy_extensions", "copy"]
        _openssl("x509", "-req", "-in", str(asked), *signed_by, "-days", str(days), "-out", str(new.certificate))
        return _replace_files(new, made)


def _new_key(common_name: str, names: tuple[str, ...]) -> list[str]:
    subject = ["-newkey", "rsa:2048", "-nodes", "-utf8", "-subj", f"/CN={common_name}"]
    listed = ",".join(name if name.startswith("IP:") else f"DNS:{name}" for name in names)
    return [*subject, *(["-addext", f"subjectAltName={listed}"] if listed else [])]


def _files(folder: Path) -> tuple[CertificateFiles, CertificateFiles]:
    """Return the final files, and the files that are used until they are complete."""
    return (
        CertificateFiles(certificate=folder / "tls.crt", key=folder / "tls.key"),
        CertificateFiles(certificate=folder / "new.crt", key=folder / "new.key"),
    )


def _replace_files(new: CertificateFiles, made: CertificateFiles) -> CertificateFiles:
    new.key.replace(made.key)
    new.certificate.replace(made.certificate)
    return made


def _make_folder(folder: Path) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def _openssl(*arguments: str) -> None:
    run([require("openssl"), *arguments], what="making a certificate")
