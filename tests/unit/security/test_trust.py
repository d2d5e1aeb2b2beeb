"""Trust stores that Java and Go accept: handshakes in memory, on both sides, with every maker of a context."""

import ssl
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Self

import pytest
from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from cryptography.x509.oid import NameOID
from kubernetes.aio.client.configuration import Configuration

from controller_core.process.http_access.certificate import CertificateFiles
from controller_core.security.tls_files import TlsFiles
from controller_operator.kubernetes.api_client import api_client
from kontroller.history.sources.journal_tls import JournalTls
from kontroller.planning.prometheus import make_context


@dataclass(frozen=True)
class Issuer:
    """A certificate and its key. Like those of many private authorities, it has no key identifiers."""

    certificate: x509.Certificate
    key: ec.EllipticCurvePrivateKey

    @classmethod
    def make(cls, name: str, issuer: Self | None = None, *, is_authority: bool = True) -> Self:
        key = ec.generate_private_key(ec.SECP256R1())
        subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
        now = datetime.now(UTC)
        builder = (
            x509.CertificateBuilder(subject_name=subject, issuer_name=issuer.certificate.subject if issuer else subject)
            .public_key(key.public_key())
            .serial_number(x509.random_serial_number())
            .not_valid_before(now - timedelta(days=1))
            .not_valid_after(now + timedelta(days=1))
            .add_extension(x509.BasicConstraints(ca=is_authority, path_length=None), critical=True)
            .add_extension(x509.SubjectAlternativeName([x509.DNSName("localhost")]), critical=False)
        )
        return cls(builder.sign(issuer.key if issuer else key, SHA256()), key)

    @property
    def pem(self) -> str:
        return self.certificate.public_bytes(Encoding.PEM).decode()


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with the certificates of a root, of an authority that it signed, and of a server that this one
    signed; and of another root of the same name."""
    folder = tmp_path_factory.mktemp("site")
    root = Issuer.make("root")
    issuing = Issuer.make("issuing", root)
    own = Issuer.make("localhost", issuing, is_authority=False)
    key = own.key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()).decode()
    stores = {
        "root": root.pem,
        "issuing": issuing.pem,
        "own": own.pem,
        "another": Issuer.make("root").pem,
        "shown": key + own.pem + issuing.pem,
    }
    for name, content in stores.items():
        (folder / f"{name}.pem").write_text(content)
    return folder


@pytest.fixture(autouse=True)
def strict_python(monkeypatch: pytest.MonkeyPatch) -> None:
    """Give every context the flag that is Python's default from 3.13 on."""
    make = ssl.create_default_context

    def make_strict(*arguments: Any, **named: Any) -> ssl.SSLContext:
        context = make(*arguments, **named)
        context.verify_flags |= ssl.VERIFY_X509_STRICT
        return context

    monkeypatch.setattr(ssl, "create_default_context", make_strict)


def shake_hands(client: ssl.SSLContext, server: ssl.SSLContext) -> None:
    """Complete a handshake in memory. Raises `ssl.SSLError` if one side does not trust the other."""
    to_client, to_server = ssl.MemoryBIO(), ssl.MemoryBIO()
    sides = (
        client.wrap_bio(to_client, to_server, server_hostname="localhost"),
        server.wrap_bio(to_server, to_client, server_side=True),
    )
    for _ in range(4):
        for side in sides:
            try:
                side.do_handshake()
            except ssl.SSLWantReadError:
                continue


async def make_kubernetes_context(trusted: Path) -> ssl.SSLContext:
    configuration = Configuration(host="https://localhost")
    configuration.ssl_ca_cert = str(trusted)
    async with api_client(configuration) as client:
        context: ssl.SSLContext = client.rest_client.ssl_context
        return context


def make_client_from_text(trusted: Path) -> ssl.SSLContext:
    return TlsFiles(truststore_certificates=trusted.read_text()).make_client_context()


CLIENTS: dict[str, Callable[[Path], ssl.SSLContext]] = {
    "towards brokers and ZooKeeper": lambda trusted: TlsFiles(truststore_location=trusted).make_client_context(),
    "with certificates in a property": make_client_from_text,
    "of journals": lambda trusted: JournalTls(authorities=trusted).context(),
    "of Prometheus": make_context,
}
SERVERS: dict[str, Callable[[Path, Path], ssl.SSLContext]] = {
    "at a Kafka listener": lambda site, trusted: TlsFiles(
        keystore_location=site / "shown.pem", truststore_location=trusted
    ).make_server_context(ssl.CERT_REQUIRED),
    "at an HTTPS port": lambda site, trusted: CertificateFiles(
        chain=site / "shown.pem", key=site / "shown.pem", client_ca=trusted
    ).make_context(),
}
STORES = ["root", "issuing", "own"]


def make_plain_server(site: Path) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(site / "shown.pem")
    return context


@pytest.mark.parametrize("trusted", STORES)
@pytest.mark.parametrize("make_client", CLIENTS.values(), ids=CLIENTS)
def test_a_client_trusts_a_server_by_any_certificate_of_its_chain(
    site: Path, make_client: Callable[[Path], ssl.SSLContext], trusted: str
) -> None:
    shake_hands(make_client(site / f"{trusted}.pem"), make_plain_server(site))


@pytest.mark.parametrize("trusted", STORES)
async def test_the_operator_trusts_an_api_server_by_any_certificate_of_its_chain(site: Path, trusted: str) -> None:
    shake_hands(await make_kubernetes_context(site / f"{trusted}.pem"), make_plain_server(site))


@pytest.mark.parametrize("trusted", STORES)
@pytest.mark.parametrize("make_server", SERVERS.values(), ids=SERVERS)
def test_a_server_trusts_a_client_by_any_certificate_of_its_chain(
    site: Path, make_server: Callable[[Path, Path], ssl.SSLContext], trusted: str
) -> None:
    client = TlsFiles(keystore_location=site / "shown.pem", truststore_location=site / "root.pem")
    shake_hands(client.make_client_context(), make_server(site, site / f"{trusted}.pem"))


@pytest.mark.parametrize("make_client", CLIENTS.values(), ids=CLIENTS)
def test_a_client_trusts_no_server_of_another_authority(
    site: Path, make_client: Callable[[Path], ssl.SSLContext]
) -> None:
    with pytest.raises(ssl.SSLCertVerificationError):
        shake_hands(make_client(site / "another.pem"), make_plain_server(site))


@pytest.mark.parametrize("make_server", SERVERS.values(), ids=SERVERS)
def test_a_server_trusts_no_client_of_another_authority(
    site: Path, make_server: Callable[[Path, Path], ssl.SSLContext]
) -> None:
    client = TlsFiles(keystore_location=site / "shown.pem", truststore_location=site / "root.pem")
    with pytest.raises(ssl.SSLError):
        shake_hands(client.make_client_context(), make_server(site, site / "another.pem"))
