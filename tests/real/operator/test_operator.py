"""The operator on a real API server and real brokers, in three kinds of clusters.

These are: with ZooKeeper under Kafka's own controller, with ZooKeeper under ours, and without ZooKeeper. A test without
a mark runs on all three. Brokers of other releases have one test of each kind of object.
"""

import json
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from datetime import UTC, datetime, timedelta
from itertools import count
from typing import Any

import pytest

from controller_operator.reconciling.measuring.move_meter import EVERY_S, TIMEOUT_S
from devcluster.building.java import KAFKA_VERSION, KRAFT_VERSION, OLDER_VERSIONS, OTHER_KRAFT_VERSIONS
from devcluster.clients.tools import CONFIGS, run_tool
from devcluster.clusters.kafka import KafkaCluster
from devcluster.clusters.kontroller import ControllerProcess
from devcluster.clusters.kraft import KRaftCluster
from devcluster.clusters.kubernetes import KubernetesCluster
from devcluster.clusters.run_folder import RunFolder
from devcluster.clusters.zookeeper import ZooKeeper
from devcluster.filling.parts import Part
from devcluster.running.processes import ConditionTimeoutError, wait_until
from devcluster.waiting.health_gate import HealthGate
from tests.real.operator.operated import (
    FINALIZER,
    NAMESPACE,
    RECORD_BYTES,
    RECORDS,
    Objects,
    Operator,
    fill,
    operate_namespace,
    run_operator,
    slow_down,
)
from tests.real.operator.witnesses import Witness, Znodes, where, witness_of

pytestmark = [pytest.mark.real(Part.KRAFT), pytest.mark.timeout(300)]

CLUSTERS = ("Kafka", "Kontroller", "KRaft")
OTHER_RELEASES = (
    *(f"Kontroller-{release}" for release in OLDER_VERSIONS),
    *(f"KRaft-{release}" for release in OTHER_KRAFT_VERSIONS),
)
with_zookeeper = pytest.mark.parametrize("kafka", CLUSTERS[:2], indirect=True)
"""Marks tests that write or check znodes."""
under_kontroller = pytest.mark.parametrize("kafka", CLUSTERS[1:2], indirect=True)
"""Marks tests with ZooKeeper in which only the operator's part matters."""
on_every_release = pytest.mark.parametrize("kafka", [*CLUSTERS, *OTHER_RELEASES], indirect=True)
"""Marks one test of each kind, from creation to deletion."""
FETCH_BYTES = 1 << 20
"""The default of `replica.fetch.max.bytes`."""
UNCLEAN = {"electionType": "Unclean", "acknowledgeDataLoss": True}

_numbers = count(1)


@pytest.fixture(scope="module")
def controllers() -> list[ControllerProcess]:
    """Our controllers that run for the module: that of `kafka`, if it has one."""
    return []


@pytest.fixture(scope="module", params=CLUSTERS)
def kafka(
    request: pytest.FixtureRequest,
    servers_folder: RunFolder,
    zookeeper: ZooKeeper,
    controllers: list[ControllerProcess],
) -> Iterator[Any]:
    """Three brokers under Kafka's own controller, or under ours, or three without ZooKeeper and as many controllers."""
    controller, _, release = request.param.partition("-")
    if controller == "KRaft":
        name = f"operated-{request.param}".lower()
        with KRaftCluster(servers_folder, name=name, version=release or KRAFT_VERSION) as kraft:
            yield kraft
        return
    chroot = f"/operated-by-{request.param}".lower()
    with ExitStack() as stack:
        version = release or KAFKA_VERSION
        cluster = KafkaCluster(servers_folder, zookeeper, brokers=3, chroot=chroot, version=version)
        with zookeeper.client() as client:
            client.ensure_path(chroot)
        if controller == "Kontroller":
            ours = ControllerProcess(servers_folder, cluster.zookeeper_connect, name="operated-controller")
            controllers.append(stack.enter_context(ours))
            stack.callback(controllers.remove, ours)
        yield stack.enter_context(cluster)


@pytest.fixture(scope="module")
def witness(kafka: KafkaCluster | KRaftCluster) -> Iterator[Witness]:
    with witness_of(kafka) as found:
        yield found


@pytest.fixture(scope="module")
def znodes(witness: Witness) -> Znodes:
    """The znodes of a cluster with ZooKeeper."""
    assert isinstance(witness, Znodes)
    return witness


@pytest.fixture(scope="module")
def objects(kubernetes_api: KubernetesCluster, kafka: KafkaCluster | KRaftCluster) -> Iterator[Objects]:
    """The namespace with the KafkaCluster `demo`; emptied at the end, with the remaining finalizers."""
    with operate_namespace(kubernetes_api, **where(kafka)) as found:
        yield found


@pytest.fixture
def healthy(kafka: Any, witness: Witness, controllers: list[ControllerProcess]) -> Iterator[None]:
    """A healthy cluster for each test, which is responsible for the state it leaves; without ZooKeeper Kafka takes care
    of it.
    """
    if not isinstance(kafka, KafkaCluster) or not isinstance(witness, Znodes):
        yield
        return
    gate = HealthGate(kafka=kafka, znodes=witness, controller=next(iter(controllers), None))
    gate.open()
    yield
    gate.close()


@pytest.fixture
def operator(
    servers_folder: RunFolder, kubernetes_api: KubernetesCluster, objects: Objects, healthy: None
) -> Iterator[Operator]:
    """A running operator with exactly the rights that the chart gives it; nothing unexpected may happen to it."""
    with run_operator(servers_folder, kubernetes_api) as running:
        yield running


@pytest.fixture
def topic() -> str:
    """The test's own topic name."""
    return f"topic-{next(_numbers)}"


@contextmanager
def _leaderless(kafka: KafkaCluster, znodes: Znodes, *topics: str) -> Iterator[None]:
    """Make topics whose partition 0 had brokers 1 and 2 and only has 2 left, which is alive and not in sync."""
    for name in topics:
        znodes.create_topic(name, [[1, 2], [3]])
        wait_until(lambda name=name: znodes.is_served(name, range(2)), "the topic is served")  # type: ignore[misc]  # a lambda with defaults
    kafka.broker(2).stop()
    try:
        wait_until(lambda: all(znodes.isr(name, 0) == [1] for name in topics), "broker 2 has left")
        kafka.broker(1).stop()
        kafka.broker(2).start()
        wait_until(lambda: all(znodes.leader(name, 0) == -1 for name in topics), "nobody leads")
        yield
    finally:
        kafka.start()


def topic_spec(**changes: Any) -> dict[str, Any]:
    return {"partitions": 3, "replicationFactor": 2, **changes}


def test_a_cluster_shows_its_controller_brokers_and_counts(
    operator: Operator, objects: Objects, witness: Witness, request: pytest.FixtureRequest
) -> None:
    cluster = objects.wait_ready("kafkacluster", "demo")
    status = cluster["status"]
    assert status["controller"]["id"] == witness.controller()
    assert status["controller"]["kind"] == request.node.callspec.params["kafka"].partition("-")[0]
    assert [broker["id"] for broker in status["brokers"]] == [1, 2, 3]
    assert status["counts"]["offline"] == 0


def test_a_topic_is_created_grows_and_changes_its_configuration(
    operator: Operator, objects: Objects, witness: Witness, topic: str
) -> None:
    objects.apply("KafkaTopic", topic, topic_spec(config={"retention.ms": "60000", "segment.ms": "30000"}))
    created = objects.wait_ready("kafkatopic", topic)["status"]
    assert witness.is_served(topic, range(3))
    assert created["topicId"] == witness.topic_id(topic)
    assert created["counts"]["online"] == 3
    for row in created["partitions"]:
        assert row["replicas"] == witness.read_assignment(topic, row["partition"])
        assert row["leader"] == witness.leader(topic, row["partition"])
        assert sorted(row["isr"]) == witness.isr(topic, row["partition"])

    objects.apply("KafkaTopic", topic, topic_spec(partitions=5, config={"retention.ms": "70000"}))
    grown = objects.wait_ready("kafkatopic", topic)["status"]
    assert grown["counts"]["partitions"] == 5
    assert grown["topicId"] == created["topicId"]
    assert witness.is_served(topic, range(5))
    assert witness.config(topic) == {"retention.ms": "70000"}
    assert "metadata.finalizers" not in json.dumps(objects.get("kafkatopic", topic))


@with_zookeeper
def test_brokers_use_a_configuration_that_was_changed(
    operator: Operator, objects: Objects, kafka: KafkaCluster, topic: str
) -> None:
    objects.apply("KafkaTopic", topic, topic_spec(config={"retention.ms": "60000"}))
    objects.wait_ready("kafkatopic", topic)
    objects.apply("KafkaTopic", topic, topic_spec(config={"retention.ms": "123456"}))
    objects.wait_ready("kafkatopic", topic)

    def describe_topic() -> str:
        told = ("--bootstrap-server", kafka.bootstrap_servers, "--entity-type", "topics", "--entity-name", topic)
        return run_tool(CONFIGS, *told, "--describe").stdout

    wait_until(lambda: "retention.ms=123456" in describe_topic(), "the brokers know the new configuration")


def test_a_topic_changed_elsewhere_is_put_right_or_reported(
    operator: Operator, objects: Objects, witness: Witness, topic: str
) -> None:
    objects.apply("KafkaTopic", topic, topic_spec(config={"retention.ms": "60000"}))
    objects.wait_ready("kafkatopic", topic)
    witness.set_config(topic, {"retention.ms": "1", "segment.ms": "5000"})
    wait_until(
        lambda: witness.config(topic) == {"retention.ms": "60000", "segment.ms": "5000"},
        "the drifted key is put right, and the other left alone",
    )
    objects.wait_ready("kafkatopic", topic)
    witness.set_config(topic, {"retention.ms": "1"})
    wait_until(lambda: ("DriftCorrected", 2) in objects.count_events(topic), "the second time is counted")
    assert objects.events(topic).count("DriftCorrected") == 1

    objects.apply("KafkaTopic", topic, topic_spec(config={"retention.ms": "60000"}, driftPolicy="Report"))
    objects.wait_ready("kafkatopic", topic)
    witness.set_config(topic, {"retention.ms": "2"})
    status = objects.wait_ready("kafkatopic", topic, "True", "Drifted")["status"]
    assert status["drift"] == [{"key": "config.retention.ms", "desired": "60000", "live": "2"}]
    assert objects.condition("kafkatopic", topic, "Drifted")["status"] == "True"
    assert witness.config(topic) == {"retention.ms": "2"}


def test_configuration_that_the_spec_does_not_name_is_shown_and_goes_only_if_the_spec_says_so(
    operator: Operator, objects: Objects, witness: Witness, topic: str
) -> None:
    named = {"cleanup.policy": "delete"}
    by_hand = {
        **named,
        "retention.ms": "604800000",
    }  # the default, which the topic now keeps whatever the brokers' default is
    objects.apply("KafkaTopic", topic, topic_spec(config=named))
    objects.wait_ready("kafkatopic", topic)
    witness.set_config(topic, by_hand)
    shown = {"total": 1, "keys": [{"key": "retention.ms", "value": "604800000"}]}
    wait_until(lambda: objects.status("kafkatopic", topic).get("undeclaredConfig") == shown, "the key is shown")
    objects.wait_for_event(topic, "UndeclaredConfig")
    assert witness.config(topic) == by_hand

    objects.apply("KafkaTopic", topic, topic_spec(config=named, undeclaredConfigPolicy="Remove"))
    wait_until(lambda: witness.config(topic) == named, "the key is removed")
    objects.wait_ready("kafkatopic", topic)
    assert objects.status("kafkatopic", topic)["undeclaredConfig"]["total"] == 0


@pytest.mark.parametrize(
    ("policy", "partitions", "is_adopted"),
    [("IfEqual", 2, True), ("IfEqual", 4, False), ("Never", 2, False), ("Always", 4, True)],
)
def test_an_existing_topic_is_adopted_as_the_policy_says(
    operator: Operator,
    objects: Objects,
    witness: Witness,
    topic: str,
    policy: str,
    partitions: int,
    is_adopted: bool,
) -> None:
    witness.create_topic(topic, [[1, 2], [2, 3]])
    wait_until(lambda: witness.is_served(topic, range(2)), "the topic is served")
    objects.apply("KafkaTopic", topic, topic_spec(partitions=partitions, adoptionPolicy=policy))
    if is_adopted:
        objects.wait_ready("kafkatopic", topic)
        assert witness.is_served(topic, range(partitions))
        objects.wait_for_event(topic, "TopicAdopted")
    else:
        objects.wait_ready("kafkatopic", topic, "False", "NotAdopted")
        assert objects.condition("kafkatopic", topic, "Stalled")["status"] == "True"
        assert len(witness.partitions(topic)) == 2


def test_the_older_of_two_claims_wins_and_the_other_takes_over_when_it_goes(
    operator: Operator, objects: Objects, topic: str
) -> None:
    objects.apply("KafkaTopic", f"{topic}-z", topic_spec(topicName=topic))
    objects.wait_ready("kafkatopic", f"{topic}-z")
    wait_until(lambda: _seconds_have_passed(objects, topic), "the second object is younger")
    objects.apply("KafkaTopic", f"{topic}-a", topic_spec(topicName=topic))
    objects.wait_ready("kafkatopic", f"{topic}-a", "False", "ResourceConflict")
    assert f"{NAMESPACE}/{topic}-z" in objects.condition("kafkatopic", f"{topic}-a", "Conflict")["message"]

    objects.delete("kafkatopic", f"{topic}-z")
    objects.wait_ready("kafkatopic", f"{topic}-a")
    assert objects.condition("kafkatopic", f"{topic}-a", "Conflict") == {}


@on_every_release
def test_a_retained_topic_outlives_its_object_and_a_deleted_one_does_not(
    operator: Operator, objects: Objects, witness: Witness, topic: str
) -> None:
    objects.apply("KafkaTopic", topic, topic_spec())
    retained = objects.wait_ready("kafkatopic", topic)
    assert "finalizers" not in retained["metadata"]
    objects.delete("kafkatopic", topic)
    objects.wait_gone("kafkatopic", topic)
    assert witness.is_served(topic, range(3))

    objects.apply("KafkaTopic", topic, topic_spec(deletionPolicy="Delete"))
    held = objects.wait_ready("kafkatopic", topic)
    assert held["metadata"]["finalizers"] == [FINALIZER]
    objects.delete("kafkatopic", topic)
    objects.wait_gone("kafkatopic", topic)
    assert witness.topic_id(topic) is None
    objects.wait_for_event(topic, "TopicDeleted")


def test_a_paused_object_changes_nothing_and_its_deletion_leaves_the_topic(
    operator: Operator, objects: Objects, witness: Witness, topic: str
) -> None:
    objects.apply("KafkaTopic", topic, topic_spec(deletionPolicy="Delete"))
    objects.wait_ready("kafkatopic", topic)
    objects.annotate("kafkatopic", topic, "kontroller.dev/pause=true")
    wait_until(lambda: bool(objects.condition("kafkatopic", topic, "Paused")), "the object is paused")
    objects.apply("KafkaTopic", topic, topic_spec(partitions=4, deletionPolicy="Delete"))
    wait_until(
        lambda: objects.status("kafkatopic", topic).get("plan", {}).get("total") == 1, "the plan shows what waits"
    )
    objects.delete("kafkatopic", topic)
    objects.wait_gone("kafkatopic", topic)
    assert witness.is_served(topic, range(3))
    assert len(witness.partitions(topic)) == 3


def test_a_paused_move_says_what_it_would_do_and_begins_without_its_pause(
    operator: Operator, objects: Objects, witness: Witness, topic: str
) -> None:
    witness.create_topic(topic, [[1, 2], [2, 3]])
    wait_until(lambda: witness.is_served(topic, range(2)), "the topic is served")
    targets = [{"topic": topic, "partition": number, "replicas": [3, 1]} for number in (0, 1)]
    spec = {"partitions": targets, "throttle": {"bytesPerSecond": 10_000_000}}
    objects.apply("PartitionReassignment", topic, spec, annotations={"kontroller.dev/pause": "true"})
    wait_until(lambda: "nextSteps" in objects.status("partitionreassignment", topic), "it says what would be done")
    assert objects.status("partitionreassignment", topic)["nextSteps"] == [
        "limit the move to 10000000 bytes a second at each broker",
        f"move 2 partitions: {topic}-0, {topic}-1",
    ]
    assert witness.partitions(topic) == {0: [1, 2], 1: [2, 3]}
    objects.annotate("partitionreassignment", topic, "kontroller.dev/pause-")
    objects.wait_for("partitionreassignment", topic, "Complete")
    assert "nextSteps" not in objects.status("partitionreassignment", topic)


def test_a_recreated_topic_is_never_deleted_for_its_predecessor(
    operator: Operator, objects: Objects, witness: Witness, topic: str
) -> None:
    objects.apply("KafkaTopic", topic, topic_spec(deletionPolicy="Delete", adoptionPolicy="Never"))
    objects.wait_ready("kafkatopic", topic)
    operator.process.stop()
    witness.delete_topic(topic)
    witness.create_topic(topic, [[1, 2]])
    operator.start()
    objects.wait_ready("kafkatopic", topic, "False", "NotAdopted")
    objects.wait_for_event(topic, "TopicRecreated")
    objects.delete("kafkatopic", topic)
    objects.wait_gone("kafkatopic", topic)
    assert witness.topic_id(topic) is not None


@pytest.mark.parametrize(
    ("spec", "reason"),
    [
        (topic_spec(replicationFactor=5), "NotEnoughBrokers"),
        ({"replicaAssignment": [[1, 9]]}, "UnknownBroker"),
        (topic_spec(config={"retention.ms": "for ever"}), "InvalidConfig"),
        (topic_spec(config={"retention": "1"}), "InvalidConfig"),
        (topic_spec(clusterRef={"name": "nowhere"}), "ClusterNotFound"),
        (topic_spec(clusterRef={"name": "demo", "namespace": "default"}), "ClusterNotFound"),
    ],
)
def test_what_cannot_be_is_refused_with_its_reason_and_nothing_is_written(
    operator: Operator, objects: Objects, witness: Witness, topic: str, spec: dict[str, Any], reason: str
) -> None:
    objects.apply("KafkaTopic", topic, spec)
    objects.wait_ready("kafkatopic", topic, "False", reason)
    assert witness.topic_id(topic) is None


@with_zookeeper
def test_an_object_whose_cluster_is_gone_can_be_deleted(operator: Operator, objects: Objects, topic: str) -> None:
    spec = topic_spec(clusterRef={"name": "nowhere"}, deletionPolicy="Delete")
    objects.apply("KafkaTopic", topic, spec, finalizers=[FINALIZER])
    objects.wait_ready("kafkatopic", topic, "False", "ClusterNotFound")
    objects.delete("kafkatopic", topic)
    objects.wait_gone("kafkatopic", topic)
    objects.wait_for_event(topic, "ClusterGone")


def test_a_reassignment_shows_every_partition_until_all_are_done(
    operator: Operator, objects: Objects, witness: Witness, topic: str
) -> None:
    witness.create_topic(topic, [[1, 2], [2, 3], [3, 1]])
    wait_until(lambda: witness.is_served(topic, range(3)), "the topic is served")
    targets = {0: [2, 3], 1: [3, 1], 2: [3, 1]}
    partitions = [{"topic": topic, "partition": number, "replicas": to} for number, to in targets.items()]
    objects.apply("PartitionReassignment", topic, {"partitions": partitions})
    status = objects.wait_ready("partitionreassignment", topic)["status"]
    assert status["phase"] == "Completed"
    assert status["counts"] == {"total": 3, "waiting": 0, "moving": 0, "done": 3, "failed": 0, "cancelled": 0}
    rows = {row["partition"]: row for row in status["partitions"]}
    assert [rows[number]["originalReplicas"] for number in range(3)] == [[1, 2], [2, 3], [3, 1]]
    for number, to in targets.items():
        assert rows[number]["step"] == "Done"
        assert rows[number]["replicas"] == to == witness.read_assignment(topic, number)
        assert rows[number]["leader"] in to
        assert set(to) <= set(witness.isr(topic, number))
    assert not witness.has_reassignments()


def test_a_reassignment_of_what_is_there_already_is_complete_at_once(
    operator: Operator, objects: Objects, witness: Witness, topic: str
) -> None:
    witness.create_topic(topic, [[1, 2]])
    wait_until(lambda: witness.is_served(topic, [0]), "the topic is served")
    spec = {"partitions": [{"topic": topic, "partition": 0, "replicas": [1, 2]}], "ttlSecondsAfterFinished": 1}
    objects.apply("PartitionReassignment", topic, spec)
    wait_until(lambda: objects.get("partitionreassignment", topic) is None, "the finished object deletes itself")
    assert "transact" not in operator.writes()


@pytest.mark.parametrize("is_operator_away", [False, True])
def test_deleting_a_running_reassignment_takes_it_back(
    operator: Operator,
    objects: Objects,
    witness: Witness,
    kafka: KafkaCluster | KRaftCluster,
    topic: str,
    is_operator_away: bool,
) -> None:
    witness.create_topic(topic, [[1], [2]])
    wait_until(lambda: witness.is_served(topic, range(2)), "the topic is served")
    fill(kafka, topic)
    with slow_down(kafka, topic):
        partitions = [{"topic": topic, "partition": number, "replicas": [3]} for number in range(2)]
        objects.apply("PartitionReassignment", topic, {"partitions": partitions})
        wait_until(
            lambda: objects.status("partitionreassignment", topic).get("counts", {}).get("done") == 1,
            "the empty partition has moved",
        )
        running = objects.get("partitionreassignment", topic) or {}
        assert running["status"]["phase"] == "Running", "it was not slowed"
        assert FINALIZER in running["metadata"]["finalizers"]
        assert witness.read_assignment(topic, 0) == [3, 1]
        wait_until(
            lambda: "bytesLeft" in objects.status("partitionreassignment", topic).get("progress", {}),
            "it is known how much is left",
        )
        if is_operator_away:
            operator.process.kill()
        objects.delete("partitionreassignment", topic)
        if is_operator_away:
            assert witness.read_assignment(topic, 0) == [3, 1], "nobody took it back"
            operator.start()
        objects.wait_gone("partitionreassignment", topic)
        assert witness.read_assignment(topic, 0) == [1]
        assert witness.read_assignment(topic, 1) == [3], "what had moved stays"
        assert not witness.has_reassignments()
    objects.wait_for_event(topic, "ReassignmentCancelled")


def test_a_limit_slows_a_move_until_it_is_raised_and_leaves_only_what_others_have_set(
    operator: Operator, objects: Objects, witness: Witness, kafka: KafkaCluster | KRaftCluster, topic: str
) -> None:
    theirs = "leader.replication.throttled.rate=987654321"
    told = ("--bootstrap-server", kafka.bootstrap_servers, "--alter", "--entity-type", "brokers", "--entity-name", "2")
    run_tool(CONFIGS, *told, "--add-config", theirs)
    witness.create_topic(topic, [[1]])
    wait_until(lambda: witness.is_served(topic, [0]), "the topic is served")
    fill(kafka, topic)
    partitions = [{"topic": topic, "partition": 0, "replicas": [2]}]
    objects.apply(
        "PartitionReassignment", topic, {"partitions": partitions, "throttle": {"bytesPerSecond": RECORD_BYTES}}
    )
    wait_until(lambda: witness.read_assignment(topic, 0) == [2, 1], "the move runs")
    limited = witness.throttles(topic)
    assert (limited.rates[1], limited.rates[2]) == ((RECORD_BYTES, RECORD_BYTES), (987654321, RECORD_BYTES))
    assert (limited.lists, limited.is_remembered) == ((["0:1"], ["0:2"]), True)
    raised = {"partitions": partitions, "throttle": {"bytesPerSecond": 10**9}}
    objects.apply("PartitionReassignment", topic, raised)
    status = objects.wait_ready("partitionreassignment", topic)["status"]
    assert (status["phase"], status.get("throttle")) == ("Completed", None)
    assert witness.read_assignment(topic, 0) == [2]
    assert witness.throttles(topic) == ({2: (987654321, None)}, ([], []), False)
    assert not [name for name in witness.config(topic) if "throttled" in name]
    run_tool(CONFIGS, *told, "--delete-config", "leader.replication.throttled.rate")


def test_a_limited_move_shows_how_much_is_left_and_how_long_that_takes_and_ends_without_them(
    operator: Operator,
    objects: Objects,
    witness: Witness,
    kafka: KafkaCluster | KRaftCluster,
    kubernetes_api: KubernetesCluster,
    topic: str,
) -> None:
    limit = 2 * RECORD_BYTES
    witness.create_topic(topic, [[1]])
    wait_until(lambda: witness.is_served(topic, [0]), "the topic is served")
    fill(kafka, topic)
    partitions = [{"topic": topic, "partition": 0, "replicas": [1, 3]}]
    objects.apply("PartitionReassignment", topic, {"partitions": partitions, "throttle": {"bytesPerSecond": limit}})

    def progress() -> dict[str, Any]:
        found: dict[str, Any] = objects.status("partitionreassignment", topic).get("progress", {})
        return found

    wait_until(lambda: "timeLeft" in progress(), "it is known how long it takes")
    first = progress()
    assert 0 < first["bytesLeft"] <= RECORD_BYTES * RECORDS * 1.1
    # Kafka limits the average of eleven seconds, checked before each fetch, so a move may begin with a burst. Two
    # readings are at least `apart_s` apart, and a broker's answer may be as old as a reading takes.
    apart_s = EVERY_S - TIMEOUT_S
    burst = (11 + TIMEOUT_S) * limit + FETCH_BYTES
    assert 0 < first["bytesPerSecond"] <= limit + burst / apart_s
    columns = kubernetes_api.kubectl("get", "kpr", topic, "--namespace", NAMESPACE).splitlines()
    assert columns[0].split()[5] == "ETA"
    assert columns[1].split()[5].endswith(("s", "m"))
    wait_until(lambda: progress().get("bytesLeft", 0) < first["bytesLeft"], "less is left")
    raised = {"partitions": partitions, "throttle": {"bytesPerSecond": 10**9}}
    objects.apply("PartitionReassignment", topic, raised)
    status = objects.wait_ready("partitionreassignment", topic)["status"]
    assert (status["phase"], status.get("progress")) == ("Completed", None)


@with_zookeeper
@pytest.mark.parametrize("die_after", [1, 2, 3])
def test_an_operator_that_dies_after_any_write_of_a_cancellation_takes_the_move_back(
    operator: Operator, objects: Objects, znodes: Znodes, kafka: KafkaCluster, topic: str, die_after: int
) -> None:
    znodes.create_topic(topic, [[1]])
    wait_until(lambda: znodes.is_served(topic, [0]), "the topic is served")
    fill(kafka, topic)
    with slow_down(kafka, topic):
        partitions = [{"topic": topic, "partition": 0, "replicas": [3]}]
        objects.apply("PartitionReassignment", topic, {"partitions": partitions})
        wait_until(lambda: znodes.read_assignment(topic, 0) == [3, 1], "the move runs")
        operator.process.kill()
        objects.delete("partitionreassignment", topic)
        operator.start(die_after=die_after)
        operator.wait_until_dead()
        operator.start()
        objects.wait_gone("partitionreassignment", topic)
        assert znodes.read_assignment(topic, 0) == [1]
        assert not znodes.has_reassignments()


@on_every_release
def test_a_finished_reassignment_is_deleted_and_nothing_is_cancelled(
    operator: Operator, objects: Objects, witness: Witness, topic: str
) -> None:
    witness.create_topic(topic, [[1]])
    wait_until(lambda: witness.is_served(topic, [0]), "the topic is served")
    objects.apply("PartitionReassignment", topic, {"partitions": [{"topic": topic, "partition": 0, "replicas": [2]}]})
    objects.wait_ready("partitionreassignment", topic)
    wait_until(
        lambda: not (objects.get("partitionreassignment", topic) or {})["metadata"].get("finalizers"),
        "the finalizer is released",
    )
    objects.delete("partitionreassignment", topic)
    objects.wait_gone("partitionreassignment", topic)
    assert witness.read_assignment(topic, 0) == [2]


def test_a_change_of_the_replication_factor_moves_replicas_with_an_object_that_the_topic_owns(
    operator: Operator, objects: Objects, witness: Witness, topic: str
) -> None:
    objects.apply("KafkaTopic", topic, topic_spec())
    objects.wait_ready("kafkatopic", topic)
    objects.apply("KafkaTopic", topic, topic_spec(replicationFactor=3))
    status = objects.wait_ready("kafkatopic", topic)["status"]
    assert status["replicationFactor"] == 3
    assert all(sorted(witness.read_assignment(topic, number)) == [1, 2, 3] for number in range(3))
    owned = [each for each in objects.every("partitionreassignments") if each["metadata"].get("ownerReferences")]
    assert [each["metadata"]["ownerReferences"][0]["name"] for each in owned if topic in each["metadata"]["name"]] == [
        topic
    ]


@on_every_release
@pytest.mark.parametrize("policy", ["Enforce", "Report", "Ignore"])
def test_a_change_that_is_taken_back_while_its_move_runs_takes_the_move_back(
    operator: Operator, objects: Objects, kafka: KafkaCluster | KRaftCluster, witness: Witness, topic: str, policy: str
) -> None:
    how = {"throttle": {"bytesPerSecond": RECORD_BYTES}, "maxConcurrentPartitions": 1}
    objects.apply("KafkaTopic", topic, topic_spec(driftPolicy=policy, reassignment=how))
    objects.wait_ready("kafkatopic", topic)
    before = witness.partitions(topic)
    fill(kafka, topic)
    objects.apply("KafkaTopic", topic, topic_spec(replicationFactor=3, driftPolicy=policy, reassignment=how))
    wait_until(lambda: len(witness.read_assignment(topic, 0)) == 3, "the first partition moves")
    objects.apply("KafkaTopic", topic, topic_spec(driftPolicy=policy, reassignment=how))
    assert objects.wait_ready("kafkatopic", topic, reason="Reconciled")["status"].get("drift", []) == []
    assert (witness.partitions(topic), witness.has_reassignments()) == (before, False)
    assert not witness.throttles(topic).is_remembered
    assert "MoveCancelled" in objects.events(topic)
    assert "DriftCorrected" not in objects.events(topic)
    assert objects.condition("kafkatopic", topic, "Drifted")["status"] == "False"


def test_a_preferred_election_gives_the_leaders_back_and_is_deleted(
    operator: Operator, objects: Objects, witness: Witness, topic: str
) -> None:
    # After a move another replica than the first one leads: the same as after a broker's restart.
    witness.create_topic(topic, [[1, 2], [2, 1]])
    wait_until(lambda: witness.is_served(topic, range(2)), "the topic is served")
    moved = [{"topic": topic, "partition": 0, "replicas": [3, 1]}]
    objects.apply("PartitionReassignment", topic, {"partitions": moved})
    objects.wait_ready("partitionreassignment", topic)
    assert witness.leader(topic, 0) == 1
    objects.apply("PreferredElection", topic, {"topics": [topic]})
    objects.wait_for("kpe", topic, "Complete")
    status = objects.status("preferredelection", topic)
    rows = {row["partition"]: (row["result"], row["leaderBefore"], row["leaderAfter"]) for row in status["partitions"]}
    assert rows == {0: ("Elected", 1, 3), 1: ("NotNeeded", 2, 2)}
    assert witness.leader(topic, 0) == 3
    assert status["counts"]["elected"] == status["counts"]["notNeeded"] == 1
    objects.delete("preferredelection", topic)
    objects.wait_gone("preferredelection", topic)
    assert witness.leader(topic, 0) == 3


@on_every_release
def test_a_feature_set_that_no_broker_supports_says_so_and_is_deleted(
    operator: Operator, objects: Objects, topic: str
) -> None:
    levels = [{"name": topic, "maxVersionLevel": 1}]
    objects.apply("FeatureSet", topic, {"features": levels, "deletionPolicy": "Delete"})
    blocked = objects.wait_ready("featureset", topic, "False", "FeatureUnsupported")
    assert blocked["metadata"]["finalizers"] == [FINALIZER]
    assert blocked["status"]["features"][0]["blockedBy"] == [1, 2, 3]
    objects.delete("featureset", topic)
    objects.wait_gone("featureset", topic)


@with_zookeeper
def test_an_election_with_a_schedule_makes_up_for_a_run_that_was_missed_and_goes_on(
    operator: Operator, objects: Objects, znodes: Znodes, topic: str
) -> None:
    znodes.create_topic(topic, [[1, 2]])
    wait_until(lambda: znodes.is_served(topic, [0]), "the topic is served")
    objects.apply(
        "PartitionReassignment", topic, {"partitions": [{"topic": topic, "partition": 0, "replicas": [3, 1]}]}
    )
    objects.wait_for("kpr", topic, "Complete")
    assert znodes.leader(topic, 0) == 1

    def status() -> dict[str, Any]:
        return objects.status("preferredelection", topic)

    soon = datetime.now(UTC) + timedelta(seconds=75)  # time enough to stop the operator before
    objects.apply("PreferredElection", topic, {"topics": [topic], "schedule": f"{soon.minute} * * * *"})
    objects.wait_ready("preferredelection", topic, "True", "Scheduled")
    due_at = status()["nextRunTime"]
    operator.process.stop()
    wait_until(lambda: datetime.now(UTC) > datetime.fromisoformat(due_at), "a run is missed")
    assert "lastRunTime" not in status()
    operator.start()
    wait_until(lambda: znodes.leader(topic, 0) == 3, "the run was made up for")
    wait_until(lambda: status().get("lastRunResult") == "Completed", "the run has ended")
    after = status()
    assert (after["phase"], after["counts"]["elected"]) == ("Scheduled", 1)
    assert due_at <= after["lastRunTime"] < after["nextRunTime"]
    objects.wait_for_event(topic, "ElectionCompleted")
    assert objects.events(topic).count("ElectionCompleted") == 1


@with_zookeeper
def test_an_unclean_election_gives_a_leader_to_what_has_none_and_says_what_may_be_lost(
    operator: Operator, objects: Objects, znodes: Znodes, kafka: KafkaCluster, topic: str
) -> None:
    with _leaderless(kafka, znodes, topic):
        objects.apply("PreferredElection", topic, UNCLEAN | {"topics": [topic]})
        objects.wait_for("kpe", topic, "Complete")
    rows = {row["partition"]: row for row in objects.status("preferredelection", topic)["partitions"]}
    assert rows[1]["result"] == "NotNeeded"
    assert (rows[0]["leaderBefore"], rows[0]["leaderAfter"], rows[0]["isrBefore"]) == (-1, 2, [1])
    assert rows[0]["message"] == "broker 2 was not in sync: records that only [1] had may be lost"
    assert znodes.leader(topic, 0) == 2
    objects.wait_for_event(topic, "UncleanLeaderElected")
    assert objects.events(topic).count("UncleanLeaderElected") == 1


@with_zookeeper
def test_an_unclean_election_that_needs_approval_waits_for_it(
    operator: Operator, objects: Objects, znodes: Znodes, kafka: KafkaCluster, topic: str
) -> None:
    spec = UNCLEAN | {"topics": [topic], "approval": "Required"}
    with _leaderless(kafka, znodes, topic):
        objects.apply("PreferredElection", topic, spec)
        objects.wait_ready("preferredelection", topic, "False", "AwaitingApproval")
        assert znodes.leader(topic, 0) == -1
        due = objects.status("preferredelection", topic)["planHash"]
        objects.apply("PreferredElection", topic, spec | {"approvedPlan": due})
        objects.wait_for("kpe", topic, "Complete")
    assert znodes.leader(topic, 0) == 2


@under_kontroller
def test_an_operator_that_dies_after_any_write_of_an_unclean_election_has_it_held_once(
    operator: Operator, objects: Objects, znodes: Znodes, kafka: KafkaCluster, topic: str
) -> None:
    deaths = {f"{topic}-after-{number}": number for number in (1, 2)}
    with _leaderless(kafka, znodes, *deaths):
        for name, number in deaths.items():
            epoch = znodes.state(name, 0)["leader_epoch"]
            operator.process.kill()
            operator.start(die_after=number)
            objects.apply("PreferredElection", name, UNCLEAN | {"topics": [name]})
            operator.wait_until_dead()
            operator.start()
            objects.wait_for("kpe", name, "Complete")
            row = objects.status("preferredelection", name)["partitions"][0]
            assert (row["result"], row["leaderBefore"], row["isrBefore"]) == ("Elected", -1, [1])
            assert (znodes.leader(name, 0), znodes.state(name, 0)["leader_epoch"]) == (2, epoch + 1)


def test_a_stopped_broker_shows_in_the_topic_and_so_does_its_return(
    operator: Operator, objects: Objects, kafka: KafkaCluster, topic: str
) -> None:
    objects.apply("KafkaTopic", topic, {"replicaAssignment": [[3], [1]]})
    objects.wait_ready("kafkatopic", topic)
    told = Counter(objects.events("demo"))
    kafka.broker(3).stop()
    try:
        status = objects.wait_ready("kafkatopic", topic, "False", "PartitionsOffline")["status"]
        assert (status["counts"]["offline"], status["counts"]["online"]) == (1, 1)
        assert (status["partitions"][0]["partition"], status["partitions"][0]["leader"]) == (0, -1)
        for reason in ("BrokersGone", "PartitionsOffline"):
            wait_until(
                lambda reason=reason: Counter(objects.events("demo"))[reason] == told[reason] + 1,  # type: ignore[misc]  # a lambda with defaults
                f"the cluster has an event {reason}",
            )
        objects.wait_for("kcl", "demo", "Degraded")
        assert objects.condition("kafkacluster", "demo", "Degraded")["message"].startswith("broker 3 is missing; ")
        assert {each["id"]: each["state"] for each in objects.status("kafkacluster", "demo")["brokers"]}[3] == "Missing"
    finally:
        kafka.broker(3).start()
    objects.wait_ready("kafkatopic", topic)
    objects.wait_for("kcl", "demo", "Degraded=False")


@with_zookeeper
def test_an_operator_that_is_asked_to_stop_ends_in_order(operator: Operator, objects: Objects, topic: str) -> None:
    objects.apply("KafkaTopic", topic, topic_spec())
    objects.wait_ready("kafkatopic", topic)
    operator.process.stop()
    assert "operator ends" in operator.log()
    assert "Traceback" not in operator.log()


@with_zookeeper
def test_a_settled_object_is_not_written_again(operator: Operator, objects: Objects, topic: str) -> None:
    objects.apply("KafkaTopic", topic, topic_spec())
    settled = objects.wait_ready("kafkatopic", topic)
    writes = operator.writes()
    objects.annotate("kafkatopic", topic, "kontroller.dev/reconcile-requested-at=now")
    objects.annotate("kafkacluster", "demo", "kontroller.dev/reconcile-requested-at=now")
    objects.apply("KafkaTopic", f"{topic}-other", topic_spec(partitions=1))
    objects.wait_ready("kafkatopic", f"{topic}-other")
    assert (objects.get("kafkatopic", topic) or {})["status"] == settled["status"]
    assert operator.writes()["transact"] == writes["transact"] + 1


@under_kontroller
@pytest.mark.parametrize("die_after", range(1, 8))
def test_an_operator_that_dies_after_any_write_of_a_topics_creation_creates_it_once(
    operator: Operator, objects: Objects, znodes: Znodes, topic: str, die_after: int
) -> None:
    _die_and_go_on(operator, die_after, lambda: objects.apply("KafkaTopic", topic, topic_spec(deletionPolicy="Delete")))
    status = objects.wait_ready("kafkatopic", topic)["status"]
    _, stat = znodes.client.get(f"/brokers/topics/{topic}")
    assert stat.version == 0
    assert status["topicId"] == znodes.read(f"/brokers/topics/{topic}")["topic_id"]
    assert "TopicAdopted" not in objects.events(topic)
    assert "TopicRecreated" not in objects.events(topic)


@under_kontroller
@pytest.mark.parametrize("die_after", range(1, 7))
def test_an_operator_that_dies_after_any_write_of_a_reassignment_asks_for_it_once(
    operator: Operator, objects: Objects, znodes: Znodes, topic: str, die_after: int
) -> None:
    znodes.create_topic(topic, [[1, 2], [2, 3]])
    wait_until(lambda: znodes.is_served(topic, range(2)), "the topic is served")
    partitions = [{"topic": topic, "partition": number, "replicas": [3, 1]} for number in range(2)]
    asked_before = _sequence_of_requests(znodes)
    _die_and_go_on(
        operator, die_after, lambda: objects.apply("PartitionReassignment", topic, {"partitions": partitions})
    )
    status = objects.wait_ready("partitionreassignment", topic)["status"]
    assert status["phase"] == "Completed"
    rows = sorted(status["partitions"], key=lambda row: int(row["partition"]))
    assert [row["originalReplicas"] for row in rows] == [[1, 2], [2, 3]]
    assert _sequence_of_requests(znodes) == asked_before, "nobody was asked by a znode"


def _die_and_go_on(operator: Operator, die_after: int, act: Callable[[], None]) -> None:
    """Let an operator die after a number of writes, which may be too high, and let a whole one continue."""
    operator.process.stop()
    operator.start(die_after=die_after)
    act()
    wait_until(lambda: not operator.process.is_running or _is_quiet(operator), "the operator died or is done")
    operator.process.kill()
    operator.start()


def _is_quiet(operator: Operator) -> bool:
    """Return True if a running operator has nothing left to write: its log does not change for a while."""
    before = operator.writes()
    if not before:
        return False
    try:
        wait_until(lambda: operator.writes() != before or not operator.process.is_running, "it writes", longest_s=3)
    except ConditionTimeoutError:
        return True
    return False


def _sequence_of_requests(znodes: Znodes) -> int:
    """Return the number of creations under /admin: ZooKeeper counts two changes of children for each."""
    return int(znodes.client.exists("/admin").cversion) // 2


def _seconds_have_passed(objects: Objects, topic: str) -> bool:
    """Return True once the API server's clock shows another second, because creation timestamps have whole seconds."""
    probe = f"{topic}-probe-{next(_numbers)}"
    objects.apply("PreferredElection", probe, {"topics": ["none"]})
    first = (objects.get("kafkatopic", f"{topic}-z") or {})["metadata"]["creationTimestamp"]
    created = (objects.get("preferredelection", probe) or {})["metadata"]["creationTimestamp"]
    objects.delete("preferredelection", probe)
    return bool(created > first)
