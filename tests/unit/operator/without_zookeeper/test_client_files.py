"""The credentials of a client's file are shown to the servers that the file names, and to no server that a KafkaCluster
names."""

import os
import re
from pathlib import Path

import pytest

from controller_core.security.properties_file import InvalidProperties
from controller_core.wire.connections.security import Login
from controller_operator.kafka.broker_listeners import ANY_PLAINTEXT
from controller_operator.kafka.cluster_files import ClusterFiles
from controller_operator.resources.cluster_address import AtBrokers

MODULE = "org.apache.kafka.common.security.plain.PlainLoginModule required"
SECURED = f"""bootstrap.servers=kafka-0:9092, KAFKA-1:9092
security.protocol=SASL_PLAINTEXT
sasl.mechanism=PLAIN
sasl.jaas.config={MODULE} username="operator" password="PASSWORD";
"""
HERE = AtBrokers("kafka-1:9092,kafka-0:9092")


@pytest.fixture
def file(tmp_path: Path) -> Path:
    file = tmp_path / "client.properties"
    file.write_text(SECURED)
    return file


def rewritten(file: Path, text: str) -> None:
    """Rewrite the file with another modification time, because the clock may be too coarse to show the change."""
    before = file.stat().st_mtime_ns
    file.write_text(text)
    os.utime(file, ns=(before + 10**9, before + 10**9))


def password(files: ClusterFiles, address: AtBrokers = HERE) -> str | None:
    security = files.listener_of(address).security
    login = security().login if security is not None else None
    return login.password if isinstance(login, Login) else None


@pytest.mark.parametrize("servers", ["kafka-0:9092", "kafka-1:9092,kafka-0:9092", "Kafka-0:9092"])
def test_servers_that_the_file_names_are_shown_the_login(file: Path, servers: str) -> None:
    listener = ClusterFiles([file]).listener_of(AtBrokers(servers))
    assert (listener.protocol, listener.is_secured) == ("SASL_PLAINTEXT", True)
    assert listener.security is not None
    assert listener.security().login == Login(mechanism="PLAIN", username="operator", password="PASSWORD")


def test_servers_are_the_same_with_a_protocol_before_them(file: Path) -> None:
    file.write_text(SECURED.replace("kafka-0:9092, KAFKA-1:9092", "SASL_PLAINTEXT://kafka-0:9092,KAFKA-1:9092,"))
    assert password(ClusterFiles([file])) == "PASSWORD"


@pytest.mark.parametrize("servers", ["stranger:9092", "kafka-0:9092,stranger:9092", "kafka-0:9093", "kafka-0:9092.x:1"])
def test_nobody_else_is_shown_anything(file: Path, servers: str) -> None:
    assert ClusterFiles([file]).listener_of(AtBrokers(servers)) == ANY_PLAINTEXT


def test_the_password_of_the_moment_is_shown(file: Path) -> None:
    files = ClusterFiles([file])
    listener = files.listener_of(HERE)
    rewritten(file, SECURED.replace("PASSWORD", "another"))
    assert listener.security is not None
    login = listener.security().login
    assert isinstance(login, Login)
    assert login.password == "another"


def test_servers_that_the_file_names_no_more_are_not_shown_it_any_more(file: Path) -> None:
    files = ClusterFiles([file])
    listener = files.listener_of(HERE)
    rewritten(file, SECURED.replace("KAFKA-1:9092", "kafka-2:9092"))
    assert listener.security is not None
    with pytest.raises(InvalidProperties, match="no longer names these servers"):
        listener.security()
    assert files.listener_of(HERE) == ANY_PLAINTEXT


def test_a_file_that_cannot_be_used_any_more_is_as_it_was_until_somebody_connects(file: Path) -> None:
    files = ClusterFiles([file])
    assert not files.find_faults()
    rewritten(file, SECURED.replace("PLAIN\n", "GSSAPI\n"))
    listener = files.listener_of(HERE)
    assert listener.is_secured
    assert listener.security is not None
    with pytest.raises(InvalidProperties, match=r"sasl\.mechanism"):
        listener.security()
    file.unlink()
    assert files.listener_of(HERE).is_secured


def test_a_file_that_cannot_be_used_is_named_at_the_start_without_its_secrets(file: Path) -> None:
    rewritten(file, SECURED.replace("sasl.mechanism=PLAIN", "sasl.mechanism=GSSAPI"))
    (fault,) = ClusterFiles([file]).find_faults()
    assert str(file) in str(fault)
    assert "PASSWORD" not in str(fault)


def test_a_file_is_for_ensembles_or_for_brokers_and_one_for_neither_is_reported(file: Path, tmp_path: Path) -> None:
    of_ensemble, of_nobody = tmp_path / "broker.properties", tmp_path / "nobody.properties"
    of_ensemble.write_text("zookeeper.connect=zk:2181\nsasl.mechanism=GSSAPI\nsecurity.protocol=SASL_SSL\n")
    of_nobody.write_text("sasl.mechanism=PLAIN\n")
    files = ClusterFiles([of_ensemble, file])
    assert not files.find_faults()
    assert password(files) == "PASSWORD"
    (fault,) = ClusterFiles([of_nobody]).find_faults()
    assert re.search(r"zookeeper\.connect.*bootstrap\.servers", str(fault))


def test_an_unusable_file_is_reported_for_its_cluster_and_disturbs_no_other(file: Path, tmp_path: Path) -> None:
    another = tmp_path / "another.properties"
    another.write_text("bootstrap.servers=other:9092\nsecurity.protocol=SASL_SSL\nsasl.mechanism=GSSAPI\n")
    files = ClusterFiles([another, file])
    (fault,) = files.find_faults()
    assert "another.properties: the client's properties" in str(fault)
    assert password(files) == "PASSWORD"
    assert files.listener_of(AtBrokers("stranger:9092")) == ANY_PLAINTEXT
    with pytest.raises(InvalidProperties, match=r"another\.properties.*GSSAPI"):
        password(files, AtBrokers("other:9092"))


def test_two_files_for_one_cluster_are_refused_at_the_start(file: Path, tmp_path: Path) -> None:
    another = tmp_path / "another.properties"
    another.write_text(SECURED)
    with pytest.raises(InvalidProperties, match=r"another\.properties name the same servers in bootstrap\.servers:"):
        ClusterFiles([file, another]).find_faults()
    assert not ClusterFiles([file, file]).find_faults()
