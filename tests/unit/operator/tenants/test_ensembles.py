"""The credentials of a file are shown to the servers that the file names, and to no server that a KafkaCluster
names."""

import os
import re
from pathlib import Path

import pytest
from structlog.testing import capture_logs

from controller_core.client.transport.request_client import Address
from controller_core.model.ids import BrokerEpoch, BrokerId
from controller_core.model.metadata import Broker, Endpoint
from controller_core.security.properties_file import InvalidProperties
from controller_core.wire.connections.security import Login
from controller_core.zk.secured.properties import NO_ZK_SECURITY
from controller_operator.kafka.broker_listeners import ANY_PLAINTEXT
from controller_operator.kafka.cluster_files import ClusterFiles
from controller_operator.kubernetes.object_api import ObjectApi
from controller_operator.process import operate
from controller_operator.resources.cluster_address import AtZooKeeper
from controller_operator.settings import OperatorSettings
from controller_operator.watching.kopf_watcher import KopfWatcher
from tests.unit.operator.simulated_api import SimulatedApiServer


def write_properties(folder: Path, name: str, connect: str, login: str) -> Path:
    file = folder / name
    file.write_text(f"zookeeper.connect={connect}\nzookeeper.auth.digest={login}\n")
    return file


@pytest.fixture
def files(tmp_path: Path) -> ClusterFiles:
    return ClusterFiles(
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
    files: ClusterFiles, connect: str, user: str | None
) -> None:
    security = files.security_of(connect)
    assert (security.digest.username if security.digest else None) == user
    assert user is not None or security == NO_ZK_SECURITY


def test_a_file_that_changes_is_read_again(files: ClusterFiles, tmp_path: Path) -> None:
    write_properties(tmp_path, "two", "other:2182", "three:secret")
    digest = files.security_of("other:2182").digest
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
    files = ClusterFiles([file])
    listener = files.listener_of(AtZooKeeper("zk/another"))
    assert listener.addresses(broker(CLIENT="PLAINTEXT", INTERNAL="SASL_PLAINTEXT")) == (Address("kafka", 9093),)
    assert listener.addresses(broker(INTERNAL="PLAINTEXT", OTHER="SASL_PLAINTEXT")) == ()
    assert files.listener_of(AtZooKeeper("stranger:2181")) == ANY_PLAINTEXT
    file.write_text(SECURED.replace("PASSWORD", "new"))
    assert listener.security is not None
    assert listener.security().login == Login(mechanism="PLAIN", username="broker", password="new")


def test_brokers_without_a_secured_listener_between_them_are_asked_at_any_that_is_open(files: ClusterFiles) -> None:
    assert not files.find_faults()
    assert files.listener_of(AtZooKeeper("other:2182")) == ANY_PLAINTEXT
    assert ANY_PLAINTEXT.addresses(broker(A="PLAINTEXT", B="SSL")) == (Address("kafka", 9092),)


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
    files = ClusterFiles(write_clusters(tmp_path, "/kafka-a", "/kafka-b"))
    assert not files.find_faults()
    digest = files.security_of(connect).digest
    assert digest is not None
    assert digest.username == f"zk{number}"
    security = files.listener_of(AtZooKeeper(connect)).security
    assert security is not None
    login = security().login
    assert isinstance(login, Login)
    assert login.username == f"broker{number}"


def test_a_cluster_whose_file_is_in_doubt_gets_no_login_of_another(tmp_path: Path) -> None:
    files = ClusterFiles(write_clusters(tmp_path, "/kafka-a", "/kafka-b"))
    with pytest.raises(InvalidProperties, match=r"cluster-0 and .*cluster-1 .*none names the chroot /kafka-c"):
        files.security_of("zk-0/kafka-c")


def test_two_files_for_one_cluster_are_refused_at_the_start(tmp_path: Path) -> None:
    with pytest.raises(InvalidProperties, match=r"cluster-0 and .*cluster-1 name the same servers"):
        ClusterFiles(write_clusters(tmp_path, "/kafka", "/kafka/")).find_faults()


GOOD = "zookeeper.connect=zk-a:2181/kafka\nzookeeper.auth.digest=a:secret\n"
TLS = GOOD + "zookeeper.ssl.client.enable=true\n"


@pytest.fixture
def pair(tmp_path: Path) -> tuple[Path, ClusterFiles]:
    """The file of a cluster on zk-a, and it together with the file of another cluster, on zk-b."""
    first = tmp_path / "first"
    first.write_text(GOOD)
    second = write_properties(tmp_path, "second", "zk-b:2181/kafka", "b:secret")
    return first, ClusterFiles([first, second])


def rewrite(file: Path, text: str) -> None:
    """Rewrite the file with another modification time, because the clock may be too coarse to show the change."""
    before = file.stat().st_mtime_ns
    file.write_text(text)
    os.utime(file, ns=(before + 10**9, before + 10**9))


def require_others_undisturbed(files: ClusterFiles) -> None:
    digest = files.security_of("zk-b:2181/kafka").digest
    assert digest is not None
    assert digest.username == "b"
    assert files.security_of("zk-plain:2181/kafka") == NO_ZK_SECURITY
    assert files.listener_of(AtZooKeeper("zk-plain:2181/kafka")) == ANY_PLAINTEXT


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (GOOD.replace("a:secret", "oops"), r"zookeeper\.auth\.digest is not USER:PASSWORD"),
        (TLS + "zookeeper.ssl.keystore.location=a.jks\n", "convert the keystore to PEM"),
        (TLS + "zookeeper.ssl.truststore.location=absent.pem\n", r"no file .*absent\.pem"),
        (GOOD + "listener.security.protocol.map=oops\n", r"listener\.security\.protocol\.map"),
        ("zookeeper.auth.digest=a:secret\n", "names no cluster: set zookeeper.connect"),
        ("zookeeper.connect=\\u00", "cannot be read as properties"),
        (None, "cannot be read"),
    ],
)
@pytest.mark.parametrize("is_known", [True, False])
def test_an_unusable_file_is_reported_for_its_cluster_and_disturbs_no_other(
    pair: tuple[Path, ClusterFiles], text: str | None, reason: str, is_known: bool
) -> None:
    file, files = pair
    if is_known:
        assert not files.find_faults()
    if text is None:
        file.unlink()
    else:
        rewrite(file, text)
    names_its_cluster = text is not None and text.startswith("zookeeper.connect=zk-a")
    if is_known or names_its_cluster:
        require_others_undisturbed(files)
    with pytest.raises(InvalidProperties, match=f"{file}.*{reason}"):
        files.security_of("zk-a:2181/kafka")
    (fault,) = files.find_faults()
    assert re.search(f"{file}.*{reason}", str(fault))
    file.write_text(GOOD)
    assert files.security_of("zk-a:2181/kafka").digest is not None


def test_a_cluster_that_no_file_names_gets_no_connection_while_a_file_names_nobody(
    pair: tuple[Path, ClusterFiles],
) -> None:
    file, files = pair
    file.unlink()
    digest = files.security_of("zk-b:2181/kafka").digest
    assert digest is not None
    assert digest.username == "b"
    with pytest.raises(InvalidProperties, match=f"an unusable one may be: {file}"):
        files.security_of("zk-a:2181/kafka")
    with pytest.raises(InvalidProperties, match="may be"):
        files.security_of("zk-b:2181/another")
    security = files.listener_of(AtZooKeeper("zk-a:2181/kafka")).security
    assert security is not None
    with pytest.raises(InvalidProperties, match="may be"):
        security()


def test_credentials_that_are_unusable_only_for_brokers_leave_zookeeper_reachable(tmp_path: Path) -> None:
    file = tmp_path / "one"
    file.write_text("zookeeper.connect=zk\nsecurity.inter.broker.protocol=SASL_SSL\n")
    files = ClusterFiles([file])
    (fault,) = files.find_faults()
    assert "GSSAPI" in str(fault)
    assert files.security_of("zk") == NO_ZK_SECURITY
    security = files.listener_of(AtZooKeeper("zk")).security
    assert security is not None
    with pytest.raises(InvalidProperties, match=f"{file}.*GSSAPI"):
        security()


def test_the_listener_stays_known_while_the_file_is_unusable(tmp_path: Path) -> None:
    file = tmp_path / "one"
    file.write_text(SECURED)
    files = ClusterFiles([file])
    files.security_of("zk:2181")
    rewrite(file, SECURED.replace("CLIENT:PLAINTEXT,", "CLIENT,"))
    listener = files.listener_of(AtZooKeeper("zk:2181"))
    assert listener.addresses(broker(CLIENT="PLAINTEXT", INTERNAL="SASL_PLAINTEXT")) == (Address("kafka", 9093),)


def test_a_listener_whose_file_is_for_another_cluster_by_then_gets_no_login(tmp_path: Path) -> None:
    (file,) = write_clusters(tmp_path, "/kafka-a")
    files = ClusterFiles([file])
    security = files.listener_of(AtZooKeeper("zk-0/kafka-a")).security
    rewrite(file, file.read_text().replace("zk-0:2181,zk-1:2181", "zk-9:2181"))
    assert security is not None
    with pytest.raises(InvalidProperties, match="no longer names these servers"):
        security()


class _BeganError(Exception):
    """The operator has begun to watch."""


def begin(_api: ObjectApi) -> KopfWatcher:
    raise _BeganError


async def test_the_operator_starts_with_an_unusable_file_and_logs_it(pair: tuple[Path, ClusterFiles]) -> None:
    file, _ = pair
    rewrite(file, GOOD.replace("a:secret", "oops"))
    settings = OperatorSettings(all_namespaces=True, properties=(file, file.with_name("second")))
    with capture_logs() as logs, pytest.raises(_BeganError):
        await operate(settings, begin, api=SimulatedApiServer())
    (line,) = logs
    assert (line["event"], line["log_level"]) == ("properties file unusable", "error")
    assert f"{file}: zookeeper.auth.digest" in line["error"]


async def test_the_operator_does_not_start_with_two_files_for_one_cluster(tmp_path: Path) -> None:
    files = write_clusters(tmp_path, "/kafka", "/kafka")
    with pytest.raises(InvalidProperties, match="name the same servers"):
        await operate(OperatorSettings(all_namespaces=True, properties=tuple(files)), begin, api=SimulatedApiServer())
