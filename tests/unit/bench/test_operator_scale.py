"""The values that the benchmark of the operator reads from servers and objects, and the writes of its simulated
controller."""

from typing import Any
from uuid import UUID

import pytest

from bench.operator_scale.__main__ import needless_writes
from bench.operator_scale.counters import Written, requests_of, transactions_of
from bench.operator_scale.goals import find_missed
from bench.operator_scale.paper_controller import BROKERS, cluster_znodes, znodes_of
from bench.operator_scale.phases import FROM_NOTHING, OUTAGE, RESYNC, Phase
from bench.operator_scale.surroundings import topic
from bench.operator_scale.watching import Staleness, ready_generation
from controller_core.model.ids import PartitionId, TopicId, TopicName
from controller_core.model.metadata import ReplicaAssignment, TopicAssignment
from controller_core.zk.codecs import encode_topic
from controller_core.zk.session import SessionId, ZkNode, ZkVersion
from controller_core.zk.snapshots.known_znodes import KnownZnodes
from controller_operator.resources import KafkaTopic

METRICS = """
apiserver_request_total{code="200",component="apiserver",group="kontroller.dev",resource="kafkatopics",\
scope="resource",subresource="status",verb="PATCH",version="v1alpha1"} 12
apiserver_request_total{code="409",component="apiserver",group="kontroller.dev",resource="kafkatopics",\
scope="resource",subresource="status",verb="PATCH",version="v1alpha1"} 1
apiserver_request_total{code="201",component="apiserver",group="",resource="events",\
scope="resource",subresource="",verb="POST",version="v1"} 3
apiserver_request_total{code="200",component="apiserver",group="kontroller.dev",resource="kafkatopics",\
scope="namespace",subresource="",verb="LIST",version="v1alpha1"} 7
apiserver_request_total{code="200",component="apiserver",group="coordination.k8s.io",resource="leases",\
scope="resource",subresource="",verb="PUT",version="v1"} 9
""".replace("\\\n", "")


def test_only_writes_of_our_kinds_and_of_events_count() -> None:
    assert requests_of(METRICS) == {"PATCH kafkatopics/status": 13, "POST events": 3}


def test_what_was_written_in_a_while_is_the_difference() -> None:
    before = Written(kubernetes=requests_of(METRICS), zookeeper=5)
    after = Written(kubernetes=requests_of(METRICS.replace(" 12\n", " 20\n")), zookeeper=9)
    since = after.subtract(before)
    assert (dict(since.kubernetes), since.zookeeper) == ({"PATCH kafkatopics/status": 8}, 4)


def test_transactions_are_counted_within_a_term_of_zookeeper() -> None:
    assert transactions_of(b"Latency min/avg/max: 0/0/1\nZxid: 0x20000001f\nMode: standalone\n") == 0x1F
    with pytest.raises(ValueError, match="does not say"):
        transactions_of(b"This ZooKeeper instance is not currently serving requests\n")


def ready(status: str, generation: int) -> dict[str, Any]:
    return {"status": {"conditions": [{"type": "Ready", "status": status, "observedGeneration": generation}]}}


def test_an_object_is_ready_for_a_generation_of_its_spec() -> None:
    assert ready_generation(ready("True", 3)) == 3
    assert ready_generation(ready("False", 3)) is None
    assert ready_generation({"metadata": {}}) is None


def test_what_is_said_is_as_old_as_the_moment_when_it_was_last_true() -> None:
    staleness = Staleness()
    looks = [
        (0.0, 0, 0),
        (1.0, 5, 0),
        (2.0, 9, 5),
        (3.0, 9, 5),
        (4.0, 9, 9),
        (9.0, 9, 9),
        (10.0, 10, 9),
        (11.0, 10, 10),
    ]
    worst = []
    for now_s, real, said in looks:
        staleness.look(now_s, real, said)
        worst.append(staleness.worst_s)
    assert worst == [0, 1, 1, 2, 2, 2, 2, 2]


def node(data: bytes) -> ZkNode:
    return ZkNode(data=data, czxid=1, mzxid=1, version=ZkVersion(0), ephemeral_owner=SessionId(0))


def test_the_operator_takes_the_cluster_on_paper_for_one_whose_topics_have_leaders() -> None:
    orders = TopicName("orders")
    assignment = TopicAssignment(
        topic_id=TopicId(UUID(int=7)),
        partitions={PartitionId(number): ReplicaAssignment(replicas=BROKERS) for number in range(3)},
    )
    known = KnownZnodes()
    znodes = dict(cluster_znodes())
    assert known.take_children("/brokers/ids", [str(broker) for broker in BROKERS])
    for path, data in znodes.items():
        if data:
            known.take(path, node(data))
    known.take_children("/brokers/topics", [orders])
    states = dict(znodes_of(orders, assignment))
    wanted = known.take("/brokers/topics/orders", node(encode_topic(assignment)))
    for path in wanted:
        known.take(path, node(states[path]))
    view = known.take_snapshot()
    assert view.malformed == {}
    assert view.controller is not None
    assert set(view.brokers) == set(BROKERS)
    assert (view.counts.partitions, view.counts.online, view.counts.under_replicated) == (3, 3, 0)


def test_topics_are_objects_that_the_operator_can_read() -> None:
    read = KafkaTopic.model_validate(topic(7, 12))
    assert (read.topic_name, read.spec.partition_count) == ("topic-00007", 12)


def test_a_restart_that_writes_is_a_failure_and_one_that_only_opens_its_session_is_none() -> None:
    good = Phase(name="restart", zookeeper_writes=1)
    assert needless_writes([good, Phase(name="resync"), Phase(name="outage of ZooKeeper", zookeeper_writes=9)]) == ""
    assert "resync" in needless_writes([good, Phase(name="resync", zookeeper_writes=1)])
    assert "restart" in needless_writes([Phase(name="restart", kubernetes_writes={"PATCH kafkatopics/status": 1})])


@pytest.mark.parametrize(
    ("phase", "said"),
    [
        (Phase(name=FROM_NOTHING, seconds=400), "400 s; the goal is 303 s"),
        (Phase(name=RESYNC, seconds=61), "61 s; the goal is 60 s"),
        (
            Phase(name="resync with changes", changes_s=[0.5, 1.14, 1.5]),
            "2 of 3 changes of a user took longer than 1 s",
        ),
        (Phase(name=FROM_NOTHING, oldest_status_s=5.2), "5.2 s old"),
        (Phase(name="restart", most_memory_mb=301), "301 MB; the goal is 300 MB"),
        (Phase(name=OUTAGE, kubernetes_writes={"PATCH kafkatopics/status": 2}), "2 statuses of KafkaTopics"),
    ],
)
def test_each_goal_that_was_missed_is_said_with_its_numbers(phase: Phase, said: str) -> None:
    (words,) = find_missed([Phase(name="restart"), phase], topics=10_000)
    assert said in words
    assert words.startswith(phase.name)


def test_where_all_goals_were_reached_nothing_is_said() -> None:
    reached = [Phase(name=FROM_NOTHING, seconds=290, changes_s=[0.9], oldest_status_s=5, most_memory_mb=300)]
    assert (
        find_missed([*reached, Phase(name=OUTAGE, kubernetes_writes={"PATCH kafkaclusters/status": 2})], 10_000) == []
    )
