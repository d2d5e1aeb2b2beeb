"""Certificates for servers and clients on this machine that have to speak TLS: such as sign themselves, and such as an
authority has signed."""

from dataclasses import dataclass
from pathlib import Path

from devcluster.building.toolchain import require, run

_DAYS = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class CertificateFiles:
    """A certificate and its key, both as PEM. One that has signed itself is also who has to be trusted for it."""

    certificate: Path
    key: Path

    def store(self) -> Path:
        """The key and the certificate in one file beside them, as ZooKeeper and Kafka read them; written at once."""
        store, new = self.key.with_name("keystore.pem"), self.key.with_name("keystore.new")
        new.write_text(self.key.read_text() + self.certificate.read_text())
        return new.replace(store)

    def locked_store(self, password: str) -> Path:
        """The same in a PKCS12 file with a password, for who reads no key without one; written at once."""
        store, new = self.key.with_name("keystore.p12"), self.key.with_name("keystore.new")
        files = ["-inkey", str(self.key), "-in", str(self.certificate), "-out", str(new)]
        _openssl("pkcs12", "-export", *files, "-passout", f"pass:{password}")
        return new.replace(store)


def make_certificate(folder: Path, *names: str, common_name: str = "kontroller") -> CertificateFiles:
    """Makes one for these host names or `IP:` addresses, in a folder; what was there is replaced at once."""
    made, new = _files(folder)
    options = ["-x509", *_new_key(common_name, names), "-days", str(_DAYS)]
    _openssl("req", *options, "-keyout", str(new.key), "-out", str(new.certificate))
    return _in_place(new, made)


class Authority:
    """Signs certificates, in folders below its own. Whoever trusts it trusts them."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._own = make_certificate(_made(folder / "authority"), common_name="authority")

    @property
    def certificate(self) -> Path:
        return self._own.certificate

    def issue(self, common_name: str, *names: str, days: int = _DAYS) -> CertificateFiles:
        """One for a name, and for these host names or `IP:` addresses; what was there is replaced at once. `days`: below
        zero for one that has expired."""
        made, new = _files(_made(self._folder / common_name))
        asked = new.key.with_name("asked.csr")
        _openssl("req", *_new_key(common_name, names), "-keyout", str(new.key), "-out", str(asked))
        signed_by = ["-CA", str(self._own.certificate), "-CAkey", str(self._own.key), "-copy_extensions", "copy"]
        _openssl("x509", "-req", "-in", str(asked), *signed_by, "-days", str(days), "-out", str(new.certificate))
        return _in_place(new, made)


def _new_key(common_name: str, names: tuple[str, ...]) -> list[str]:
    subject = ["-newkey", "rsa:2048", "-nodes", "-subj", f"/CN={common_name}"]
    listed = ",".join(name if name.startswith("IP:") else f"DNS:{name}" for name in names)
    return [*subject, *(["-addext", f"subjectAltName={listed}"] if listed else [])]


def _files(folder: Path) -> tuple[CertificateFiles, CertificateFiles]:
    """Where they are to be, and where they are until they are whole."""
    return (
        CertificateFiles(certificate=folder / "tls.crt", key=folder / "tls.key"),
        CertificateFiles(certificate=folder / "new.crt", key=folder / "new.key"),
    )


def _in_place(new: CertificateFiles, made: CertificateFiles) -> CertificateFiles:
    new.key.replace(made.key)
    new.certificate.replace(made.certificate)
    return made


def _made(folder: Path) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def _openssl(*arguments: str) -> None:
    run([require("openssl"), *arguments], what="making a certificate")
