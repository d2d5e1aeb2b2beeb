"""Requests for changes to a cluster without ZooKeeper, and the resulting metadata: the simulation and Kafka's own.

The requests are those of the operator. The tests compare the outcome of each, and the partitions' replicas afterwards.
"""

import asyncio
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from datetime import timedelta

import pytest
from kio.schema.metadata.v11 import MetadataResponse
from kio.static.primitive import i32Timedelta
from kio.static.protocol import RequestPayload, ResponsePayload

from controller_core.client.topics.requests import delete_topic
from controller_core.client.transport.request_client import ControllerClient, RequestClient, parse_addresses
from controller_core.model.features import FeatureUpdate, UpgradeType
from controller_core.model.ids import BrokerId, PartitionId, TopicName, TopicPartition, TopicVersion
from controller_core.model.metadata import ReplicaAssignment, TopicAssignment
from controller_core.wire.requests.metadata import ALL_TOPICS
from controller_operator.kafka.actions import (
    AddPartitions,
    AlterTopicConfig,
    CreateTopic,
    MarkTopicForDeletion,
    SubmitPreferredElection,
    SubmitReassignment,
)
from controller_operator.kafka.requests.cancellations import CancelReassignment, cancel_reassignment
from controller_operator.kafka.requests.elections import ElectUnclean, elect_preferred, elect_unclean
from controller_operator.kafka.requests.features import UpdateFeatures, update_features
from controller_operator.kafka.requests.moves import RefusalKind, submit
from controller_operator.kafka.requests.topics import MissTopic, TopicReply, ask_for_topic
from devcluster.clusters.kraft import KRaftCluster
from devcluster.clusters.run_folder import RunFolder
from devcluster.filling.parts import Part
from simulation.cluster.names import tp
from simulation.controller_client import SimulatedControllerClient
from simulation.kraft import QuorumCluster
from simulation.kraft.clients import make_answer

NAME = TopicName("orders")
OTHER = TopicName("other")
SHOWN_WITHIN_S = 60


@pytest.fixture(scope="module")
def kraft(servers_folder: RunFolder) -> Iterator[KRaftCluster]:
    """Three brokers and a controller, which no test disturbs."""
    with KRaftCluster(servers_folder, name="contract", controllers=1, release="4.0") as cluster:
        yield cluster


@pytest.fixture(params=["simulated", pytest.param("real", marks=pytest.mark.real(Part.KRAFT))])
async def client(request: pytest.FixtureRequest) -> AsyncIterator[ControllerClient]:
    """A client of the controllers. The topics are deleted at the end."""
    if request.param == "simulated":
        cluster = QuorumCluster(1, 2, 3)

        async def answer(asked: RequestPayload) -> ResponsePayload:
            return make_answer(cluster, asked)

        yield SimulatedControllerClient(lambda: answer)
        return
    real = RequestClient(parse_addresses(request.getfixturevalue("kraft").bootstrap_servers))
    yield real
    # By name, because a broker may not show yet what the controllers have.
    for name in (NAME, OTHER):
        await delete_topic(real, name, i32Timedelta.parse(timedelta(seconds=60)))


def assignment(*replicas: Sequence[int]) -> TopicAssignment:
    return TopicAssignment(
        topic_id=None,
        partitions={
            PartitionId(number): ReplicaAssignment(replicas=tuple(map(BrokerId, each)))
            for number, each in enumerate(replicas)
        },
    )


async def create(client: ControllerClient, *replicas: Sequence[int], name: TopicName = NAME) -> TopicReply:
    step = CreateTopic(topic=name, assignment=assignment(*replicas), config={"retention.ms": "9000"})
    return await ask_for_topic(step, client)


async def add(client: ControllerClient, *replicas: Sequence[int], present: int, name: TopicName = NAME) -> TopicReply:
    whole = assignment(*replicas)
    return await ask_for_topic(
        AddPartitions(topic=name, assignment=whole, version=TopicVersion(0), present=present), client
    )


async def partitions(client: ControllerClient) -> list[Mapping[TopicPartition, tuple[int, ...]]]:
    """Return the replicas of each partition, as each of the servers shows them."""
    if isinstance(client, RequestClient):
        answers = [
            await client.restrict_to(each).ask_any(ALL_TOPICS, MetadataResponse) for each in sorted(client.bootstrap)
        ]
    else:
        answers = [await client.ask(ALL_TOPICS, MetadataResponse)]
    return [
        {
            tp(topic.name or "", each.partition_index): tuple(map(int, each.replica_nodes))
            for topic in answer.topics
            for each in topic.partitions
        }
        for answer in answers
    ]


async def wait_until_shown(client: ControllerClient, expected: Mapping[TopicPartition, tuple[int, ...]]) -> None:
    """Wait until each broker shows these partitions: the controllers answer before the brokers know of a change."""
    shown = await partitions(client)
    try:
        async with asyncio.timeout(SHOWN_WITHIN_S):
            while any(each != expected for each in shown):
                shown = await partitions(client)
    except TimeoutError:
        pytest.fail(f"the brokers still show {shown}, and not {expected}")


async def test_a_topic_is_created_once_grows_and_is_deleted_once_by_its_id(client: ControllerClient) -> None:
    created = await create(client, [1, 2])
    assert created.is_done
    assert (await create(client, [1, 2])).refused is not None
    assert (await create(client, [1, 9], name=OTHER)).refused is not None
    assert (await add(client, [1, 2], [2, 3], present=1)).is_done
    assert (await add(client, [1, 2], [2, 3], present=1)).refused is not None
    assert (await add(client, [1, 2], [2, 3], present=1, name=OTHER)).refused is not None
    await wait_until_shown(client, {tp(NAME, 0): (1, 2), tp(NAME, 1): (2, 3)})
    assert created.topic_id is not None
    deletion = MarkTopicForDeletion(topic=NAME, topic_id=created.topic_id)
    assert (await ask_for_topic(MissTopic(topic=NAME), client)).trouble is not None
    assert (await ask_for_topic(MissTopic(topic=OTHER), client)).is_done
    assert (await ask_for_topic(deletion, client)).is_done
    assert (await ask_for_topic(deletion, client)).refused is not None
    assert (await create(client, [3])).topic_id != created.topic_id


async def test_a_configuration_is_set_and_unset_as_often_as_it_is_asked_for(client: ControllerClient) -> None:
    await create(client, [1])
    changes = {"flush.ms": "7000", "retention.ms": None}
    for name, is_done in ((NAME, True), (NAME, True), (OTHER, False)):
        step = AlterTopicConfig(topic=name, config={}, version=None, changes=changes)
        assert (await ask_for_topic(step, client)).is_done is is_done


async def test_a_move_begins_once_and_is_over_when_nothing_moves(client: ControllerClient) -> None:
    await create(client, [1, 2])
    there = SubmitReassignment(partitions={tp(NAME, 0): (BrokerId(2), BrokerId(1))})
    for _ in range(2):
        assert (await submit(there, client)).accepted == {tp(NAME, 0)}
    await wait_until_shown(client, {tp(NAME, 0): (2, 1)})
    refusals = {
        tp(OTHER, 0): RefusalKind.UNKNOWN,
        tp(NAME, 7): RefusalKind.UNKNOWN,
        tp(NAME, 0): RefusalKind.IMPOSSIBLE,
    }
    reply = await submit(SubmitReassignment(partitions=dict.fromkeys(refusals, (BrokerId(1), BrokerId(9)))), client)
    assert {at: each.kind for at, each in reply.refused.items()} == refusals
    cancelled = await cancel_reassignment(CancelReassignment(partitions=(tp(NAME, 0), tp(OTHER, 0))), client)
    assert (cancelled.refused, cancelled.trouble) == ((), None)


async def test_nobody_is_elected_where_it_is_not_needed_and_what_is_not_there_is_refused(
    client: ControllerClient,
) -> None:
    await create(client, [1, 2])
    asked = (tp(NAME, 0), tp(OTHER, 0))
    preferred = await elect_preferred(SubmitPreferredElection(partitions=asked), client)
    for reply in (preferred, await elect_unclean(ElectUnclean(partitions=asked), client)):
        assert [at for at, _ in reply.refused] == [tp(OTHER, 0)]
        assert reply.trouble is None


async def test_features_go_to_levels_that_there_are_as_often_as_it_is_asked_for(client: ControllerClient) -> None:
    for level, type_, is_done in (
        (26, UpgradeType.UPGRADE, True),
        (26, UpgradeType.UPGRADE, True),
        (999, UpgradeType.UPGRADE, False),
        (25, UpgradeType.UPGRADE, False),
    ):
        update = FeatureUpdate(feature="metadata.version", max_version_level=level, upgrade_type=type_)
        reply = await update_features(UpdateFeatures(updates=(update,)), client)
        assert (reply.refused == (), reply.trouble) == (is_done, None)
