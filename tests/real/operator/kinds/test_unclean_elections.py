"""Unclean elections: what may be lost, approval, and an operator that dies."""

from collections.abc import Iterator
from contextlib import contextmanager

from devcluster.clusters.kafka import KafkaCluster
from devcluster.running.processes import wait_until
from devcluster.waiting.vocabulary import serve_topic
from tests.real.operator.kinds.clusters import MARKS, under_kontroller, with_zookeeper
from tests.real.operator.operated import Objects, Operator
from tests.real.operator.witnesses import Znodes

pytestmark = MARKS

UNCLEAN = {"electionType": "Unclean", "acknowledgeDataLoss": True}


@contextmanager
def _leaderless(kafka: KafkaCluster, znodes: Znodes, *topics: str) -> Iterator[None]:
    """Make topics whose partition 0 had brokers 1 and 2 and only has 2 left, which is alive and not in sync."""
    for name in topics:
        serve_topic(znodes, name, [[1, 2], [3]])
    kafka.broker(2).stop()
    try:
        wait_until(lambda: all(znodes.isr(name, 0) == [1] for name in topics), "broker 2 has left")
        kafka.broker(1).stop()
        kafka.broker(2).start()
        wait_until(lambda: all(znodes.leader(name, 0) == -1 for name in topics), "nobody leads")
        yield
    finally:
        kafka.start()


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
