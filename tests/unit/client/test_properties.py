"""Properties by the names of Kafka's clients; each that cannot be is named, and no secret is said."""

import ssl
from pathlib import Path

import pytest

from controller_core.client.errors import InvalidArgument
from controller_core.client.properties import ClientProperties
from controller_core.client.transport.request_client import Address
from controller_core.wire.connections.security import Login
from devcluster.clusters.certificates import CertificateFiles, make_certificate

SERVERS = {"bootstrap.servers": "kafka-0:9092, [::1]:9093"}
JAAS = 'org.apache.kafka.common.security.scram.ScramLoginModule required username="al ice" password="hun\\"ter2";'
SCRAM = {"security.protocol": "SASL_PLAINTEXT", "sasl.mechanism": "SCRAM-SHA-512", "sasl.jaas.config": JAAS}


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> CertificateFiles:
    return make_certificate(tmp_path_factory.mktemp("certificate"), "localhost")


def test_servers_are_enough() -> None:
    properties = ClientProperties.parse({**SERVERS, "linger.ms": "5"})
    assert properties.bootstrap_servers == (Address("kafka-0", 9092), Address("::1", 9093))
    security = properties.security()
    assert (security.tls, security.login) == (None, None)


def test_a_file_is_read_as_java_writes_it_and_what_is_given_beside_goes_before(tmp_path: Path) -> None:
    file = tmp_path / "client.properties"
    file.write_text("# ours\nbootstrap.servers = a:1\nclient.id: me\\\n  too\ndefault.api.timeout.ms=7\n")
    properties = ClientProperties.read(file, {"bootstrap.servers": "b:2"})
    assert properties.bootstrap_servers == (Address("b", 2),)
    assert (properties.client_id, properties.default_api_timeout_ms) == ("metoo", 7)


def test_properties_of_kafka_s_tools_may_have_blanks_at_their_ends_and_small_letters(files: CertificateFiles) -> None:
    given = {
        "bootstrap.servers": "SSL://a:1,\tb:2, ",
        "security.protocol": "ssl ",
        "ssl.truststore.type": "PEM\t",
        "ssl.truststore.location": f"{files.certificate} ",
        "default.api.timeout.ms": "7 ",
        "client.id": " me ",
    }
    properties = ClientProperties.parse(given)
    assert properties.bootstrap_servers == (Address("a", 1), Address("b", 2))
    assert (properties.client_id, properties.default_api_timeout_ms) == ("me", 7)
    assert properties.security().tls is not None


def test_a_login_is_read_from_the_jaas_line() -> None:
    assert ClientProperties.parse({**SERVERS, **SCRAM}).security().login == Login(
        mechanism="SCRAM-SHA-512", username="al ice", password='hun"ter2'
    )


def test_certificates_are_trusted_and_presented_from_files_and_from_text(files: CertificateFiles) -> None:
    both = files.store()
    given = {
        "security.protocol": "SSL",
        "ssl.truststore.type": "PEM",
        "ssl.truststore.location": str(files.certificate),
        "ssl.keystore.type": "PEM",
        "ssl.keystore.location": str(both),
    }
    context = ClientProperties.parse({**SERVERS, **given}).security().tls
    assert context is not None
    assert (context.check_hostname, context.verify_mode) == (True, ssl.CERT_REQUIRED)
    text = {
        "security.protocol": "SSL",
        "ssl.truststore.certificates": files.certificate.read_text(),
        "ssl.keystore.certificate.chain": files.certificate.read_text(),
        "ssl.keystore.key": files.key.read_text(),
        "ssl.endpoint.identification.algorithm": "",
    }
    context = ClientProperties.parse({**SERVERS, **text}).security().tls
    assert context is not None
    assert not context.check_hostname
    assert context.verify_mode is ssl.CERT_REQUIRED, "whose name is not looked at is still to be trusted"


def test_certificates_in_continued_lines_have_blanks_in_place_of_line_ends(
    files: CertificateFiles, tmp_path: Path
) -> None:
    """Kafka's documentation writes them so: each line ends with a blank and a backslash."""
    chain, key = ((" \\\n".join(file.read_text().splitlines())) for file in (files.certificate, files.key))
    file = tmp_path / "client.properties"
    file.write_text(
        "security.protocol=SSL\n"
        f"ssl.truststore.certificates={chain} {chain}\n"
        f"ssl.keystore.certificate.chain={chain}\n"
        f"ssl.keystore.key={key}\n"
    )
    context = ClientProperties.read(file, SERVERS).security().tls
    assert context is not None
    assert context.get_ca_certs(binary_form=True) == [ssl.PEM_cert_to_DER_cert(files.certificate.read_text())]


WRONG = {
    "no servers": ({}, "bootstrap.servers"),
    "servers without a port": ({"bootstrap.servers": "kafka-0"}, "host:port"),
    "a protocol that is none": ({**SERVERS, "security.protocol": "TLS"}, "security.protocol"),
    "a time below 1": ({**SERVERS, "default.api.timeout.ms": "0"}, "default.api.timeout.ms"),
    "a time that is a word": ({**SERVERS, "default.api.timeout.ms": "soon"}, "default.api.timeout.ms"),
    "Kerberos": ({**SERVERS, "security.protocol": "SASL_SSL"}, "GSSAPI is not supported: use one of PLAIN"),
    "no login": (
        {**SERVERS, "security.protocol": "SASL_SSL", "sasl.mechanism": "PLAIN"},
        "set sasl.jaas.config",
    ),
}


@pytest.mark.parametrize(("given", "message"), WRONG.values(), ids=WRONG)
def test_properties_that_cannot_be_are_named(given: dict[str, str], message: str) -> None:
    with pytest.raises(InvalidArgument, match=message):
        ClientProperties.parse(given)


UNUSABLE = {
    "a JKS truststore": (
        {"security.protocol": "SSL", "ssl.truststore.location": "/no/where.jks"},
        "convert the truststore to PEM",
    ),
    "a file that is not there": (
        {"security.protocol": "SSL", "ssl.truststore.type": "PEM", "ssl.truststore.location": "/no/where.pem"},
        "cannot be used: there is no file /no/where.pem",
    ),
    "text that is no certificate": (
        {"security.protocol": "SSL", "ssl.truststore.certificates": "none"},
        "cannot be used",
    ),
    "a certificate without its key": (
        {"security.protocol": "SSL", "ssl.keystore.certificate.chain": "chain"},
        "ssl.keystore.certificate.chain is set, and ssl.keystore.key is not: set both",
    ),
    "a key without its certificate": (
        {"security.protocol": "SSL", "ssl.keystore.key": "key"},
        "ssl.keystore.key is set, and ssl.keystore.certificate.chain is not: set both",
    ),
    "a login without a password": ({**SCRAM, "sasl.jaas.config": 'x required username="a";'}, "no 'password'"),
    "a login that is cut off": ({**SCRAM, "sasl.jaas.config": 'x required username="a'}, "cannot be read"),
}


@pytest.mark.parametrize(("given", "message"), UNUSABLE.values(), ids=UNUSABLE)
def test_what_cannot_be_used_says_what_to_change(given: dict[str, str], message: str) -> None:
    with pytest.raises(InvalidArgument, match=message):
        ClientProperties.parse({**SERVERS, **given}).security()


def test_no_password_is_in_what_is_said(tmp_path: Path) -> None:
    properties = ClientProperties.parse({**SERVERS, **SCRAM})
    login = properties.security().login
    assert "ter2" not in repr(properties) + str(properties) + repr(login)
    with pytest.raises(InvalidArgument) as error:
        ClientProperties.parse({**SCRAM, "bootstrap.servers": "none"})
    assert "ter2" not in str(error.value)


@pytest.mark.parametrize("content", [b"a=\\u12", b"\xff\xfe", b"x" * ((1 << 20) + 1)])
def test_a_file_that_is_none_of_properties_is_refused(tmp_path: Path, content: bytes) -> None:
    file = tmp_path / "client.properties"
    file.write_bytes(content)
    with pytest.raises(InvalidArgument):
        ClientProperties.read(file, SERVERS)
    with pytest.raises(InvalidArgument, match="cannot be read"):
        ClientProperties.read(tmp_path / "none", SERVERS)


def test_who_names_a_truststore_trusts_nobody_else(files: CertificateFiles) -> None:
    """As in Java, the authorities of the system count only if no truststore is named."""
    pinned = files.certificate.read_text()
    for given in (
        {"ssl.truststore.type": "PEM", "ssl.truststore.location": str(files.certificate)},
        {"ssl.truststore.certificates": pinned},
    ):
        context = ClientProperties.parse({**SERVERS, "security.protocol": "SSL", **given}).security().tls
        assert context is not None
        assert context.get_ca_certs(binary_form=True) == [ssl.PEM_cert_to_DER_cert(pinned)]
    of_the_system = ClientProperties.parse({**SERVERS, "security.protocol": "SSL"}).security().tls
    assert of_the_system is not None
    assert of_the_system.cert_store_stats()["x509"] == ssl.create_default_context().cert_store_stats()["x509"]
