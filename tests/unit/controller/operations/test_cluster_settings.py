"""Settings that a controller was not given are those in the brokers' files, which the brokers return when asked."""

import asyncio
from collections.abc import Collection, Mapping
from datetime import timedelta

import pytest
from kio.schema.delete_topics.v6.request import DeleteTopicsRequest, DeleteTopicState
from kio.schema.errors import ErrorCode
from kio.schema.types import TopicName as WireTopicName
from kio.static.primitive import i32Timedelta

from controller_core.controller.recording.static_configs import FIRST_ANSWERS_MS
from controller_core.model.ids import BrokerId, TopicName
from controller_core.wire.link import UnreadableAnswer
from controller_core.zk import paths
from simulation.checks import assert_sound
from simulation.cluster import Cluster, tp
from simulation.process import ProcessSettings
from tests.unit.admin.topics.test_create_topics import request, topic

NOT_GIVEN = ProcessSettings(
    num_partitions=None,
    default_replication_factor=None,
    delete_topic_enable=None,
    unclean_leader_election_enable=None,
    auto_leader_rebalance_enable=None,
)
FILE = {"default.replication.factor": "3", "num.partitions": "6", "delete.topic.enable": "true"}
DIFFERS = "a setting differs between brokers, or between brokers and controller"


def start_brokers(cluster: Cluster, *files: Mapping[str, str], settings: ProcessSettings = NOT_GIVEN) -> None:
    """Start brokers 1, 2, ... with these files."""
    cluster.settings = settings
    for number, file in enumerate(files, start=1):
        cluster.start_broker(number)
        cluster.broker(number).static_config.update(file)


def find_differing(cluster: Cluster) -> list[str]:
    """Return the differences in the log."""
    return [entry["setting"] for entry in cluster.logs if entry["event"] == DIFFERS]


def refuse_questions(cluster: Cluster, number: int, monkeypatch: pytest.MonkeyPatch) -> None:
    async def refuse(_broker: BrokerId, _names: Collection[str]) -> Mapping[str, str]:
        raise UnreadableAnswer("DescribeConfigs: cluster_authorization_failed")

    monkeypatch.setattr(cluster.broker(number), "tell_static_config", refuse)


def delete(name: str) -> DeleteTopicsRequest:
    state = DeleteTopicState(name=WireTopicName(name), topic_id=None)
    return DeleteTopicsRequest(topics=(state,), timeout=i32Timedelta.parse(timedelta()))


async def shape(cluster: Cluster, name: str) -> tuple[int, int]:
    """Create a topic without numbers. Return the numbers of its partitions and replicas."""
    (result,) = (await cluster.request(request(topic(name)))).topics
    assert result.error_code is ErrorCode.none, result.error_message
    return result.num_partitions, result.replication_factor


async def test_a_topic_without_numbers_gets_those_of_the_brokers_files(cluster: Cluster) -> None:
    start_brokers(cluster, FILE, FILE, FILE)
    await cluster.serve()
    assert await shape(cluster, "orders") == (6, 3)
    assert find_differing(cluster) == []


async def test_while_files_differ_the_larger_numbers_hold_and_each_difference_is_told_once(cluster: Cluster) -> None:
    start_brokers(cluster, FILE, {**FILE, "default.replication.factor": "1", "num.partitions": "1"}, FILE)
    process = await cluster.serve()
    assert await shape(cluster, "orders") == (6, 3)
    told = ["default.replication.factor is 3 at 1, 3, 1000; 1 at 2", "num.partitions is 6 at 1, 3, 1000; 1 at 2"]
    assert sorted(find_differing(cluster))[-2:] == told
    assert process.metric("kontroller_differing_settings", setting="num.partitions") == 2
    before = len(find_differing(cluster))
    cluster.bounce_broker(3)
    await cluster.settle(passing_ms=60_000)
    assert len(find_differing(cluster)) == before
    cluster.broker(2).static_config.update(FILE)
    cluster.bounce_broker(2)
    await cluster.settle(passing_ms=10_000)
    assert process.metric("kontroller_differing_settings", setting="num.partitions") is None
    assert_sound(cluster)


async def test_a_setting_of_the_controller_wins_and_is_told(cluster: Cluster) -> None:
    start_brokers(cluster, FILE, FILE, settings=ProcessSettings(default_replication_factor=2, num_partitions=6))
    await cluster.serve()
    assert await shape(cluster, "orders") == (6, 2)
    assert "default.replication.factor is 3 at 1, 2; 2 at 1000" in find_differing(cluster)


async def test_a_policy_that_brokers_name_is_told_because_the_controller_does_not_run_it(cluster: Cluster) -> None:
    policy = {"create.topic.policy.class.name": "com.example.Policy"}
    start_brokers(cluster, {**FILE, **policy}, {**FILE, **policy})
    process = await cluster.serve()
    assert find_differing(cluster)[-1] == (
        "create.topic.policy.class.name is com.example.Policy at 1, 2; not set at 1000"
    )
    assert process.metric("kontroller_differing_settings", setting="create.topic.policy.class.name") == 2


async def test_if_no_broker_answers_defaults_are_refused_with_the_reason_and_nothing_is_deleted(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    start_brokers(cluster, {}, {})
    for number in (1, 2):
        refuse_questions(cluster, number, monkeypatch)
    process = await cluster.serve()
    (result,) = (await cluster.request(request(topic("orders")))).topics
    assert result.error_code is ErrorCode.invalid_replication_factor
    assert "broker 1: DescribeConfigs: cluster_authorization_failed" in str(result.error_message)
    assert "--default-replication-factor" in str(result.error_message)
    cluster.create_topic("kept", [1, 2])
    cluster.request_deletion("kept")
    await cluster.settle()
    assert cluster.exists(paths.delete_topic(TopicName("kept"))), "it is neither carried out nor forgotten"
    assert cluster.leadership(tp("kept")) == (1, [1, 2])
    (refused,) = (await cluster.request(delete("kept"))).responses
    assert refused.error_code is ErrorCode.topic_deletion_disabled
    assert "--delete-topic-enable" in str(refused.error_message)
    assert process.metric("kontroller_brokers_with_unknown_settings") == 2
    monkeypatch.undo()
    cluster.broker(1).static_config.update(FILE)
    await cluster.settle(passing_ms=60_000)
    assert not cluster.exists(paths.topic(TopicName("kept"))), "the mark is carried out when deletion is known to be on"
    assert_sound(cluster)


async def test_a_request_waits_for_the_first_answers_but_not_for_a_broker_that_hangs(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    start_brokers(cluster, FILE, FILE, FILE)
    released = asyncio.Event()
    tell = cluster.broker(3).tell_static_config

    async def hang(broker: BrokerId, names: Collection[str]) -> Mapping[str, str]:
        await released.wait()
        return await tell(broker, names)

    for number in (1, 2, 3):
        monkeypatch.setattr(cluster.broker(number), "tell_static_config", hang)
    await cluster.serve()
    answer = asyncio.create_task(cluster.active.answer(request(topic("orders"))))
    await cluster.settle(passing_ms=0)
    assert not answer.done()
    await cluster.settle(passing_ms=FIRST_ANSWERS_MS)
    assert answer.done()
    assert (await answer).topics[0].error_code is ErrorCode.invalid_replication_factor
    monkeypatch.undo()
    released.set()


async def test_partitions_get_an_unclean_leader_when_all_files_turn_out_to_allow_it(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    start_brokers(cluster, {}, {})
    refuse_questions(cluster, 2, monkeypatch)
    await cluster.serve()
    cluster.create_topic("orders", [1, 2])
    await cluster.settle()
    await cluster.alter_isr(tp("orders"), [1])
    cluster.kill_broker(1)
    await cluster.settle()
    assert cluster.leadership(tp("orders")) == (-1, [1])
    monkeypatch.undo()
    cluster.broker(2).static_config["unclean.leader.election.enable"] = "true"
    await cluster.settle(passing_ms=60_000)
    assert cluster.leadership(tp("orders")) == (2, [2])


async def test_a_standby_knows_the_answers_before_its_term(cluster: Cluster, monkeypatch: pytest.MonkeyPatch) -> None:
    start_brokers(cluster, FILE, FILE, FILE)
    first = await cluster.serve()
    cluster.start_controller(1001)
    await cluster.settle(passing_ms=10_000)
    for number in (1, 2, 3):
        refuse_questions(cluster, number, monkeypatch)
    await first.stop()
    await cluster.settle()
    assert await shape(cluster, "orders") == (6, 3)
