"""A limit is requested again until an up-to-date broker shows it, even if operators die in between."""

from collections.abc import Iterator
from typing import Any, Literal, get_args

import pytest
from kio.schema.errors import ErrorCode
from kio.schema.incremental_alter_configs.v1 import IncrementalAlterConfigsRequest

from controller_core.client.errors import OutcomeUnknown
from controller_core.model.ids import BrokerId, PartitionId, TopicName, TopicPartition
from controller_core.model.throttles import FOLLOWER_RATE, FOLLOWER_REPLICAS, LEADER_RATE, LEADER_REPLICAS, Move
from controller_operator.kafka.marked_throttles import entries_in
from controller_operator.kafka.requests.throttles import MAX_ASKED, ThrottleReply, ask_for_throttle
from controller_operator.kafka.throttle_steps import RemoveThrottle, SetThrottle, ThrottleStep
from controller_operator.resources.conditions import Reason
from simulation.controller_client import SimulatedControllerClient
from tests.unit.operator.without_zookeeper.dynamic_configs import ConfiguredCluster, DynamicConfigs

OWNER = "shop/move/uid"
BILLS = TopicPartition(TopicName("bills"), PartitionId(0))
MOVES = {
    TopicPartition(TopicName("orders"), PartitionId(0)): Move(origin=(BrokerId(1),), target=(BrokerId(3),)),
    BILLS: Move(origin=(BrokerId(1),), target=(BrokerId(2),)),
}
SET = SetThrottle(owner=OWNER, moves=MOVES, bytes_per_second=5000)
REMOVE = RemoveThrottle(owner=OWNER, partitions=frozenset(MOVES))
EMPTY = DynamicConfigs("orders", "bills")
LIMITED = {
    "orders": {LEADER_REPLICAS: "00:1", FOLLOWER_REPLICAS: "00:3"},
    "bills": {LEADER_REPLICAS: "00:1", FOLLOWER_REPLICAS: "00:2"},
}


class DyingClient:
    """A client that kills the operator, or loses an answer, at one of its writes."""

    def __init__(self, cluster: ConfiguredCluster, writes: int | None, *, arrives: bool = True) -> None:
        self._client = SimulatedControllerClient(lambda: cluster.answer)
        self._writes = writes
        self._arrives = arrives

    async def ask(self, request: Any, response_type: Any) -> Any:
        if self._writes is not None:
            self._writes -= 1
            if self._writes < 0:
                if self._arrives:
                    await self._client.ask(request, response_type)
                raise OutcomeUnknown("the connection broke")
        return await self._client.ask(request, response_type)


async def carry_out(step: ThrottleStep, cluster: ConfiguredCluster, writer: Any = None) -> ThrottleReply:
    reader = SimulatedControllerClient(lambda: cluster.answer)
    return await ask_for_throttle(step, reader, writer or DyingClient(cluster, None))


def a_cluster(configs: DynamicConfigs = EMPTY) -> ConfiguredCluster:
    return ConfiguredCluster(configs.copy())


async def test_a_limit_is_set_and_removed_and_nothing_is_written_that_is_there() -> None:
    cluster = a_cluster()
    assert await carry_out(SET, cluster) == ThrottleReply(step=SET)
    assert cluster.configs.topics == LIMITED
    assert {name: cluster.configs.defaults[name] for name in (LEADER_RATE, FOLLOWER_RATE)} == {
        LEADER_RATE: "05000",
        FOLLOWER_RATE: "05000",
    }
    written = cluster.writes
    assert (await carry_out(SET, cluster)).trouble is None
    assert cluster.writes == written
    assert (await carry_out(REMOVE, cluster)).trouble is None
    assert cluster.configs == EMPTY
    assert (await carry_out(REMOVE, cluster)).trouble is None


async def test_a_broker_that_is_behind_is_waited_for() -> None:
    cluster = a_cluster()
    await carry_out(SET, cluster)
    cluster.behind = 2
    written = cluster.writes
    await carry_out(SET, cluster)
    assert (cluster.writes, cluster.behind) == (written, 0)


def mishaps() -> Iterator[Any]:
    for step in (SET, REMOVE):
        for writes in range(4):
            for arrives in (True, False):
                yield pytest.param(step, writes, arrives, id=f"{type(step).__name__}-{writes}-{arrives}")


@pytest.mark.parametrize(("step", "writes", "arrives"), list(mishaps()))
async def test_whoever_dies_at_any_write_leaves_what_the_next_one_sets_right(
    step: ThrottleStep, writes: int, arrives: bool
) -> None:
    for after, topics in ((SET, LIMITED), (REMOVE, EMPTY.topics)):
        cluster = a_cluster()
        if step is REMOVE:
            await carry_out(SET, cluster)
        reply = await carry_out(step, cluster, DyingClient(cluster, writes, arrives=arrives))
        assert reply.trouble in (None, "the connection broke")
        assert (await carry_out(after, cluster)).trouble is None
        assert cluster.configs.topics == topics
        assert bool(cluster.configs.defaults) is (after is SET)
        assert len(entries_in(cluster.configs.defaults)) == (after is SET)


async def test_a_topic_that_goes_meanwhile_holds_up_nothing() -> None:
    cluster = a_cluster()

    def delete() -> None:
        del cluster.configs.topics["orders"]
        cluster.before_write = lambda: None

    await carry_out(REMOVE, cluster)
    cluster.before_write = lambda: setattr(cluster, "before_write", delete)
    assert (await carry_out(SET, cluster)).trouble is None
    assert cluster.configs.topics == {"bills": LIMITED["bills"]}


async def test_all_replicas_that_somebody_names_in_between_are_refused_by_kafka_and_seen_by_the_next_look() -> None:
    cluster = a_cluster()

    def all_replicas() -> None:
        cluster.configs.topics["orders"][LEADER_REPLICAS] = "*"

    cluster.before_write = lambda: setattr(cluster, "before_write", all_replicas)
    reply = await carry_out(SET, cluster)
    assert (reply.reason, "Invalid value *,00:1" in str(reply.trouble)) == (Reason.REQUEST_REFUSED, True)
    assert (await carry_out(SET, cluster)).trouble is None
    assert cluster.configs.topics["orders"][LEADER_REPLICAS] == "*"


Refuses = Literal["refuses", "refuses_writes", "refuses_quorum"]
NOT_ALLOWED = ErrorCode.cluster_authorization_failed


@pytest.mark.parametrize(
    ("at", "code", "said"),
    [
        ("refuses", NOT_ALLOWED, "lacks the right to DescribeConfigs of the cluster"),
        ("refuses_writes", NOT_ALLOWED, "lacks the right to AlterConfigs of the cluster"),
        ("refuses_quorum", NOT_ALLOWED, "lacks the right to Describe the cluster"),
        ("refuses", ErrorCode.invalid_request, "the defaults of brokers: invalid_request"),
    ],
)
async def test_what_kafka_refuses_is_said_and_which_right_is_missing(at: Refuses, code: ErrorCode, said: str) -> None:
    cluster = a_cluster()
    setattr(cluster, at, code)
    reply = await carry_out(SET, cluster)
    assert (reply.reason, said in str(reply.trouble)) == (Reason.REQUEST_REFUSED, True)
    assert cluster.configs == EMPTY


async def test_a_right_that_is_missing_of_a_topic_is_named_as_that() -> None:
    cluster = a_cluster()

    def refuse() -> None:
        cluster.refuses_writes = ErrorCode.topic_authorization_failed

    cluster.before_write = lambda: setattr(cluster, "before_write", refuse)
    reply = await carry_out(SET, cluster)
    assert "lacks the right to AlterConfigs of the topic" in str(reply.trouble)


@pytest.mark.parametrize("at", get_args(Refuses))
@pytest.mark.parametrize("code", [ErrorCode.throttling_quota_exceeded, ErrorCode.request_timed_out])
async def test_an_answer_that_is_no_verdict_refuses_nothing_and_is_asked_for_again(
    at: Refuses, code: ErrorCode
) -> None:
    cluster = a_cluster()
    setattr(cluster, at, code)
    reply = await carry_out(SET, cluster)
    assert (reply.reason, code.name in str(reply.trouble)) == (Reason.BROKERS_UNAVAILABLE, True)
    setattr(cluster, at, None)
    assert (await carry_out(SET, cluster)).trouble is None
    assert cluster.configs.topics == LIMITED


async def test_what_has_no_room_is_said_and_nothing_is_written() -> None:
    topic = TopicName("orders")
    moves = {
        TopicPartition(topic, PartitionId(each)): Move(origin=(BrokerId(1000),), target=(BrokerId(2000),))
        for each in range(4_000)
    }
    cluster = a_cluster()
    reply = await carry_out(SetThrottle(owner=OWNER, moves=moves, bytes_per_second=5), cluster)
    assert (reply.reason, cluster.writes) == (Reason.TOO_LARGE, 0)
    assert "(maxConcurrentPartitions)" in str(reply.trouble)


async def test_many_topics_are_asked_for_in_parts() -> None:
    names = [f"t{number}" for number in range(MAX_ASKED + 1)]
    cluster = a_cluster(DynamicConfigs(*names))
    moves = {TopicPartition(TopicName(name), PartitionId(0)): MOVES[BILLS] for name in names}
    client = SimulatedControllerClient(lambda: cluster.answer)
    await carry_out(SetThrottle(owner=OWNER, moves=moves, bytes_per_second=5), cluster, client)
    asked = [len(each.resources) for each in client.requests if isinstance(each, IncrementalAlterConfigsRequest)]
    assert asked == [1, MAX_ASKED, 1]
    await carry_out(RemoveThrottle(owner=OWNER, partitions=frozenset(moves)), cluster)
    assert cluster.configs == DynamicConfigs(*names)
