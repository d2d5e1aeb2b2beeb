"""Certificates towards brokers and ZooKeeper: locked keys, Java key stores, and the oldest version of TLS."""

import ssl
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.serialization import (
    BestAvailableEncryption,
    Encoding,
    PrivateFormat,
    load_pem_private_key,
)

from controller_core.security.properties_file import InvalidProperties
from controller_core.wire.connections.broker_properties import BrokerProperties
from controller_core.zk.secured.properties import parse_zk_security
from devcluster.clusters.certificates import make_certificate


def make_broker_files(properties: Mapping[str, str]) -> ssl.SSLContext | None:
    return BrokerProperties(properties, Path()).read_listener_security("INTERNAL", "SSL").security().tls


def make_zookeeper_files(properties: Mapping[str, str]) -> ssl.SSLContext | None:
    named = {f"zookeeper.{name}": value for name, value in properties.items()}
    return parse_zk_security({"zookeeper.ssl.client.enable": "true", **named}, Path()).tls


def make_locked_store(folder: Path) -> Path:
    """Write a certificate and its key, which has the password "hidden", into one file."""
    files, store = make_certificate(folder, "localhost"), folder / "locked.pem"
    key = load_pem_private_key(files.key.read_bytes(), None)
    locked = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, BestAvailableEncryption(b"hidden"))
    store.write_bytes(locked + files.certificate.read_bytes())
    return store


@pytest.mark.parametrize(
    ("make_context", "password"),
    [(make_broker_files, "ssl.key.password"), (make_zookeeper_files, "ssl.keystore.password")],
)
def test_a_locked_key_is_opened_by_its_password_alone(
    tmp_path: Path, make_context: Callable[[Mapping[str, str]], ssl.SSLContext | None], password: str
) -> None:
    given = {"ssl.keystore.type": "PEM", "ssl.keystore.location": str(make_locked_store(tmp_path))}
    assert make_context({**given, password: "hidden"}) is not None
    for wrong in ({password: "another"}, {password: ""}, {}):
        with pytest.raises(InvalidProperties, match="cannot be used"):
            make_context(given | wrong)


@pytest.mark.parametrize("make_context", [make_broker_files, make_zookeeper_files])
@pytest.mark.parametrize("store", ["keystore", "truststore"])
def test_a_java_key_store_is_refused_with_what_converts_it(
    make_context: Callable[[Mapping[str, str]], ssl.SSLContext | None], store: str
) -> None:
    for type_ in ("JKS", "PKCS12"):
        with pytest.raises(
            InvalidProperties, match=rf"convert the {store} to PEM, as with openssl pkcs12, and set \S+=PEM"
        ):
            make_context({f"ssl.{store}.location": "any", f"ssl.{store}.type": type_})


@pytest.mark.parametrize("make_context", [make_broker_files, make_zookeeper_files])
def test_tls_is_1_2_or_newer_whatever_is_said_of_versions_and_ciphers(
    make_context: Callable[[Mapping[str, str]], ssl.SSLContext | None],
) -> None:
    context = make_context({"ssl.enabled.protocols": "TLSv1.1", "ssl.cipher.suites": "none", "ssl.protocol": "TLSv1.1"})
    assert context is not None
    assert context.minimum_version is ssl.TLSVersion.TLSv1_2
    assert context.verify_mode is ssl.CERT_REQUIRED
