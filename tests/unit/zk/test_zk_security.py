"""The settings of ZooKeeper connections in a file of properties, and the errors about a file that cannot be used."""

import ssl
from pathlib import Path

import pytest

from controller_core.security.jaas import NameAndPassword
from controller_core.security.properties_file import InvalidProperties
from controller_core.zk.secured.acls import CREATORS_ALONE, OPEN, READABLE, ZnodeAcls
from controller_core.zk.secured.properties import NO_ZK_SECURITY, make_zk_security_source, parse_zk_security
from devcluster.clusters.certificates import make_certificate

MODULE = "org.apache.zookeeper.server.auth.DigestLoginModule required"
LOGIN = f'{MODULE} username="kafka" password="a \\"b\\" c";'


def test_a_broker_s_file_without_a_word_of_it_secures_nothing(tmp_path: Path) -> None:
    properties = {"broker.id": "1", "zookeeper.connect": "zk:2181", "ssl.keystore.location": "/no/where"}
    assert parse_zk_security(properties, tmp_path) == NO_ZK_SECURITY
    assert make_zk_security_source(None)() == NO_ZK_SECURITY


def test_logins_and_acls_are_read(tmp_path: Path) -> None:
    security = parse_zk_security({"zookeeper.sasl.jaas.config": LOGIN, "zookeeper.set.acl": "true"}, tmp_path)
    assert security.sasl == NameAndPassword(username="kafka", password='a "b" c')
    assert security.sets_acls
    assert parse_zk_security({"zookeeper.auth.digest": "kafka:a:b"}, tmp_path).digest == NameAndPassword(
        username="kafka", password="a:b"
    )


def test_files_without_a_folder_are_beside_the_properties(tmp_path: Path) -> None:
    files = make_certificate(tmp_path, "localhost")
    (tmp_path / "server.properties").write_text(
        f"zookeeper.ssl.client.enable=true\nzookeeper.ssl.truststore.location={files.certificate.name}\n"
    )
    tls = make_zk_security_source(tmp_path / "server.properties")().tls
    assert tls is not None
    assert tls.get_ca_certs(binary_form=True) == [ssl.PEM_cert_to_DER_cert(files.certificate.read_text())]
    assert tls.check_hostname


@pytest.mark.parametrize(
    ("properties", "said"),
    [
        ({"zookeeper.set.acl": "true", "zookeeper.auth.digest": ""}, "needs a login"),
        ({"zookeeper.set.acl": "perhaps"}, "zookeeper.set.acl"),
        ({"zookeeper.sasl.jaas.config": f"{MODULE};"}, "zookeeper.sasl.jaas.config has no 'username'"),
        ({"zookeeper.sasl.jaas.config": f'{MODULE} username="a'}, "zookeeper.sasl.jaas.config cannot be read"),
        ({"zookeeper.sasl.jaas.config": "com.sun.security.auth.module.Krb5LoginModule required;"}, "Kerberos"),
        ({"zookeeper.auth.digest": "nobody"}, "zookeeper.auth.digest"),
        ({"zookeeper.ssl.client.enable": "true", "zookeeper.ssl.truststore.location": "trust.jks"}, "truststore.type"),
        (
            {"zookeeper.ssl.client.enable": "true", "zookeeper.ssl.truststore.location": "absent.pem"},
            "there is no file",
        ),
        ({"zookeeper.ssl.client.enable": "true", "zookeeper.clientCnxnSocket": "other"}, "clientCnxnSocket"),
    ],
)
def test_what_cannot_be_used_is_named_and_no_password_is_told(
    properties: dict[str, str], said: str, tmp_path: Path
) -> None:
    with pytest.raises(InvalidProperties, match=said) as caught:
        parse_zk_security({"zookeeper.auth.digest": "kafka:hidden", **properties}, tmp_path)
    assert "hidden" not in str(caught.value)


def test_what_is_secret_is_not_shown_where_it_is_printed(tmp_path: Path) -> None:
    properties = {"zookeeper.sasl.jaas.config": LOGIN, "zookeeper.auth.digest": "kafka:hidden"}
    shown = repr(parse_zk_security(properties, tmp_path))
    assert "kafka" in shown
    assert '"b"' not in shown
    assert "hidden" not in shown


@pytest.mark.parametrize(
    ("path", "acl"),
    [
        ("/consumers", OPEN),
        ("/consumers/group", READABLE),
        ("/brokers/topics/a", READABLE),
        ("/config/topics/users", READABLE),
        ("/config/users/alice", CREATORS_ALONE),
        ("/config/brokers/1", CREATORS_ALONE),
        ("/delegation_token/tokens/a", CREATORS_ALONE),
        ("/kontroller", READABLE),
    ],
)
def test_acls_are_those_of_kafka_where_they_are_set_and_open_where_not(path: str, acl: bytes) -> None:
    assert ZnodeAcls(are_set=True).find_acl(path) == acl
    assert ZnodeAcls().find_acl(path) == OPEN
