"""A limit is requested again until an up-to-date broker shows it, even if operators die in between."""

from collections.abc import Awaitable, Callable, Iterator
from dataclasses import replace
from typing import Any, Literal, get_args

import pytest
from kio.schema.errors import ErrorCode
from kio.schema.incremental_alter_configs.v1 import IncrementalAlterConfigsRequest

from controller_core.client.errors import OutcomeUnknown
from controller_core.client.reassigning.throttle_configs import MAX_ASKED
from controller_core.model.ids import BrokerId, PartitionId, TopicName, TopicPartition
from controller_core.model.throttles import FOLLOWER_RATE, FOLLOWER_REPLICAS, LEADER_RATE, LEADER_REPLICAS, Move, Record
from controller_operator.clusters.throttle_record import ThrottleRecord, ask_for_throttle
from controller_operator.kafka.throttle_steps import RemoveThrottle, SetThrottle, ThrottleReply, ThrottleStep
from controller_operator.kubernetes.object_api import ApiForbidden, ConfigMap, ObjectApi
from controller_operator.resources.conditions import Reason
from simulation.controller_client import SimulatedControllerClient
from tests.unit.operator.simulated_api import SimulatedApiServer
from tests.unit.operator.without_zookeeper.dynamic_configs import ConfiguredCluster, DynamicConfigs

OWNER = "shop/move/uid"
BILLS = TopicPartition(TopicName("bills"), PartitionId(0))
MOVES = {
    TopicPartition(TopicName("orders"), PartitionId(0)): Move(origin=(BrokerId(1),), target=(BrokerId(3),)),
    BILLS: Move(origin=(BrokerId(1),), target=(BrokerId(2),)),
}
SET = SetThrottle(owner=OWNER, moves=MOVES, bytes_per_second=5000)
REMOVE = RemoveThrottle(owner=OWNER)
EMPTY = DynamicConfigs("orders", "bills")
LIMITED = {
    "orders": {LEADER_REPLICAS: "0:1", FOLLOWER_REPLICAS: "0:3"},
    "bills": {LEADER_REPLICAS: "0:1", FOLLOWER_REPLICAS: "0:2"},
}


class Deaths:
    """Kills the operator, or loses an answer, at one of its writes."""

    def __init__(self, writes: int | None = None, *, arrives: bool = True) -> None:
        self._writes = writes
        self._arrives = arrives

    async def write(self, write: Callable[[], Awaitable[Any]]) -> Any:
        if self._writes is not None:
            self._writes -= 1
            if self._writes < 0:
                if self._arrives:
                    await write()
                raise OutcomeUnknown("the connection broke")
        return await write()


class Limited(ConfiguredCluster):
    """A cluster, and the API server with its record."""

    def __init__(self, configs: DynamicConfigs) -> None:
        super().__init__(configs)
        self.api = SimulatedApiServer()
        self.record = ThrottleRecord(self.api, "kafka", "operator-throttles", "a-quorum")

    async def owners(self) -> list[str]:
        return sorted((await self.record.read())[0].throttles)


class DyingClient:
    def __init__(self, cluster: ConfiguredCluster, deaths: Deaths) -> None:
        self._client = SimulatedControllerClient(lambda: cluster.answer)
        self._deaths = deaths

    async def ask(self, request: Any, response_type: Any) -> Any:
        return await self._deaths.write(lambda: self._client.ask(request, response_type))


class DyingApi(SimulatedApiServer):
    """The API server of an operator that may die at its writes."""

    def __init__(self, api: ObjectApi, deaths: Deaths) -> None:
        super().__init__()
        self._api = api
        self._deaths = deaths

    async def read_config_map(self, *named: str) -> ConfigMap | None:
        return await self._api.read_config_map(*named)

    async def write_entry(self, *entry: Any) -> None:
        await self._deaths.write(lambda: self._api.write_entry(*entry))


async def carry_out(
    step: ThrottleStep, cluster: Limited, writer: Any = None, deaths: Deaths | None = None
) -> ThrottleReply:
    deaths = deaths or Deaths()
    reader = SimulatedControllerClient(lambda: cluster.answer)
    record = replace(cluster.record, api=DyingApi(cluster.record.api, deaths))
    return await ask_for_throttle(step, record, reader, writer or DyingClient(cluster, deaths))


def a_cluster(configs: DynamicConfigs = EMPTY) -> Limited:
    return Limited(configs.copy())


async def test_a_limit_is_set_and_removed_and_nothing_is_written_that_is_there() -> None:
    cluster = a_cluster()
    assert await carry_out(SET, cluster) == ThrottleReply(step=SET)
    assert cluster.configs.topics == LIMITED
    assert {name: cluster.configs.defaults[name] for name in (LEADER_RATE, FOLLOWER_RATE)} == {
        LEADER_RATE: "5000",
        FOLLOWER_RATE: "5000",
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
        for writes in range(5):
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
        reply = await carry_out(step, cluster, deaths=Deaths(writes, arrives=arrives))
        assert reply.trouble in (None, "the connection broke")
        assert (await carry_out(after, cluster)).trouble is None
        assert cluster.configs.topics == topics
        assert bool(cluster.configs.defaults) is (after is SET)
        assert await cluster.owners() == ([OWNER] if after is SET else [])


async def test_a_topic_that_goes_meanwhile_holds_up_nothing() -> None:
    cluster = a_cluster()

    def delete() -> None:
        del cluster.configs.topics["orders"]
        cluster.before_write = lambda: None

    cluster.before_write = delete
    assert (await carry_out(SET, cluster)).trouble is None
    assert cluster.configs.topics == {"bills": LIMITED["bills"]}


async def test_all_replicas_that_somebody_names_in_between_are_refused_by_kafka_and_seen_by_the_next_look() -> None:
    cluster = a_cluster()

    def all_replicas() -> None:
        cluster.configs.topics["orders"][LEADER_REPLICAS] = "*"

    cluster.before_write = all_replicas
    reply = await carry_out(SET, cluster)
    assert (reply.reason, "Invalid value *,0:1" in str(reply.trouble)) == (Reason.REQUEST_REFUSED, True)
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
    theirs = dict.fromkeys((LEADER_RATE, FOLLOWER_RATE), "7")
    cluster = a_cluster(DynamicConfigs("orders", "bills", defaults=theirs))
    cluster.refuses_writes = ErrorCode.topic_authorization_failed
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
    requests = [each for each in client.requests if isinstance(each, IncrementalAlterConfigsRequest)]
    asked = [(len(each.resources), each.validate_only) for each in requests]
    assert asked == [(MAX_ASKED, True), (2, True), (MAX_ASKED, False), (2, False)]
    await carry_out(REMOVE, cluster)
    assert cluster.configs == DynamicConfigs(*names)


NAME = ("kafka", "operator-throttles")


async def test_the_record_of_another_kafka_cluster_stays() -> None:
    cluster = a_cluster()
    await cluster.api.write_entry(*NAME, "another", "its record", None)
    await carry_out(SET, cluster)
    assert cluster.api.config_maps[NAME].entries.keys() == {"another", "a-quorum"}
    await carry_out(REMOVE, cluster)
    assert cluster.api.config_maps[NAME].entries == {"another": "its record"}


@pytest.mark.parametrize(
    "text", ["no JSON", "{}", '{"version": 2}', '{"version": 1, "throttles": {"a": 7}, "claims": {}}']
)
async def test_an_unreadable_record_is_said_and_nothing_is_written(text: str) -> None:
    cluster = a_cluster()
    await cluster.api.write_entry(*NAME, "a-quorum", text, None)
    reply = await carry_out(SET, cluster)
    assert (reply.reason, cluster.writes) == (Reason.REQUEST_REFUSED, 0)
    assert "entry a-quorum of ConfigMap kafka/operator-throttles is unreadable" in str(reply.trouble)
    assert cluster.api.config_maps[NAME].entries == {"a-quorum": text}


@pytest.mark.parametrize("verb", ["read", "written"])
async def test_a_right_to_the_record_that_is_missing_is_said_and_kafka_is_left_alone(verb: str) -> None:
    class Forbidding(SimulatedApiServer):
        async def read_config_map(self, *named: str) -> ConfigMap | None:
            if verb == "read":
                self._forbid()
            return None

        async def write_entry(self, *_: Any) -> None:
            self._forbid()

        def _forbid(self) -> None:
            raise ApiForbidden("403 no right")

    cluster = a_cluster()
    cluster.record = ThrottleRecord(Forbidding(), *NAME, "a-quorum")
    reply = await carry_out(SET, cluster)
    assert (reply.reason, cluster.writes) == (Reason.REQUEST_REFUSED, 0)
    assert f"cannot be {verb}: 403 no right" in str(reply.trouble)


async def test_a_record_that_somebody_changes_in_between_is_read_again() -> None:
    cluster = a_cluster()
    other = SetThrottle(owner="shop/other/uid", moves={BILLS: MOVES[BILLS]}, bytes_per_second=700)
    _, stale = await cluster.record.read()
    assert (await carry_out(other, cluster)).trouble is None
    await cluster.record.write(Record(), stale)
    assert (await carry_out(SET, cluster)).trouble is None
    assert await cluster.owners() == [OWNER, other.owner]
    assert cluster.configs.defaults == dict.fromkeys((LEADER_RATE, FOLLOWER_RATE), "700")


ORDERS = TopicPartition(TopicName("orders"), PartitionId(0))
OTHER = SetThrottle(owner="shop/other/uid", moves={ORDERS: MOVES[ORDERS]}, bytes_per_second=9000)
OF_BILLS = SetThrottle(owner=OWNER, moves={BILLS: MOVES[BILLS]}, bytes_per_second=1000)
RATE_OF_OTHER = dict.fromkeys((LEADER_RATE, FOLLOWER_RATE), "9000")


def a_cluster_with_unchangeable_bills() -> Limited:
    configs = EMPTY.copy()
    configs.unchangeable = frozenset({"bills"})
    return a_cluster(configs)


def is_refused_by_bills(reply: ThrottleReply) -> bool:
    return reply.reason is Reason.REQUEST_REFUSED and "topic bills: Invalid value 102400" in str(reply.trouble)


@pytest.mark.parametrize("refused", [OF_BILLS, replace(SET, bytes_per_second=1000)], ids=["alone", "with another"])
async def test_a_topic_that_refuses_its_limit_fails_only_its_owner_and_limits_nobody(refused: SetThrottle) -> None:
    cluster = a_cluster_with_unchangeable_bills()
    assert (await carry_out(OTHER, cluster)).trouble is None
    limited = cluster.configs.copy()
    assert is_refused_by_bills(await carry_out(refused, cluster))
    assert (cluster.configs, await cluster.owners()) == (limited, [OTHER.owner])
    assert (await carry_out(RemoveThrottle(owner=OTHER.owner), cluster)).trouble is None
    assert (cluster.configs, await cluster.owners()) == (EMPTY, [])
    assert (await carry_out(OTHER, cluster)).trouble is None
    assert cluster.configs == limited


async def test_an_owner_whose_new_topic_refuses_keeps_the_limit_of_its_running_moves() -> None:
    cluster = a_cluster_with_unchangeable_bills()
    running = replace(OTHER, owner=OWNER)
    await carry_out(running, cluster)
    limited, record = cluster.configs.copy(), (await cluster.record.read())[0]
    assert is_refused_by_bills(await carry_out(replace(SET, bytes_per_second=1000), cluster))
    assert (cluster.configs, (await cluster.record.read())[0]) == (limited, record)


@pytest.mark.parametrize("fails_first", [False, True])
async def test_a_limit_that_a_topic_does_not_give_back_stays_in_the_record_and_holds_up_no_other(
    fails_first: bool,
) -> None:
    cluster = a_cluster()
    await carry_out(OTHER, cluster)
    await carry_out(OF_BILLS, cluster)
    cluster.configs.unchangeable = frozenset({"bills"})
    for _ in range(2):
        assert is_refused_by_bills(await carry_out(RemoveThrottle(owner=OWNER), cluster))
        assert (cluster.configs.defaults, await cluster.owners()) == (RATE_OF_OTHER, [OWNER, OTHER.owner])
    remove_other = RemoveThrottle(owner=OTHER.owner)
    if fails_first:
        await carry_out(remove_other, cluster, deaths=Deaths(1, arrives=False))
    assert (await carry_out(remove_other, cluster)).trouble is None
    assert (cluster.configs.topics["orders"], cluster.configs.defaults, await cluster.owners()) == ({}, {}, [OWNER])
    cluster.configs.unchangeable = frozenset()
    assert (await carry_out(RemoveThrottle(owner=OWNER), cluster)).trouble is None
    assert (cluster.configs, await cluster.owners()) == (EMPTY, [])


async def test_a_topic_that_begins_to_refuse_after_the_validation_limits_nobody() -> None:
    cluster = a_cluster()
    await carry_out(OTHER, cluster)
    limited = cluster.configs.copy()

    def break_bills() -> None:
        cluster.configs.unchangeable = frozenset({"bills"})

    cluster.before_write = break_bills
    for _ in range(2):
        assert is_refused_by_bills(await carry_out(replace(SET, bytes_per_second=1000), cluster))
        assert cluster.configs == limited
    assert (await carry_out(REMOVE, cluster)).trouble is None
    assert (cluster.configs, await cluster.owners()) == (limited, [OTHER.owner])


@pytest.mark.parametrize("arrives", [True, False])
@pytest.mark.parametrize("writes", range(5))
async def test_whoever_dies_beside_a_topic_that_refuses_leaves_what_the_next_one_sets_right(
    writes: int, arrives: bool
) -> None:
    for step in (OTHER, RemoveThrottle(owner=OTHER.owner)):
        cluster = a_cluster()
        await carry_out(OF_BILLS, cluster)
        if isinstance(step, RemoveThrottle):
            await carry_out(OTHER, cluster)
        cluster.configs.unchangeable = frozenset({"bills"})
        await carry_out(RemoveThrottle(owner=OWNER), cluster, deaths=Deaths(writes, arrives=arrives))
        await carry_out(step, cluster, deaths=Deaths(writes, arrives=arrives))
        assert (await carry_out(step, cluster)).trouble is None
        assert is_refused_by_bills(await carry_out(RemoveThrottle(owner=OWNER), cluster))
        assert cluster.configs.defaults == (RATE_OF_OTHER if step is OTHER else {})
        cluster.configs.unchangeable = frozenset()
        await carry_out(RemoveThrottle(owner=OWNER), cluster)
        await carry_out(RemoveThrottle(owner=OTHER.owner), cluster)
        assert (cluster.configs, await cluster.owners()) == (EMPTY, [])


async def test_a_right_to_one_topic_that_is_missing_fails_only_its_owner() -> None:
    cluster = a_cluster()
    await carry_out(OF_BILLS, cluster)
    cluster.hides = frozenset({"bills"})
    assert (await carry_out(OTHER, cluster)).trouble is None
    assert cluster.configs.topics["orders"] == LIMITED["orders"]
    reply = await carry_out(RemoveThrottle(owner=OWNER), cluster)
    assert (reply.reason, "DescribeConfigs of the topic" in str(reply.trouble)) == (Reason.REQUEST_REFUSED, True)
    assert cluster.configs.defaults == RATE_OF_OTHER
    cluster.hides = frozenset()
    await carry_out(RemoveThrottle(owner=OWNER), cluster)
    await carry_out(RemoveThrottle(owner=OTHER.owner), cluster)
    assert (cluster.configs, await cluster.owners()) == (EMPTY, [])
