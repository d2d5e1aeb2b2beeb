"""BrokerChange and BrokerModifications: a broker crashes, is away, and returns.

One crash serves most of the tests. Topics for every case are prepared, the broker is killed, and the state of ZooKeeper
and of the other brokers is recorded; then it starts again, and the state is recorded again.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass

import pytest
from kio.schema.types import BrokerId as WireBrokerId
from kio.static.primitive import i64

from controller_core.wire.messages import AllocateProducerIdsRequest, ErrorCode
from devcluster.clients.load import find_lost
from devcluster.clients.znodes import PREFERRED_ELECTION
from devcluster.waiting.vocabulary import wait_until_acknowledged, wait_until_unregistered
from tests.real.conformance.clusters import PREFERRED, UNCLEAN, ConformanceCluster, Partition, Seen

UNCLEAN_ALLOWED = {"unclean.leader.election.enable": "true"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Crash:
    """The states of the topics before a broker was killed, while it was dead, and when it was back."""

    killed: int
    successor: int
    third: int
    before: Mapping[str, Seen]
    dead: Mapping[str, Seen]
    back: Mapping[str, Seen]
    known_while_dead: Mapping[int, set[int]]
    """The brokers that each live broker listed for clients."""
    answered_of_lonely: Mapping[int, ErrorCode]
    offline_replicas: Mapping[int, list[int]]
    """Each live broker's offline replicas of a follower's partition."""
    stillborn_had_a_state: bool
    waited_for_deletion: bool
    """True if the topic with an unreachable replica still existed with its mark, and no broker listed it for clients.
    """
    answers: Mapping[str, object]
    lost: int
    epochs: tuple[int, int]
    answered_by_returned: Mapping[Partition, tuple[int, list[int]]]
    logs_of_deleted: set[int]


SERVED = (
    "led",
    "followed",
    "lonely",
    "only-one-in-sync",
    "careless",
    "hopeful",
    "forced",
    "third-in-line",
    "untouched",
)


@pytest.fixture(scope="session")
def crash(started_cluster: ConformanceCluster) -> Crash:
    cluster = started_cluster
    cluster.health_gate.open()
    third, killed, successor = cluster.order
    _prepare(cluster, killed, successor, third)
    before = {topic: cluster.read_state(topic) for topic in SERVED}
    epoch = cluster.broker_epoch(killed)
    with cluster.load("led") as producer:
        wait_until_acknowledged(producer)
        cluster.kafka.broker(killed).kill()
        _wait_until_all_is_decided(cluster, killed, before)
        dead = {topic: cluster.read_state(topic) for topic in SERVED}
        observed = _observe(cluster, killed, successor, third)
        cluster.kafka.broker(killed).start()
        for topic in (*SERVED, "born", "stillborn"):
            cluster.wait_until_served(topic)
        cluster.wait_until_everybody_knows("lonely")
    cluster.wait_until_gone("/brokers/topics/doomed", "/admin/delete_topics/doomed")
    acknowledged = producer.stop().acknowledged
    return Crash(
        killed=killed,
        successor=successor,
        third=third,
        before=before,
        dead=dead,
        back={topic: cluster.read_state(topic) for topic in (*SERVED, "born", "stillborn")},
        lost=len(find_lost(acknowledged, cluster.read_back("led"))),
        epochs=(epoch, cluster.broker_epoch(killed)),
        answered_by_returned=_ask_partitions(cluster, killed),
        logs_of_deleted=cluster.brokers_with_a_log("doomed"),
        **observed,  # type: ignore[arg-type]  # what was observed while it was dead, by field
    )


def _prepare(cluster: ConformanceCluster, killed: int, successor: int, third: int) -> None:
    cluster.serve_topic("led", [[killed, successor, third]], {"min.insync.replicas": "2"})
    cluster.serve_topic("followed", [[third, killed]])
    cluster.serve_topic("lonely", [[killed]])
    cluster.serve_topic("untouched", [[third, successor]])
    cluster.serve_topic("doomed", [[third, killed]])
    cluster.serve_topic("third-in-line", [[killed, third, successor]])
    cluster.leave_in_isr("third-in-line", [killed, successor])
    for topic in ("only-one-in-sync", "careless", "hopeful", "forced"):
        cluster.serve_topic(topic, [[killed, successor]], UNCLEAN_ALLOWED if topic == "careless" else None)
        cluster.leave_in_isr(topic, [killed])


def _wait_until_all_is_decided(cluster: ConformanceCluster, killed: int, before: Mapping[str, Seen]) -> None:
    wait_until_unregistered(cluster.znodes, killed)
    for topic in SERVED:
        if topic != "untouched":
            cluster.wait(lambda topic=topic: cluster.read_state(topic).leader_epoch > before[topic].leader_epoch, topic)  # type: ignore[misc]  # a lambda with a default
        cluster.wait_until_everybody_knows(topic)
    cluster.wait_until_led("careless", cluster.order[2])


def _observe(cluster: ConformanceCluster, killed: int, successor: int, third: int) -> dict[str, object]:
    znodes, live = cluster.znodes, cluster.znodes.live_brokers()
    answers: dict[str, object] = {}
    answered_of_lonely = {}
    offline_replicas = {}
    for broker in live:
        partition = cluster.metadata_of_partition(broker, "lonely")
        assert partition is not None
        answered_of_lonely[broker] = partition.error_code
        partition = cluster.metadata_of_partition(broker, "followed")
        assert partition is not None
        offline_replicas[broker] = [*partition.offline_replicas]
    answers["an ISR with it"] = cluster.alter_isr("untouched", [third, successor, killed]).error_code
    elected = cluster.elect(PREFERRED, ("led", 0), ("untouched", 0), ("ghost", 0))
    answers["preferred, dead"], answers["preferred, leads"] = elected["led", 0], elected["untouched", 0]
    answers["preferred, unknown"] = elected["ghost", 0]
    forced = cluster.elect(UNCLEAN, ("forced", 0), ("led", 0), ("lonely", 0))
    answers["unclean"], answers["unclean, led"] = forced["forced", 0], forced["led", 0]
    answers["unclean, nobody"] = forced["lonely", 0]
    answers["forced leader"] = znodes.leader("forced", 0)
    answers["reassigned to it"] = cluster.reassign(("untouched", 0, [third, killed]))
    znodes.elect_preferred([("led", 0)])
    cluster.wait_until_gone(PREFERRED_ELECTION)
    znodes.create_topic("born", [[killed, successor, third]])
    znodes.create_topic("stillborn", [[killed]])
    znodes.mark_for_deletion("doomed")
    znodes.change_config("hopeful", UNCLEAN_ALLOWED)
    cluster.wait_until_led("born", successor)
    answers["born"] = cluster.read_state("born").leadership
    cluster.wait_until_led("hopeful", successor)
    cluster.wait_until_unlisted("doomed", *live)
    return {
        "known_while_dead": {broker: {node.node_id for node in cluster.metadata(broker).brokers} for broker in live},
        "answered_of_lonely": answered_of_lonely,
        "offline_replicas": offline_replicas,
        "stillborn_had_a_state": cluster.exists("/brokers/topics/stillborn/partitions/0/state"),
        "waited_for_deletion": cluster.exists("/brokers/topics/doomed")
        and cluster.exists("/admin/delete_topics/doomed"),
        "answers": answers,
    }


def _ask_partitions(cluster: ConformanceCluster, broker: int) -> dict[Partition, tuple[int, list[int]]]:
    told: dict[Partition, tuple[int, list[int]]] = {}
    for topic in SERVED:
        cluster.wait_until_everybody_knows(topic)
        partition = cluster.metadata_of_partition(broker, topic)
        assert partition is not None
        told[topic, 0] = (int(partition.leader_id), sorted(int(member) for member in partition.isr_nodes))
    return told


# While it is dead


def test_a_dead_leader_is_replaced_by_the_first_live_replica_in_the_isr(crash: Crash) -> None:
    assert crash.dead["led"].leadership == (crash.successor, sorted([crash.successor, crash.third]))
    assert crash.dead["third-in-line"].leader == crash.successor, "the second replica is alive and not in the ISR"
    assert crash.killed not in crash.dead["third-in-line"].isr


def test_a_leader_is_replaced_with_one_write_that_raises_its_epoch_by_one(crash: Crash) -> None:
    before, after = crash.before["led"], crash.dead["led"]
    assert (after.leader_epoch, after.partition_epoch) == (before.leader_epoch + 1, before.partition_epoch + 1)


def test_a_dead_follower_leaves_the_isr_with_one_write_that_raises_the_leader_epoch(crash: Crash) -> None:
    before, after = crash.before["followed"], crash.dead["followed"]
    assert after.leadership == (crash.third, [crash.third])
    assert (after.leader_epoch, after.partition_epoch) == (before.leader_epoch + 1, before.partition_epoch + 1)


def test_the_last_member_of_an_isr_stays_in_it_without_leading(crash: Crash) -> None:
    for topic in ("lonely", "only-one-in-sync"):
        before, after = crash.before[topic], crash.dead[topic]
        assert after.leadership == (-1, [crash.killed])
        assert (after.leader_epoch, after.partition_epoch) == (before.leader_epoch + 1, before.partition_epoch + 1)


def test_a_topic_that_allows_it_gets_an_unclean_leader_that_recovers(crash: Crash) -> None:
    """The leader is elected RECOVERING, and reports the end of its recovery with its next change of the ISR."""
    before, after = crash.before["careless"], crash.dead["careless"]
    assert (after.leadership, after.recovering) == ((crash.successor, [crash.successor]), True)
    assert (after.leader_epoch, after.partition_epoch) == (before.leader_epoch + 1, before.partition_epoch + 1)
    assert (crash.back["careless"].leader, crash.back["careless"].recovering) == (crash.successor, False)


def test_a_topic_that_comes_to_allow_it_gets_an_unclean_leader_then(crash: Crash) -> None:
    assert crash.dead["hopeful"].leadership == (-1, [crash.killed])
    assert crash.back["hopeful"].leader == crash.successor


def test_a_partition_without_the_dead_broker_is_left_alone(crash: Crash) -> None:
    assert crash.dead["untouched"] == crash.before["untouched"]


def test_every_broker_learns_that_it_is_gone(crash: Crash) -> None:
    assert len(crash.known_while_dead) == 2
    for known in crash.known_while_dead.values():
        assert crash.killed not in known
        assert known >= {crash.successor, crash.third}


def test_clients_learn_that_a_partition_has_no_leader_and_which_replicas_are_offline(crash: Crash) -> None:
    assert set(crash.answered_of_lonely.values()) == {ErrorCode.leader_not_available}
    assert list(crash.offline_replicas.values()) == [[crash.killed]] * 2


def test_a_topic_created_meanwhile_begins_with_the_live_replicas(crash: Crash) -> None:
    assert crash.answers["born"] == (crash.successor, sorted([crash.successor, crash.third]))


def test_a_topic_without_a_live_replica_is_not_begun(crash: Crash) -> None:
    assert not crash.stillborn_had_a_state


def test_the_deletion_of_a_topic_waits_for_the_broker_that_has_its_log(crash: Crash) -> None:
    """Clients learn at once that it is gone; the znodes stay until every log is gone (KAFKA-10548)."""
    assert crash.waited_for_deletion


def test_a_dead_broker_cannot_join_an_isr(crash: Crash) -> None:
    assert crash.answers["an ISR with it"] is ErrorCode.ineligible_replica


def test_an_election_says_why_it_brought_no_leader(crash: Crash) -> None:
    assert crash.answers["preferred, dead"] is ErrorCode.preferred_leader_not_available
    assert crash.answers["preferred, leads"] is ErrorCode.election_not_needed
    assert crash.answers["preferred, unknown"] is ErrorCode.unknown_topic_or_partition
    assert crash.answers["unclean, nobody"] is ErrorCode.eligible_leaders_not_available
    assert crash.answers["unclean, led"] is ErrorCode.election_not_needed


def test_whoever_asks_for_an_unclean_election_by_name_gets_it(crash: Crash) -> None:
    assert (crash.answers["unclean"], crash.answers["forced leader"]) == (ErrorCode.none, crash.successor)


def test_a_request_to_reassign_to_a_dead_broker_is_refused(crash: Crash) -> None:
    assert crash.answers["reassigned to it"] == [ErrorCode.invalid_replica_assignment]


def test_nothing_that_was_acknowledged_is_lost(crash: Crash) -> None:
    assert crash.lost == 0


# When it is back


def test_a_broker_that_returns_follows_and_joins_the_isr_again(crash: Crash) -> None:
    everybody = sorted([crash.killed, crash.successor, crash.third])
    assert crash.back["led"].leadership == (crash.successor, everybody)
    assert crash.back["followed"].leadership == (crash.third, sorted([crash.third, crash.killed]))
    assert crash.back["born"].leadership == (crash.successor, everybody)


def test_joining_the_isr_again_does_not_raise_the_leader_epoch(crash: Crash) -> None:
    assert crash.back["followed"].leader_epoch == crash.dead["followed"].leader_epoch
    assert crash.back["followed"].partition_epoch == crash.dead["followed"].partition_epoch + 1


def test_a_partition_without_a_leader_is_led_by_its_last_member_again(crash: Crash) -> None:
    for topic in ("lonely", "only-one-in-sync"):
        assert crash.back[topic].leader == crash.killed
        assert crash.back[topic].leader_epoch == crash.dead[topic].leader_epoch + 1


def test_a_topic_that_waited_for_its_first_replica_begins_at_leader_epoch_0(crash: Crash) -> None:
    assert crash.back["stillborn"].leadership == (crash.killed, [crash.killed])
    assert (crash.back["stillborn"].leader_epoch, crash.back["stillborn"].partition_epoch) == (0, 0)


def test_a_broker_that_returns_is_sent_everything(crash: Crash) -> None:
    assert crash.answered_by_returned == {(topic, 0): crash.back[topic].leadership for topic in SERVED}


def test_a_topic_that_was_to_be_deleted_is_gone_with_its_logs(crash: Crash) -> None:
    assert crash.logs_of_deleted == set()


def test_a_broker_that_returns_has_a_larger_epoch_and_the_former_one_is_refused(
    cluster: ConformanceCluster, crash: Crash
) -> None:
    former, present = crash.epochs
    assert former < present
    request = AllocateProducerIdsRequest(broker_id=WireBrokerId(crash.killed), broker_epoch=i64(former))
    assert cluster.ask_controller(request).error_code is ErrorCode.stale_broker_epoch


# Its registration changes


def test_a_broker_that_changes_its_address_is_known_at_the_new_one_under_the_same_epoch(
    cluster: ConformanceCluster,
) -> None:
    """As with dynamic listeners: the registration is written again, not created again."""
    keeper, moved, _ = cluster.order
    path = f"/brokers/ids/{moved}"
    epoch = cluster.broker_epoch(moved)
    data = cluster.znodes.client.get(path)[0]
    content = json.loads(data)
    content["endpoints"] = [endpoint.replace("127.0.0.1", "localhost") for endpoint in content["endpoints"]]

    def find_host() -> str:
        return {node.node_id: node.host for node in cluster.metadata(keeper).brokers}.get(WireBrokerId(moved), "")

    cluster.znodes.client.set(path, json.dumps({**content, "host": "localhost"}).encode())
    cluster.wait(lambda: find_host() == "localhost", "the new address is known")
    cluster.serve_topic("at-the-new-address", [[moved, keeper]])
    assert cluster.broker_epoch(moved) == epoch
    request = AllocateProducerIdsRequest(broker_id=WireBrokerId(moved), broker_epoch=i64(epoch))
    assert cluster.ask_controller(request).error_code is ErrorCode.none
    cluster.znodes.client.set(path, data)
    cluster.wait(lambda: find_host() == "127.0.0.1", "the former address is known again")
