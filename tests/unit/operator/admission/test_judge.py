"""The author of an object hears what its status would say: a refusal if only another spec helps, else a warning."""

from collections.abc import AsyncIterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from kio.static.protocol import RequestPayload

from controller_core.client.log_dirs.log_sizes import BrokerClient
from controller_core.client.transport.request_client import Address
from controller_core.model.topics.topic_changes import NO_RULES, TopicRules
from controller_core.rules.topic_rules import read_topic_rules
from controller_operator.admission.judge import NO_DETAILS, Judge, Judgement
from controller_operator.kubernetes.object_store import Key, Raw
from controller_operator.resources.conditions import Reason
from simulation.broker_state import log_dirs
from simulation.zookeeper import SimulatedZooKeeper
from tests.unit.operator.clusters import raw
from tests.unit.operator.tenants.operated import Operated, kafka_cluster
from tests.unit.rules.rule_files import THREE_REPLICAS, write_rules

REF = {"name": "demo", "namespace": "platform"}
ALLOWED = [{"namespace": "platform"}, {"namespace": "shop"}, {"namespace": "payments", "topicPrefix": "payments."}]
MAX_REQUEST_BYTES = 20_000
CLUSTER = Key("KafkaCluster", "platform", "demo")


@pytest.fixture
async def zookeeper() -> SimulatedZooKeeper:
    """Return a ZooKeeper of three brokers and the topics `orders` and `payments.invoices`, each with one partition on 1
    and 2."""
    return await kafka_cluster("orders", "payments.invoices")


@pytest.fixture
async def operated(zookeeper: SimulatedZooKeeper) -> AsyncIterator[Operated]:
    operator = Operated({"zk": zookeeper}, max_request_bytes=MAX_REQUEST_BYTES)
    await operator.cluster("demo", "zk", ALLOWED, creationTimestamp="2024-01-01T00:00:00Z")
    yield operator
    await operator.close()


class _Broker:
    """A broker with the log directory /data/1, which has no replica."""

    async def ask_any(self, _: RequestPayload, __: type[Any]) -> Any:
        return log_dirs([], {}, has_failed=False)


def _open_broker(bootstrap: Sequence[Address], **_: object) -> BrokerClient:
    return _Broker()


def judge(operated: Operated, rules: TopicRules = NO_RULES, *, are_callers_known: bool = False) -> Judge:
    async def clusters() -> Any:
        return operated.access

    return Judge(
        operated.store,
        clusters,
        patience_s=0.5,
        open_broker=_open_broker,
        rules=rules,
        are_callers_known=are_callers_known,
    )


def make_raw(kind: str, spec: dict[str, Any], **metadata: Any) -> Raw:
    return raw(kind, {"clusterRef": REF, **spec}, **{"name": "asked", "uid": "uid-asked", **metadata})


def a_topic(**spec: Any) -> Raw:
    return make_raw("KafkaTopic", {"topicName": "new", "partitions": 1, "replicationFactor": 1, **spec})


def a_move(*replicas: int, topic: str = "orders", **spec: Any) -> Raw:
    entry = {"topic": topic, "partition": 0, "replicas": list(replicas)}
    return make_raw("PartitionReassignment", {"partitions": [entry], **spec})


def a_move_to(log_dir: str) -> Raw:
    entry = {"topic": "orders", "partition": 0, "replicas": [1, 3], "logDirs": ["any", log_dir]}
    return make_raw("PartitionReassignment", {"partitions": [entry]})


REFUSED: dict[str, tuple[Raw, Reason]] = {
    "a configuration of no meaning": (a_topic(config={"retention.ms": "soon"}), Reason.INVALID_CONFIG),
    "a configuration that nobody knows": (a_topic(config={"retention": "1"}), Reason.INVALID_CONFIG),
    "a throttle that belongs to moves": (
        a_topic(config={"leader.replication.throttled.replicas": "*"}),
        Reason.INVALID_CONFIG,
    ),
    "more replicas in sync than there are": (a_topic(config={"min.insync.replicas": "2"}), Reason.INVALID_CONFIG),
    "a topic that is there otherwise": (a_topic(topicName="orders", partitions=3), Reason.NOT_ADOPTED),
    "a topic of too many partitions": (a_topic(partitions=5_000), Reason.TOO_LARGE),
    "one log directory for two replicas": (
        make_raw("PartitionReassignment", {"partitions": [
            {"topic": "orders", "partition": 0, "replicas": [1, 3], "logDirs": ["any"]}]}),
        Reason.INVALID_SPEC,
    ),
    "a broker named twice": (a_move(3, 3), Reason.DUPLICATE_REPLICAS),
    "a move that was planned for other replicas": (
        make_raw("PartitionReassignment", {"partitions": [
            {"topic": "orders", "partition": 0, "replicas": [1, 3], "expectedReplicas": [2, 3]}]}),
        Reason.PLAN_OUTDATED,
    ),
    "a schedule that is none": (
        make_raw("PreferredElection", {"allPartitions": True, "schedule": "daily"}),
        Reason.INVALID_SCHEDULE,
    ),
    "windows that never open": (
        a_move(3, 1, schedule={"windows": [{"schedule": "0 0 31 2 *", "durationMinutes": 60}]}),
        Reason.INVALID_SCHEDULE,
    ),
    "a topic of others": (
        make_raw("KafkaTopic", {"topicName": "stolen", "partitions": 1, "replicationFactor": 1}, namespace="payments"),
        Reason.TOPIC_PREFIX_REQUIRED,
    ),
    "a namespace that nobody allowed": (
        make_raw("KafkaTopic", {"topicName": "new", "partitions": 1, "replicationFactor": 1}, namespace="stranger"),
        Reason.NAMESPACE_NOT_ALLOWED,
    ),
    "a spec that cannot be read": (a_topic(partitions="many"), Reason.INVALID_SPEC),
}  # fmt: skip

WARNED: dict[str, tuple[Raw, Reason]] = {
    "more replicas than brokers live": (a_topic(replicationFactor=4), Reason.NOT_ENOUGH_BROKERS),
    "a broker that is not there": (a_move(3, 9), Reason.UNKNOWN_BROKER),
    "a log directory that the broker does not have": (a_move_to("/data/2"), Reason.UNKNOWN_LOG_DIRECTORY),
    "a topic that is not there": (a_move(1, topic="nowhere"), Reason.UNKNOWN_TOPIC),
    "a cluster that is not there": (a_topic(clusterRef={"name": "nowhere"}), Reason.CLUSTER_NOT_FOUND),
}  # fmt: skip

FINE: dict[str, Raw] = {
    "a topic": a_topic(),
    "a move": a_move(3, 1),
    "a move to where all is": a_move(1, 2),
    "a move to a log directory": a_move_to("/data/1"),
    "a move that is to wait": a_move(3, 1, suspend=True),
    "a move that waits for a window": a_move(
        3, 1, schedule={"windows": [{"schedule": "0 0 29 2 *", "durationMinutes": 60}]}
    ),
    "a move that is to be approved": a_move(3, 1, approval="Required"),
    "an election": make_raw("PreferredElection", {"topics": ["orders"]}),
    "an election for later": make_raw("PreferredElection", {"allPartitions": True, "schedule": "0 3 * * *"}),
    "what is wrong and going": make_raw("KafkaTopic", {"partitions": "many"}, deletionTimestamp="2026-01-01T00:00:00Z"),
}  # fmt: skip


@pytest.mark.parametrize(("wanted", "reason"), REFUSED.values(), ids=REFUSED)
async def test_what_only_another_spec_would_cure_is_refused(operated: Operated, wanted: Raw, reason: Reason) -> None:
    judgement = await judge(operated).judge(wanted)
    assert judgement.refusal is not None
    assert judgement.refusal.startswith(f"{reason}: ")
    assert not judgement.warnings


async def test_a_topic_that_breaks_a_rule_is_refused_with_its_message(operated: Operated, tmp_path: Path) -> None:
    rules = read_topic_rules(write_rules(tmp_path, THREE_REPLICAS))
    judgement = await judge(operated, rules).judge(a_topic(replicationFactor=1))
    assert judgement.refusal == "PolicyViolation: a rule for topics refuses this: use at least 3 replicas"
    assert await judge(operated, rules).judge(a_topic(replicationFactor=3)) == Judgement()


@pytest.mark.parametrize(("wanted", "reason"), WARNED.values(), ids=WARNED)
async def test_what_others_or_time_may_put_right_warns(operated: Operated, wanted: Raw, reason: Reason) -> None:
    judgement = await judge(operated).judge(wanted)
    assert judgement.refusal is None
    assert [warning.partition(":")[0] for warning in judgement.warnings] == [reason]


@pytest.mark.parametrize("wanted", FINE.values(), ids=FINE)
async def test_what_is_in_order_hears_nothing(operated: Operated, wanted: Raw) -> None:
    assert await judge(operated).judge(wanted) == Judgement()


@pytest.mark.parametrize("wanted", [*(raw for raw, _ in (REFUSED | WARNED).values()), *FINE.values()])
async def test_a_question_changes_nothing(operated: Operated, zookeeper: SimulatedZooKeeper, wanted: Raw) -> None:
    before = (zookeeper.tree.zxid, operated.api.requests.copy(), dict(operated.api.objects))
    await judge(operated).judge(wanted)
    assert (zookeeper.tree.zxid, operated.api.requests, operated.api.objects) == before


@pytest.mark.parametrize(("wanted", "reason"), REFUSED.values(), ids=REFUSED)
async def test_the_status_of_what_is_written_all_the_same_says_so_too(
    operated: Operated, wanted: Raw, reason: Reason
) -> None:
    metadata = wanted["metadata"]
    key = await operated.add(wanted["kind"], "asked", wanted["spec"], namespace=metadata["namespace"])
    await operated.look(key)
    assert operated.ready(key)["reason"] == reason
    assert operated.condition(key, "Stalled") is not None


async def test_an_older_object_for_the_topic_only_warns_as_it_may_go_first(operated: Operated) -> None:
    await operated.add(
        "KafkaTopic", "older", {"clusterRef": REF, "topicName": "new", "partitions": 1, "replicationFactor": 1}
    )
    judgement = await judge(operated).judge(a_topic())
    assert judgement.refusal is None
    assert judgement.warnings[0].startswith(f"{Reason.RESOURCE_CONFLICT}: ")


async def test_what_was_as_wrong_before_is_no_reason_to_refuse_another_change(operated: Operated) -> None:
    before = a_topic(config={"retention.ms": "soon"})
    judgement = await judge(operated).judge(a_topic(partitions=2, config={"retention.ms": "soon"}), before)
    assert judgement.refusal is None
    assert judgement.warnings[0].startswith(f"{Reason.INVALID_CONFIG}: ")


async def test_a_change_that_makes_it_wrong_is_refused(operated: Operated) -> None:
    judgement = await judge(operated).judge(a_topic(config={"retention.ms": "soon"}), a_topic())
    assert judgement.refusal is not None


async def test_a_change_of_anything_but_the_spec_is_not_judged(operated: Operated) -> None:
    wrong = a_topic(config={"retention.ms": "soon"})
    labelled = {**wrong, "metadata": {**wrong["metadata"], "labels": {"team": "shop"}}}
    assert await judge(operated).judge(labelled, wrong) == Judgement()


async def test_what_is_deleted_is_not_judged(operated: Operated) -> None:
    assert await judge(operated).judge(None, a_topic(config={"retention": "1"})) == Judgement()


async def test_partitions_cannot_be_taken_away(operated: Operated) -> None:
    before = a_topic(topicName="grown", partitions=3)
    key = await operated.add("KafkaTopic", "asked", before["spec"], namespace="shop")
    await operated.look(key)
    known = operated.api.peek(key)
    assert known is not None
    fewer = {**known, "spec": {**known["spec"], "partitions": 2}}
    judgement = await judge(operated).judge(fewer, known)
    assert judgement.refusal is not None
    assert judgement.refusal.startswith(f"{Reason.PARTITIONS_CANNOT_DECREASE}: ")


async def test_a_cluster_is_not_connected_with_to_judge_its_object(operated: Operated) -> None:
    cluster = make_raw("KafkaCluster", {"zookeeper": {"connect": "nobody:2181"}})
    del cluster["spec"]["clusterRef"]
    sessions = list(operated.sessions)
    assert await judge(operated).judge(cluster) == Judgement()
    assert operated.sessions == sessions


async def test_a_cluster_that_cannot_be_seen_now_only_warns(operated: Operated) -> None:
    away = {"zookeeper": {"connect": "away"}, "allowedNamespaces": ALLOWED}
    await operated.add("KafkaCluster", "away", away, namespace="platform")
    judgement = await judge(operated).judge(a_topic(clusterRef={"name": "away", "namespace": "platform"}))
    assert judgement == Judgement(
        warnings=(f"{Reason.ZOOKEEPER_UNAVAILABLE}: not checked: its cluster is being read, or out of reach",)
    )


async def write_seen(operated: Operated, name: str, namespace: str = "shop", **spec: Any) -> Raw:
    """Write a KafkaTopic that the operator has looked at, and return it as the API server has it."""
    key = await operated.add("KafkaTopic", name, a_topic(**spec)["spec"], namespace=namespace)
    await operated.look(key)
    known = operated.api.peek(key)
    assert known is not None
    return known


SECRETS = ("shop/older", "3 partitions", "partitions", "payments.")


@pytest.mark.parametrize(
    ("wanted", "namespace", "reason"),
    [
        ({"topicName": "grown", "partitions": 2}, "shop", Reason.RESOURCE_CONFLICT),
        ({"topicName": "orders", "partitions": 3}, "shop", Reason.NOT_ADOPTED),
        ({"topicName": "stolen"}, "payments", Reason.TOPIC_PREFIX_REQUIRED),
    ],
    ids=["a topic of another object", "a topic that nobody has", "a topic of a namespace with a prefix"],
)
async def test_a_stranger_is_told_no_details_about_topics_and_objects(
    operated: Operated, wanted: dict[str, Any], namespace: str, reason: Reason
) -> None:
    await write_seen(operated, "older", topicName="grown", partitions=3)
    asked = {**a_topic(**wanted), "metadata": {"name": "asked", "uid": "uid-asked", "namespace": namespace}}
    judgement = await judge(operated).judge(asked)
    told = judgement.refusal or judgement.warnings[0]
    assert told == f"{reason}: {reason.meaning} {NO_DETAILS}"
    known = await judge(operated, are_callers_known=True).judge(asked)
    assert any(secret in (known.refusal or known.warnings[0]) for secret in SECRETS)


async def test_a_stranger_is_told_what_is_wrong_with_the_spec_itself(operated: Operated) -> None:
    judgement = await judge(operated).judge(a_topic(config={"retention.ms": "soon"}))
    assert judgement.refusal is not None
    assert "retention.ms" in judgement.refusal


async def test_the_uid_of_the_present_object_shows_that_the_caller_may_know_it(operated: Operated) -> None:
    known = await write_seen(operated, "asked", topicName="grown", partitions=3)
    fewer = {**known, "spec": {**known["spec"], "partitions": 2}}
    guessed = {**known, "metadata": {**known["metadata"], "uid": "guessed"}}
    of_another = {**known, "metadata": {**known["metadata"], "name": "another"}}
    for before in (guessed, of_another):
        judgement = await judge(operated).judge(fewer, before)
        assert judgement.refusal is not None
        assert NO_DETAILS in judgement.refusal
    judgement = await judge(operated).judge(fewer, known)
    assert judgement.refusal is not None
    assert "the topic has 3 partitions" in judgement.refusal


async def test_a_stranger_cannot_ask_by_deletions_who_needs_a_cluster_or_takes_a_topic_over(operated: Operated) -> None:
    known = await write_seen(operated, "owner", topicName="shared")
    await write_seen(operated, "heir", topicName="shared")
    guessed = {**known, "metadata": {**known["metadata"], "uid": "guessed"}}
    assert await judge(operated).judge(None, guessed) == Judgement()
    cluster = operated.api.peek(CLUSTER)
    assert cluster is not None
    guessed = {**cluster, "metadata": {**cluster["metadata"], "uid": "guessed"}}
    assert (await judge(operated).judge(None, guessed)).refusal == "KafkaCluster platform/demo is still needed"


async def deletion_of(operated: Operated, key: Key, **annotations: str) -> Judgement:
    known = operated.api.peek(key)
    assert known is not None
    metadata = {
        **known["metadata"],
        "annotations": {f"kontroller.dev/{k}".replace("_", "-"): v for k, v in annotations.items()},
    }
    return await judge(operated).judge(None, {**known, "metadata": metadata})


async def test_the_deletion_of_a_cluster_that_objects_need_is_refused_with_how_many_and_how_to_go_on(
    operated: Operated,
) -> None:
    for name in ("a", "b"):
        await operated.add("KafkaTopic", name, a_topic(topicName=name)["spec"])
    await operated.add("FeatureSet", "levels", {"clusterRef": REF, "features": [{"name": "f", "maxVersionLevel": 1}]})
    judgement = await deletion_of(operated, CLUSTER)
    assert judgement.refusal == (
        "KafkaCluster platform/demo is still needed: 1 FeatureSet and 2 KafkaTopics (shop/a, shop/b, shop/levels) refer"
        " to it. Delete these first. To delete it without them, so that their topics and data stay: kubectl annotate"
        " kafkaclusters.kontroller.dev demo --namespace platform kontroller.dev/delete-before-dependents=true"
    )


@pytest.mark.parametrize(("value", "is_refused"), [("true", False), ("True", False), ("yes", True), ("false", True)])
async def test_only_true_forces_the_deletion_of_a_cluster(operated: Operated, value: str, is_refused: bool) -> None:
    await operated.add("KafkaTopic", "a", a_topic()["spec"])
    judgement = await deletion_of(operated, CLUSTER, delete_before_dependents=value)
    assert (judgement.refusal is not None) is is_refused


async def test_what_is_going_itself_or_has_ended_keeps_no_cluster(operated: Operated) -> None:
    await operated.add("KafkaTopic", "a", a_topic()["spec"], deletionTimestamp="2026-01-01T00:00:00Z")
    move = await operated.add("PartitionReassignment", "moved", a_move(1, 2)["spec"])
    await operated.look(move)
    assert await deletion_of(operated, CLUSTER) == Judgement()


async def test_whoever_deletes_the_owner_of_a_topic_hears_who_takes_it_over(operated: Operated) -> None:
    owner = await operated.add("KafkaTopic", "older", a_topic()["spec"], creationTimestamp="2025-01-01T00:00:00Z")
    heir = await operated.add("KafkaTopic", "younger", a_topic()["spec"], creationTimestamp="2025-01-02T00:00:00Z")
    warning = (
        "topic new stays with its data: shop/younger takes it over. To delete the topic, delete shop/younger first"
    )
    assert await deletion_of(operated, owner) == Judgement(warnings=(warning,))
    assert await deletion_of(operated, heir) == Judgement()


async def test_any_other_object_may_be_deleted(operated: Operated) -> None:
    key = await operated.add("KafkaTopic", "a", a_topic()["spec"])
    assert await deletion_of(operated, key) == Judgement()


async def test_where_replicas_go_two_objects_decide_so_what_contradicts_the_other_one_is_a_warning(
    operated: Operated,
) -> None:
    marked = {"zookeeper": {"connect": "zk"}, "allowedNamespaces": ALLOWED, "brokersToRemove": [3]}
    await operated.add("KafkaCluster", "demo", marked, namespace="platform", generation=2)
    pinned = {"clusterRef": REF, "replicaAssignment": [[1, 2]]}
    await operated.look(await operated.add("KafkaTopic", "orders", pinned))
    assignment = make_raw("KafkaTopic", {"topicName": "new", "replicaAssignment": [[3, 1]]})
    for wanted, reason in (
        (assignment, Reason.BROKER_TO_BE_REMOVED),
        (a_move(3, 1, topic="payments.invoices"), Reason.BROKER_TO_BE_REMOVED),
        (a_move(2, 1), Reason.PINNED_BY_TOPIC),
    ):
        judgement = await judge(operated).judge(wanted)
        assert judgement.refusal is None
        assert [each.split(":")[0] for each in judgement.warnings] == [reason]
