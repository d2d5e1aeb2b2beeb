"""The credentials of a file are shown to the servers that the file names, and to no server that a KafkaCluster
names."""

from pathlib import Path

import pytest

from controller_core.client.transport.request_client import Address
from controller_core.model.ids import BrokerEpoch, BrokerId
from controller_core.model.metadata import Broker, Endpoint
from controller_core.security.properties_file import InvalidProperties
from controller_core.wire.connections.security import Login
from controller_core.zk.secured.properties import NO_ZK_SECURITY
from controller_operator.kafka.broker_listeners import ANY_PLAINTEXT
from controller_operator.kafka.ensembles import Ensembles


def write_properties(folder: Path, name: str, connect: str, login: str) -> Path:
    file = folder / name
    file.write_text(f"zookeeper.connect={connect}\nzookeeper.auth.digest={login}\n")
    return file


@pytest.fixture
def ensembles(tmp_path: Path) -> Ensembles:
    return Ensembles(
        [
            write_properties(tmp_path, "one", "zk-0.zk:2181,ZK-1.zk,[2001:db8::1]/kafka", "one:secret"),
            write_properties(tmp_path, "two", "other:2182", "two:secret"),
        ]
    )


@pytest.mark.parametrize(
    ("connect", "user"),
    [
        ("zk-0.zk:2181,zk-1.zk:2181/kafka", "one"),
        ("zk-1.zk,zk-0.zk/another", "one"),
        ("[2001:db8::1]:2181", "one"),
        ("other:2182/kafka", "two"),
        ("other:2181/kafka", None),
        ("zk-0.zk:2181,stranger:2181/kafka", None),
        ("stranger:2181/zk-0.zk:2181", None),
        ("", None),
    ],
)
def test_only_the_servers_that_a_file_names_see_what_it_says(
    ensembles: Ensembles, connect: str, user: str | None
) -> None:
    security = ensembles.security_of(connect)
    assert (security.digest.username if security.digest else None) == user
    assert user is not None or security == NO_ZK_SECURITY


def test_a_file_that_changes_is_read_again(ensembles: Ensembles, tmp_path: Path) -> None:
    write_properties(tmp_path, "two", "other:2182", "three:secret")
    digest = ensembles.security_of("other:2182").digest
    assert digest is not None
    assert digest.username == "three"


SECURED = """zookeeper.connect=zk:2181
inter.broker.listener.name=internal
listener.security.protocol.map=CLIENT:PLAINTEXT,INTERNAL:SASL_PLAINTEXT
sasl.mechanism.inter.broker.protocol=PLAIN
listener.name.internal.plain.sasl.jaas.config=x required username="broker" password="PASSWORD";
"""


def broker(**protocols: str) -> Broker:
    endpoints = tuple(
        Endpoint(listener=name, security_protocol=protocol, host="kafka", port=9092 + at)
        for at, (name, protocol) in enumerate(protocols.items())
    )
    return Broker(id=BrokerId(1), epoch=BrokerEpoch(1), endpoints=endpoints)


def test_brokers_are_asked_at_the_listener_between_them_by_the_login_of_the_moment(tmp_path: Path) -> None:
    file = tmp_path / "one"
    file.write_text(SECURED)
    ensembles = Ensembles([file])
    assert ensembles.listener_of("zk:2181") == ANY_PLAINTEXT, "nobody has read it yet"
    ensembles.security_of("zk:2181/kafka")
    listener = ensembles.listener_of("zk/another")
    assert listener.addresses(broker(CLIENT="PLAINTEXT", INTERNAL="SASL_PLAINTEXT")) == (Address("kafka", 9093),)
    assert listener.addresses(broker(INTERNAL="PLAINTEXT", OTHER="SASL_PLAINTEXT")) == ()
    assert ensembles.listener_of("stranger:2181") == ANY_PLAINTEXT
    file.write_text(SECURED.replace("PASSWORD", "new"))
    assert listener.security is not None
    assert listener.security().login == Login(mechanism="PLAIN", username="broker", password="new")


def test_brokers_without_a_secured_listener_between_them_are_asked_at_any_that_is_open(ensembles: Ensembles) -> None:
    ensembles.check()
    assert ensembles.listener_of("other:2182") == ANY_PLAINTEXT
    assert ANY_PLAINTEXT.addresses(broker(A="PLAINTEXT", B="SSL")) == (Address("kafka", 9092),)


def test_a_login_that_cannot_be_used_is_refused_at_the_start(tmp_path: Path) -> None:
    file = tmp_path / "one"
    file.write_text("zookeeper.connect=zk\nsecurity.inter.broker.protocol=SASL_SSL\n")
    ensembles = Ensembles([file])
    ensembles.check()
    with pytest.raises(InvalidProperties, match="GSSAPI"):
        ensembles.check_brokers()


def test_a_file_for_nobody_is_refused_at_the_start(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_text("zookeeper.auth.digest=one:secret\n")
    with pytest.raises(InvalidProperties, match=r"zookeeper\.connect"):
        Ensembles([file]).check()
    with pytest.raises(InvalidProperties, match="absent"):
        Ensembles([tmp_path / "absent"]).check()


def write_clusters(folder: Path, *chroots: str) -> list[Path]:
    """Write files of clusters that share an ensemble, each with the logins `zkN:secret` and `brokerN:secret`."""
    files = []
    for number, chroot in enumerate(chroots):
        files.append(folder / f"cluster-{number}")
        files[-1].write_text(
            SECURED.replace("connect=zk:2181", f"connect=zk-0:2181,zk-1:2181{chroot}").replace(
                '"broker"', f'"broker{number}"'
            )
            + f"zookeeper.auth.digest=zk{number}:secret\n"
        )
    return files


@pytest.mark.parametrize(
    ("connect", "number"),
    [("zk-0,zk-1/kafka-a", 0), ("zk-1,zk-0/kafka-b", 1), ("zk-1/kafka-b/", 1), ("zk-0:2181//kafka-b", 1)],
)
def test_clusters_that_share_an_ensemble_are_told_apart_by_their_chroots(
    tmp_path: Path, connect: str, number: int
) -> None:
    ensembles = Ensembles(write_clusters(tmp_path, "/kafka-a", "/kafka-b"))
    ensembles.check()
    digest = ensembles.security_of(connect).digest
    assert digest is not None
    assert digest.username == f"zk{number}"
    security = ensembles.listener_of(connect).security
    assert security is not None
    login = security().login
    assert isinstance(login, Login)
    assert login.username == f"broker{number}"


def test_a_cluster_whose_file_is_in_doubt_gets_no_login_of_another(tmp_path: Path) -> None:
    ensembles = Ensembles(write_clusters(tmp_path, "/kafka-a", "/kafka-b"))
    with pytest.raises(InvalidProperties, match=r"cluster-0 and .*cluster-1 .*none names the chroot /kafka-c"):
        ensembles.security_of("zk-0/kafka-c")


def test_two_files_for_one_cluster_are_refused_at_the_start(tmp_path: Path) -> None:
    with pytest.raises(InvalidProperties, match=r"cluster-0 and .*cluster-1 name the same servers"):
        Ensembles(write_clusters(tmp_path, "/kafka", "/kafka/")).check()
