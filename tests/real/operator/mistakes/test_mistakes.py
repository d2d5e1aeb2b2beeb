"""The most frequent mistakes of users, and the answers of `kubectl apply`, `get` and `describe`."""

import json
import re
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field
from itertools import zip_longest
from typing import Any

import pytest

from devcluster.clusters.kafka import KafkaCluster
from devcluster.clusters.kontroller import ControllerProcess
from devcluster.clusters.kubernetes import CommandError, KubernetesCluster
from devcluster.clusters.run_folder import RunFolder
from devcluster.clusters.zookeeper import ZooKeeper
from devcluster.running.processes import wait_until
from tests.real.operator.operated import NAMESPACE, Objects, operate_namespace, run_operator

pytestmark = [pytest.mark.real, pytest.mark.timeout(300)]

TOPIC: dict[str, Any] = {"partitions": 2, "replicationFactor": 1}
MOVE: dict[str, Any] = {"partitions": [{"topic": "orders", "partition": 0, "replicas": [1]}]}
ELECTION: dict[str, Any] = {"topics": ["orders"]}
NOBODY = {"connect": "127.0.0.1:1"}
HOME: dict[str, Any] = {"allowedNamespaces": [{"namespace": NAMESPACE}]}


@dataclass(frozen=True, slots=True, kw_only=True)
class Refused:
    """A mistake that the API server refuses, and the words of kubectl after the name of the object."""

    kind: str
    spec: dict[str, Any]
    says: str
    before: dict[str, Any] | None = None
    """The existing object; None if there is none yet."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Taken:
    """A mistake that the API server accepts, and the READY, REASON and (a part of) the message of the object."""

    kind: str
    spec: dict[str, Any]
    ready: str = "False"
    reason: str
    says: str
    annotations: dict[str, str] = field(default_factory=dict)


def topic(**spec: Any) -> dict[str, Any]:
    return {**TOPIC, **spec}


def move_of(topic: str, *replicas: int, partition: int = 0) -> dict[str, Any]:
    return {"partitions": [{"topic": topic, "partition": partition, "replicas": list(replicas)}]}


def windows(schedule: str) -> dict[str, Any]:
    return {**MOVE, "schedule": {"windows": [{"schedule": schedule, "durationMinutes": 60}]}}


REFUSED = {
    "fewer partitions": Refused(
        kind="KafkaTopic",
        before=TOPIC,
        spec=topic(partitions=1),
        says="spec.partitions: Forbidden: the number of partitions cannot decrease: Kafka cannot take"
        " partitions away from a topic",
    ),
    "another name of the topic": Refused(
        kind="KafkaTopic",
        before=TOPIC,
        spec=topic(topicName="renamed"),
        says="spec.topicName: Forbidden: topicName cannot change: Kafka cannot rename a topic",
    ),
    "another cluster": Refused(
        kind="KafkaTopic",
        before=TOPIC,
        spec=topic(clusterRef={"name": "other"}),
        says="spec.clusterRef: Forbidden: clusterRef cannot change: delete the object and create it for"
        " the other cluster",
    ),
    "replicas said twice": Refused(
        kind="KafkaTopic",
        spec=topic(replicaAssignment=[[1], [1]]),
        says='spec: Invalid value: "object": give either replicationFactor or replicaAssignment',
    ),
    "no number of replicas": Refused(
        kind="KafkaTopic",
        spec={"partitions": 1},
        says='spec: Invalid value: "object": give either replicationFactor or replicaAssignment',
    ),
    "no number of partitions": Refused(
        kind="KafkaTopic",
        spec={"replicationFactor": 1},
        says='spec.partitions: Invalid value: "object": give partitions, or a replicaAssignment,'
        " which sets their number",
    ),
    "a topic name with a slash": Refused(
        kind="KafkaTopic",
        spec=topic(topicName="orders/eu"),
        says='spec.topicName: Invalid value: "string": a topic name has only the characters a-z A-Z 0-9 .'
        " _ - and is neither '.' nor '..'",
    ),
    "a policy in lower case": Refused(
        kind="KafkaTopic",
        spec=topic(deletionPolicy="delete"),
        says="\n"
        '* spec.deletionPolicy: Unsupported value: "delete": supported values: "Retain", "Delete"\n'
        "* <nil>: Invalid value: null: some validation rules were not checked because the object was"
        " invalid; correct the existing errors to complete validation",
    ),
    "a move that is to move something else": Refused(
        kind="PartitionReassignment",
        before={**MOVE, "suspend": True},
        spec={**move_of("orders", 1, partition=1), "suspend": True},
        says="spec: Forbidden: partitions and drainBrokers cannot change: create a new PartitionReassignment",
    ),
    "a move and a drain at once": Refused(
        kind="PartitionReassignment",
        spec={**MOVE, "drainBrokers": [1]},
        says='spec: Invalid value: "object": give either partitions or drainBrokers',
    ),
    "a window with a nickname of cron": Refused(
        kind="PartitionReassignment",
        spec=windows("@daily"),
        says='spec.schedule.windows[0].schedule: Invalid value: "string": schedule is a cron expression of'
        " five fields, such as 30 3 * * SUN",
    ),
    "an unclean election by mistake": Refused(
        kind="PreferredElection",
        spec={**ELECTION, "electionType": "Unclean"},
        says='spec.acknowledgeDataLoss: Invalid value: "object": an unclean election may lose records that'
        " were acknowledged: set acknowledgeDataLoss: true",
    ),
    "an election of everything and of something": Refused(
        kind="PreferredElection",
        spec={**ELECTION, "allPartitions": True},
        says='spec: Invalid value: "object": give exactly one of partitions, topics and allPartitions: true',
    ),
    "a ZooKeeper without a port": Refused(
        kind="KafkaCluster",
        spec={"zookeeper": {"connect": "zookeeper"}},
        says='spec.zookeeper.connect: Invalid value: "string": zookeeper.connect is'
        " host:port[,host:port...][/chroot], such as zk-0.zk:2181,zk-1.zk:2181/kafka",
    ),
    "a cluster without an address": Refused(
        kind="KafkaCluster",
        spec={"allowedNamespaces": [{"namespace": "*"}]},
        says='spec: Invalid value: "object": give zookeeper, or bootstrapServers of a cluster without ZooKeeper',
    ),
}

TAKEN = {
    "a cluster that is not there": Taken(
        kind="KafkaTopic",
        spec=topic(clusterRef={"name": "dmeo"}),
        reason="ClusterNotFound",
        says="there is no KafkaCluster operated/dmeo: create it, or correct clusterRef (which needs a new object)",
    ),
    "a pause in other words": Taken(
        kind="KafkaTopic",
        spec=TOPIC,
        annotations={"kontroller.dev/pause": "True"},
        ready="Unknown",
        reason="Paused",
        says="paused by the annotation kontroller.dev/pause: 'True' pauses, too; only 'false' does not",
    ),
    "more replicas than brokers": Taken(
        kind="KafkaTopic",
        spec=topic(replicationFactor=3),
        reason="NotEnoughBrokers",
        says="a replication factor of 3 needs as many live brokers, and there are 1: start more brokers or"
        " ask for fewer replicas",
    ),
    "a configuration that Kafka does not know": Taken(
        kind="KafkaTopic",
        spec=topic(config={"retention": "7d"}),
        reason="InvalidConfig",
        says="correct config: Unknown topic config name: retention",
    ),
    "a value that Kafka does not take": Taken(
        kind="KafkaTopic",
        spec=topic(config={"retention.ms": "7d"}),
        reason="InvalidConfig",
        says="correct config: Invalid value 7d for configuration retention.ms: Not a number of type LONG",
    ),
    "two objects for one topic": Taken(
        kind="KafkaTopic",
        spec=topic(topicName="orders"),
        reason="ResourceConflict",
        says="topic orders belongs to operated/orders, which is older: delete this object to keep things as they are;"
        " delete operated/orders to hand the topic with its data over to this object",
    ),
    "a broker that is not there": Taken(
        kind="KafkaTopic",
        spec={"replicaAssignment": [[7]]},
        reason="UnknownBroker",
        says="broker 7 is not registered: start it, or change replicaAssignment",
    ),
    "a namespace that may not use the cluster": Taken(
        kind="KafkaTopic",
        spec=topic(clusterRef={"name": "closed"}),
        reason="NamespaceNotAllowed",
        says="KafkaCluster operated/closed does not allow namespace operated: add it to spec.allowedNamespaces there",
    ),
    "a name without the prefix of the namespace": Taken(
        kind="KafkaTopic",
        spec=topic(clusterRef={"name": "shared"}),
        reason="TopicPrefixRequired",
        says="topics of namespace operated must have names that begin with shop., unlike taken-8",
    ),
    "a drain in a namespace with a prefix": Taken(
        kind="PartitionReassignment",
        spec={"drainBrokers": [1], "clusterRef": {"name": "shared"}},
        reason="TopicPrefixRequired",
        says="namespace operated may only have topics whose names begin with shop.: name the partitions to"
        " move instead of drainBrokers",
    ),
    "a move of a topic that is not there": Taken(
        kind="PartitionReassignment",
        spec=move_of("odrers", 1),
        reason="UnknownTopic",
        says="the cluster has no topic odrers",
    ),
    "a move to a broker that is not there": Taken(
        kind="PartitionReassignment",
        spec=move_of("orders", 7),
        reason="UnknownBroker",
        says="broker 7 is not registered: start it, or choose another one",
    ),
    "a drain without another broker": Taken(
        kind="PartitionReassignment",
        spec={"drainBrokers": [1]},
        reason="NotEnoughBrokers",
        says="broker 1 cannot be emptied: a replication factor of 1 needs as many live brokers, and there"
        " are 0: start more brokers or ask for fewer replicas",
    ),
    "a schedule that never comes": Taken(
        kind="PreferredElection",
        spec={**ELECTION, "schedule": "0 0 31 2 *"},
        reason="InvalidSchedule",
        says="schedule '0 0 31 2 *' is no cron expression: Bad day-of-month",
    ),
    "a time zone that is none": Taken(
        kind="PreferredElection",
        spec={**ELECTION, "schedule": "0 3 * * *", "timeZone": "Europe/Berln"},
        reason="InvalidSchedule",
        says="there is no time zone 'Europe/Berln': name one as Europe/Berlin",
    ),
    "a level that no broker supports": Taken(
        kind="FeatureSet",
        spec={"features": [{"name": "no.such.feature", "maxVersionLevel": 3}]},
        reason="FeatureUnsupported",
        says="no.such.feature cannot be finalized at 3: broker 1 supports none",
    ),
    "a chroot that is not there": Taken(
        kind="KafkaCluster",
        spec={"zookeeper": {"connect": "CONNECT/wrong"}},
        reason="ChrootNotFound",
        says="there is no /mistaken/wrong: use the chroot of the brokers' zookeeper.connect, or start them",
    ),
    "an address where nobody answers": Taken(
        kind="KafkaCluster",
        spec={"zookeeper": NOBODY},
        ready="Unknown",
        reason="ZooKeeperUnavailable",
        says="ZooKeeper at 127.0.0.1:1 is out of reach: ",
    ),
    "a second object for one Kafka cluster": Taken(
        kind="KafkaCluster",
        spec={"zookeeper": {"connect": "CONNECT"}},
        ready="True",
        reason="OtherClusterDecides",
        says="KafkaCluster operated/demo stands for the same Kafka cluster, and its spec.allowedNamespaces"
        " also applies to this one",
    ),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Stage:
    """A namespace with the KafkaCluster `demo`, which has one broker, and an operator."""

    api: KubernetesCluster
    objects: Objects
    connect: str

    def row(self, kind: str, name: str) -> dict[str, str]:
        """Return the output of `kubectl get` for an object, by column."""
        heads, line = self.api.kubectl("get", kind, name, "--namespace", NAMESPACE).splitlines()
        begins = [head.start() for head in re.finditer(r"\S+", heads)]
        columns = [slice(begin, end) for begin, end in zip_longest(begins, begins[1:])]
        return {heads[column].strip(): line[column].strip() for column in columns}

    def events(self, kind: str, name: str) -> str:
        """Return the events of an object in the output of `kubectl describe`."""
        described = self.api.kubectl("describe", kind, name, "--namespace", NAMESPACE)
        return " ".join(described.partition("Events:")[2].split())


@pytest.fixture(scope="module")
def stage(servers_folder: RunFolder, zookeeper: ZooKeeper, kubernetes_api: KubernetesCluster) -> Iterator[Stage]:
    """A Kafka cluster of its own, because these tests delete a KafkaCluster before its objects."""
    kafka = KafkaCluster(servers_folder, zookeeper, brokers=1, chroot="/mistaken")
    with ExitStack() as stack:
        with zookeeper.client() as client:
            client.ensure_path("/mistaken")
        stack.enter_context(ControllerProcess(servers_folder, kafka.zookeeper_connect, name="mistaken-controller"))
        stack.enter_context(kafka)
        objects = stack.enter_context(operate_namespace(kubernetes_api, kafka.zookeeper_connect, **HOME))
        stack.enter_context(run_operator(servers_folder, kubernetes_api))
        objects.wait_ready("kafkacluster", "demo")
        objects.apply("KafkaTopic", "orders", TOPIC)
        objects.wait_ready("kafkatopic", "orders")
        elsewhere = [{"namespace": "elsewhere"}]
        objects.apply("KafkaCluster", "closed", {"zookeeper": NOBODY, "allowedNamespaces": elsewhere})
        prefixed = [{"namespace": NAMESPACE, "topicPrefix": "shop."}]
        objects.apply(
            "KafkaCluster", "shared", {"zookeeper": {"connect": "127.0.0.1:2"}, "allowedNamespaces": prefixed}
        )
        yield Stage(api=kubernetes_api, objects=objects, connect=kafka.zookeeper_connect)


@pytest.mark.parametrize("mistake", REFUSED.values(), ids=REFUSED)
def test_the_api_server_refuses_it_in_these_words(stage: Stage, mistake: Refused) -> None:
    name = f"refused-{list(REFUSED.values()).index(mistake)}"
    if mistake.before is not None:
        stage.objects.apply(mistake.kind, name, mistake.before)
    with pytest.raises(CommandError) as refused:
        stage.objects.apply(mistake.kind, name, mistake.spec)
    assert str(refused.value).rstrip().endswith(f'{mistake.kind} "{name}" is invalid: {mistake.says}')


@pytest.mark.parametrize("mistake", TAKEN.values(), ids=TAKEN)
def test_the_object_says_it_in_these_words(stage: Stage, mistake: Taken) -> None:
    name = f"taken-{list(TAKEN.values()).index(mistake)}"
    spec = json.loads(json.dumps(mistake.spec).replace("CONNECT", stage.connect))
    stage.objects.apply(mistake.kind, name, spec, annotations=mistake.annotations)
    stage.objects.wait_ready(mistake.kind, name, mistake.ready, mistake.reason)
    assert mistake.says in stage.objects.condition(mistake.kind, name)["message"]
    row = stage.row(mistake.kind, name)
    assert (row["READY"], row["REASON"]) == (mistake.ready, mistake.reason)
    stage.objects.wait_for_event(name, mistake.reason)
    assert " ".join(mistake.says.split()) in stage.events(mistake.kind, name)


def test_a_field_that_is_misspelled_is_named(stage: Stage) -> None:
    with pytest.raises(CommandError, match=r'unknown field "spec\.replicas"|\.spec\.replicas: field not declared'):
        stage.objects.apply("KafkaTopic", "misspelled", {"partitions": 1, "replicas": 1})


def test_a_cluster_that_is_deleted_first_waits_and_says_for_what(stage: Stage) -> None:
    stage.objects.apply("KafkaCluster", "doomed", {"zookeeper": {"connect": stage.connect}})
    stage.objects.apply("KafkaTopic", "left", topic(clusterRef={"name": "doomed"}))
    stage.objects.wait_ready("kafkatopic", "left")
    wait_until(
        lambda: (stage.objects.get("kafkacluster", "doomed") or {})["metadata"].get("finalizers"),
        "the cluster is held",
    )
    stage.objects.delete("kafkacluster", "doomed")
    stage.objects.wait_ready("kafkacluster", "doomed", "False", "WaitingForDependents")
    assert stage.objects.condition("kafkacluster", "doomed")["message"] == (
        f"being deleted: 1 KafkaTopic ({NAMESPACE}/left) refers to it. Delete these first. To delete it without them, so"
        f" that their topics and data stay: kubectl annotate kafkaclusters.kontroller.dev doomed --namespace {NAMESPACE}"
        " kontroller.dev/delete-before-dependents=true"
    )
    row = stage.row("kafkacluster", "doomed")
    assert (row["READY"], row["REASON"]) == ("False", "WaitingForDependents")
    stage.objects.wait_for_event("doomed", "WaitingForDependents")
    stage.objects.delete("kafkatopic", "left")
    stage.objects.wait_gone("kafkacluster", "doomed")
