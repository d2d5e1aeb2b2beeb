"""The operator on a cluster without ZooKeeper whose brokers want a login: real features, and what goes wrong.

What it does with topics, moves and elections is in `tests/real/operator`, the same as with ZooKeeper.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from devcluster.clusters.kraft import KRaftCluster
from devcluster.clusters.kubernetes import KubernetesCluster
from devcluster.clusters.listeners import ListenerNames
from devcluster.clusters.run_folder import RunFolder
from devcluster.filling.parts import Part
from devcluster.running.processes import wait_until
from tests.real.operator.operated import Objects, Operator, operated_namespace, running_operator

pytestmark = [pytest.mark.real(Part.KRAFT), pytest.mark.timeout(300)]

RARE = pytest.mark.matrix("what is rare without ZooKeeper")
LISTENERS = ListenerNames(inter_broker="INTERNAL", clients="CLIENT", protocols={"CLIENT": "SASL_PLAINTEXT"})
MODULE = "org.apache.kafka.common.security.plain.PlainLoginModule required"
PASSWORD = "operator secret"
OF_4_0, OF_4_1 = 25, 27


@pytest.fixture(scope="module")
def kafka(servers_folder: RunFolder) -> Iterator[KRaftCluster]:
    """Three brokers and three controllers, with the features of Kafka 4.0."""
    login = f'{MODULE} user_operator="{PASSWORD}";'
    properties = {"sasl.enabled.mechanisms": "PLAIN", "listener.name.client.plain.sasl.jaas.config": login}
    with KRaftCluster(
        servers_folder, name="featured", release="4.0", listeners=LISTENERS, properties=properties
    ) as cluster:
        yield cluster


@pytest.fixture(scope="module")
def objects(kubernetes_api: KubernetesCluster, kafka: KRaftCluster) -> Iterator[Objects]:
    with operated_namespace(kubernetes_api, bootstrapServers=kafka.bootstrap_servers) as found:
        yield found


@pytest.fixture(scope="module")
def operator(
    servers_folder: RunFolder,
    kubernetes_api: KubernetesCluster,
    objects: Objects,
    kafka: KRaftCluster,
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[Operator]:
    """It has the login from a file that names the brokers."""
    file: Path = tmp_path_factory.mktemp("properties") / "client.properties"
    file.write_text(
        f"bootstrap.servers={kafka.bootstrap_servers}\nsecurity.protocol=SASL_PLAINTEXT\nsasl.mechanism=PLAIN\n"
        f'sasl.jaas.config={MODULE} username="operator" password="{PASSWORD}";\n'
    )
    with running_operator(servers_folder, kubernetes_api, env={"KONTROLLER_PROPERTIES": str(file)}) as running:
        yield running
        assert PASSWORD not in running.log()


def levels(**features: int) -> dict[str, Any]:
    names = {name.replace("_", "."): level for name, level in features.items()}
    return {"features": [{"name": name, "maxVersionLevel": level} for name, level in names.items()]}


def finalized(objects: Objects) -> dict[str, int]:
    """As the KafkaCluster shows them."""
    shown = objects.status("kafkacluster", "demo").get("features", {}).get("finalized", [])
    return {each["name"]: each["maxVersionLevel"] for each in shown}


def test_features_are_tried_upgraded_and_never_lowered_where_kafka_refuses_it(
    operator: Operator, objects: Objects
) -> None:
    objects.wait_ready("kafkacluster", "demo")
    assert finalized(objects)["metadata.version"] == OF_4_0
    upgraded = levels(metadata_version=OF_4_1, kraft_version=1, group_version=1, transaction_version=2)
    objects.apply("FeatureSet", "levels", {**upgraded, "dryRun": True})
    dry = objects.wait_ready("featureset", "levels", "False", "DryRun")["status"]
    assert dry["features"][0]["message"] == f"to be changed: metadata.version from {OF_4_0} to {OF_4_1}"
    assert finalized(objects)["metadata.version"] == OF_4_0

    objects.apply("FeatureSet", "levels", upgraded)
    status = objects.wait_ready("featureset", "levels")["status"]
    assert {each["name"]: each["finalizedLevel"] for each in status["features"]} == {
        "metadata.version": OF_4_1,
        "kraft.version": 1,
        "group.version": 1,
        "transaction.version": 2,
    }
    wait_until(lambda: finalized(objects).get("metadata.version") == OF_4_1, "the KafkaCluster shows it")

    lower = {**levels(metadata_version=20, transaction_version=1), "allowDowngrade": True}
    for dry_run, reason in ((True, "DryRun"), (False, "RequestRefused")):
        objects.apply("FeatureSet", "levels", {**lower, "dryRun": dry_run})
        refused = objects.wait_ready("featureset", "levels", "False", reason)["status"]["features"]
        assert "it might delete metadata information" in refused[0]["message"]
    wait_until(lambda: finalized(objects).get("transaction.version") == 1, "what is not refused is done")
    assert finalized(objects)["metadata.version"] == OF_4_1
    objects.delete("featureset", "levels")


def test_a_move_with_a_limit_says_that_there_is_none_to_be_had_and_does_not_begin(
    operator: Operator, objects: Objects
) -> None:
    objects.apply("KafkaTopic", "limited", {"replicaAssignment": [[1, 2]]})
    objects.wait_ready("kafkatopic", "limited")
    target = {"partitions": [{"topic": "limited", "partition": 0, "replicas": [3, 1]}]}
    objects.apply("PartitionReassignment", "limited", {**target, "throttle": {"bytesPerSecond": 1_000_000}})
    objects.wait_ready("partitionreassignment", "limited", "False", "NotSupported")
    assert objects.status("kafkatopic", "limited")["partitions"][0]["replicas"] == [1, 2]
    objects.delete("partitionreassignment", "limited")
    objects.apply("PartitionReassignment", "unlimited", target)
    objects.wait_ready("partitionreassignment", "unlimited")


def test_work_goes_on_over_the_death_of_the_active_controller_and_of_a_broker(
    operator: Operator, objects: Objects, kafka: KRaftCluster
) -> None:
    active = objects.wait_ready("kafkacluster", "demo")["status"]["controller"]["id"]
    kafka.controller(active).kill()
    objects.apply(
        "KafkaTopic", "lasting", {"partitions": 2, "replicationFactor": 1, "config": {"retention.ms": "9000"}}
    )
    kafka.broker(1).kill()
    objects.wait_ready("kafkatopic", "lasting")
    objects.apply("KafkaTopic", "lasting", {"partitions": 4, "replicationFactor": 2})
    kafka.start()
    status = objects.wait_ready("kafkatopic", "lasting")["status"]
    assert (status["counts"]["partitions"], status["replicationFactor"]) == (4, 2)
    after = objects.wait_ready("kafkacluster", "demo")["status"]
    assert after["controller"]["kind"] == "KRaft"
    assert [broker["id"] for broker in after["brokers"]] == [1, 2, 3]
    assert "TopicAdopted" not in objects.events("lasting")


@RARE
def test_a_partition_whose_last_replica_in_sync_is_gone_gets_another_leader_where_a_person_takes_the_loss(
    operator: Operator, objects: Objects, kafka: KRaftCluster
) -> None:
    def leader() -> int:
        return int(objects.status("kafkatopic", "lossy")["partitions"][0]["leader"])

    objects.apply("KafkaTopic", "lossy", {"replicaAssignment": [[2, 3]], "config": {"min.insync.replicas": "1"}})
    objects.wait_ready("kafkatopic", "lossy")
    kafka.broker(3).kill()
    wait_until(lambda: objects.status("kafkatopic", "lossy")["partitions"][0]["isr"] == [2], "3 is out of sync")
    kafka.broker(2).kill()
    wait_until(lambda: leader() == -1, "nobody leads it")
    kafka.broker(3).start()
    objects.wait_ready("kafkatopic", "lossy", "False", "PartitionsOffline")
    objects.apply(
        "PreferredElection",
        "lossy",
        {"electionType": "Unclean", "acknowledgeDataLoss": True, "partitions": [{"topic": "lossy", "partition": 0}]},
    )
    objects.wait_for("preferredelection", "lossy", "Complete")
    assert leader() == 3
    kafka.broker(2).start()
    objects.wait_ready("kafkatopic", "lossy")


@RARE
def test_a_broker_is_emptied_of_what_it_has(operator: Operator, objects: Objects) -> None:
    def replicas() -> list[set[int]]:
        return [set(each["replicas"]) for each in objects.status("kafkatopic", "leaving")["partitions"]]

    objects.apply("KafkaTopic", "leaving", {"replicaAssignment": [[1, 2], [3, 1]], "driftPolicy": "Report"})
    objects.wait_ready("kafkatopic", "leaving")
    objects.apply("PartitionReassignment", "leaving", {"drainBrokers": [1]})
    objects.wait_for("partitionreassignment", "leaving", "Complete")
    wait_until(lambda: replicas() == [{2, 3}, {2, 3}], "nothing is on broker 1")
