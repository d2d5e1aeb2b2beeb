"""A cluster whose ZooKeeper needs certificates and logins, under Kafka's controller and under ours.

Both do the same work, and leave strangers the same rights.
"""

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest
from kazoo.client import KazooClient
from kazoo.security import ACL
from kio.schema.errors import ErrorCode

from controller_core.client.admin_client import AdminClient
from controller_core.client.errors import Refused
from controller_core.client.properties import ClientProperties
from controller_core.client.reassigning.assignments import format_partitions, format_reassignment
from controller_core.model.ids import BrokerId, PartitionId, TopicName, TopicPartition
from controller_core.security.jaas import NameAndPassword
from devcluster.clusters.kafka import KafkaCluster
from devcluster.clusters.kontroller import RecorderProcess, run_command
from devcluster.clusters.python_broker import PythonBroker
from devcluster.clusters.run_folder import RunFolder
from devcluster.clusters.secured_zookeeper import PASSWORD, USER, SecuredZooKeeper
from devcluster.clusters.zookeeper import open_client
from tests.real.secured.clusters import BY_KAFKA, BY_US

pytestmark = [pytest.mark.real, pytest.mark.timeout(300)]

LOGIN = NameAndPassword(username=USER, password=PASSWORD)


async def a_day_s_work(cluster: KafkaCluster) -> None:
    admin = AdminClient({"bootstrap.servers": cluster.bootstrap_servers})
    kept, gone = TopicName("kept"), TopicName("gone")
    await admin.create_topic(kept, replica_assignment="1:2,2:1", configs={"retention.ms": "1000000"})
    await admin.create_topic(gone, 1, 2)
    await retry_until_known(lambda: admin.alter_topic(kept, partitions=3, added_configs={"retention.ms": "2000000"}))
    first = TopicPartition(kept, PartitionId(0))
    await admin.reassign_partitions(format_reassignment({first: (BrokerId(2), BrokerId(1))}))
    await admin.preferred_replica_leader_election(format_partitions([first]))
    await retry_until_known(lambda: admin.delete_topic(gone))
    await admin.set_scram_user("alice", "secret", iterations=4096)
    for broker in cluster.brokers.values():
        broker.restart()
    await retry_until_known(lambda: admin.describe_topic(kept))
    assert (await admin.describe_topic(kept)).partitions[0].replicas == (2, 1)


async def retry_until_known(ask: Callable[[], Awaitable[object]]) -> None:
    """Retry a request until the brokers know the topic, which takes a moment after its creation."""
    async with asyncio.timeout(60):
        while True:
            try:
                await ask()
            except Refused as error:
                if error.code is not ErrorCode.unknown_topic_or_partition:
                    raise
                await asyncio.sleep(0.1)
            else:
                return


async def test_znodes_have_the_acls_that_they_have_in_a_cluster_of_kafka_alone(
    secured: dict[str, KafkaCluster], zookeeper_with_users: SecuredZooKeeper
) -> None:
    for cluster in secured.values():
        await a_day_s_work(cluster)
    with open_client(zookeeper_with_users.connect, LOGIN) as client:
        of_kafka, of_ours = (acls_below(client, chroot) for chroot in (BY_KAFKA, BY_US))
    assert {"/config/users/alice", "/brokers/topics/kept/partitions/0/state", "/controller_epoch"} <= set(of_kafka)
    differing = {path: (acls, of_ours[path]) for path, acls in of_kafka.items() if of_ours.get(path, acls) != acls}
    assert differing == {}
    usual = of_kafka["/brokers"]
    assert {path for path in of_ours.keys() - of_kafka.keys() if of_ours[path] != usual} == set()
    assert of_kafka["/config/users"] != usual


def acls_below(client: KazooClient, root: str) -> dict[str, frozenset[ACL]]:
    """Return the ACLs of each znode below a root, by the path relative to it."""
    found = {}
    waiting = [""]
    while waiting:
        path = waiting.pop()
        waiting += [f"{path}/{name}" for name in client.get_children(root + path)]
        if path:
            found[path] = frozenset(client.get_acls(root + path)[0])
    return found


def test_no_password_is_in_a_log(secured: dict[str, KafkaCluster], servers_folder: RunFolder) -> None:
    log = servers_folder.log("secured-controller").read_text()
    assert log
    assert PASSWORD not in log


def test_a_recorder_looks_on_by_the_same_properties(
    secured: dict[str, KafkaCluster], zookeeper_with_users: SecuredZooKeeper, servers_folder: RunFolder
) -> None:
    server = zookeeper_with_users
    with RecorderProcess(
        servers_folder,
        server.secure_connect + BY_KAFKA,
        servers_folder.data("secured-journal"),
        name="secured-recorder",
        options=["--properties", str(server.write_properties())],
    ) as recorder:
        assert (recorder.metric("kontroller_recorder_controller_epoch") or 0) > 0


async def test_topics_that_are_marked_for_deletion_are_known_by_the_client_s_own_file(
    secured: dict[str, KafkaCluster], zookeeper_with_users: SecuredZooKeeper
) -> None:
    server = zookeeper_with_users
    connect = server.secure_connect + BY_US
    file = server.write_properties("admin.properties", zookeeper_connect=connect)
    bootstrap = {"bootstrap.servers": secured[BY_US].bootstrap_servers}
    listed = await AdminClient(ClientProperties.read(file, bootstrap)).list_topics()
    assert listed.marked_for_deletion is not None


def test_topics_are_imported_by_the_same_properties(
    secured: dict[str, KafkaCluster], zookeeper_with_users: SecuredZooKeeper
) -> None:
    server = zookeeper_with_users
    connect = server.secure_connect + BY_KAFKA
    file = server.write_properties("import.properties", zookeeper_connect=connect)
    asked = ("import", "--cluster", "c", "--namespace", "n", "--without-kubernetes", "--zookeeper", connect)
    imported = run_command(*asked, "--properties", str(file))
    assert (imported.returncode, "topics imported" in imported.stderr) == (0, True), imported.stderr
    refused = run_command(*asked, "--properties", str(server.files / "absent"))
    assert (refused.returncode, "absent" in refused.stderr) == (2, True), refused.stderr


def test_a_broker_of_our_own_is_a_member_by_the_same_properties(
    secured: dict[str, KafkaCluster], zookeeper_with_users: SecuredZooKeeper, servers_folder: RunFolder
) -> None:
    server = zookeeper_with_users
    settings = {"zookeeper": server.secure_connect + BY_US, "properties": str(server.write_properties())}
    with PythonBroker(servers_folder, server.connect + BY_US, 3, settings=settings) as broker:
        with open_client(server.connect, LOGIN) as client:
            ours, stock = (set(client.get_acls(f"{BY_US}/brokers/ids/{each}")[0]) for each in (3, 1))
        assert ours == stock
        broker.stop()
        assert PASSWORD not in broker.log()


def test_users_are_made_before_there_is_a_broker_and_strangers_do_not_see_them(
    zookeeper_with_users: SecuredZooKeeper, tmp_path: Path
) -> None:
    server, chroot = zookeeper_with_users, "/without-brokers"
    (tmp_path / "bob").write_text("bob's secret\n")
    asked = ("scram-users", "--directory", str(tmp_path), "--zookeeper", server.secure_connect + chroot)
    for made_now in (1, 0):
        made = run_command(*asked, "--properties", str(server.write_properties()))
        assert (made.returncode, f"{made_now} of them created now" in made.stdout) == (0, True), made.stderr
        assert "bob's secret" not in made.stdout + made.stderr
    with open_client(server.connect, LOGIN) as client:
        acls = {
            each: frozenset(client.get_acls(each)[0]) for each in (f"{chroot}/config/users", f"{BY_US}/config/users")
        }
        assert b"SCRAM-SHA-512" in client.get(f"{chroot}/config/users/bob")[0]
        assert set(client.get_acls(f"{chroot}/config/users/bob")[0]) == acls[f"{chroot}/config/users"]
        client.delete(chroot, recursive=True)
    assert len(set(acls.values())) == 1, "as a broker makes it"
    refused = run_command(*asked, "--properties", str(tmp_path / "absent"))
    assert (refused.returncode, "absent" in refused.stderr) == (2, True)
