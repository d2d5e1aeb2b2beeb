"""The descriptions that the client makes from a cluster's answers: its nodes, and the places of moving partitions."""

import pytest
from kio.schema.errors import ErrorCode
from kio.static.protocol import RequestPayload

from controller_core.client.admin_client import AdminClient
from controller_core.client.cluster import Call
from controller_core.client.reassigning.assignments import format_reassignment, parse_reassignment
from controller_core.model.ids import BrokerId, PartitionId, TopicName, TopicPartition
from controller_core.model.snapshot import Controller, ControllerKind
from tests.unit.admin_commands.answering_cluster import CONTROLLER, QUORUM_LEADER, AnsweringCluster, SimulatedTopic


@pytest.fixture
def cluster(monkeypatch: pytest.MonkeyPatch) -> AnsweringCluster:
    """Return a cluster that answers all calls of the client."""
    answering = AnsweringCluster(
        {"still": SimulatedTopic([1, 2], [1, 2]), "moving": SimulatedTopic([3, 1, 2], [1, 2], adding=[3])}
    )

    async def ask(call: Call, request: RequestPayload, *_: object, **__: object) -> object:
        return await answering.answer(request)

    monkeypatch.setattr(Call, "ask_any", ask)
    monkeypatch.setattr(Call, "ask_controller", ask)
    return answering


async def test_a_move_is_taken_back_to_where_its_partitions_were_before_another_one(cluster: AnsweringCluster) -> None:
    """Brokers name the replicas that it is to have, too; by these it would have more of them in the end."""
    wanted = format_reassignment({TopicPartition(TopicName(name), PartitionId(0)): (2, 3) for name in cluster.topics})
    back = await AdminClient({"bootstrap.servers": "h:1"}).current_assignment(wanted)
    assert {tp.topic: replicas for tp, replicas in parse_reassignment(back).items()} == {
        "still": (1, 2),
        "moving": (1, 2),
    }


async def test_nodes_have_so_many_replicas(cluster: AnsweringCluster) -> None:
    described = await AdminClient({"bootstrap.servers": "h:1"}).describe_cluster()
    replicas = described.count_replicas()
    assert {broker: replicas[broker] for broker in described.brokers} == {1: 2, 2: 2, 3: 1, CONTROLLER: 0}


async def test_a_described_cluster_has_the_leaders_and_isrs_of_its_partitions(cluster: AnsweringCluster) -> None:
    described = await AdminClient({"bootstrap.servers": "h:1"}).describe_cluster()
    isrs = {str(each.partition): (each.leader, each.isr) for each in described.list_partitions()}
    assert isrs == {"still-0": (1, (1, 2)), "moving-0": (1, (1, 2))}
    assert (described.counts.partitions, described.counts.under_replicated) == (2, 1)


async def test_the_controller_of_a_cluster_without_zookeeper_is_who_leads_its_quorum_if_that_is_told(
    cluster: AnsweringCluster,
) -> None:
    admin = AdminClient({"bootstrap.servers": "h:1"})
    assert (await admin.describe_cluster()).controller == Controller(id=BrokerId(CONTROLLER))
    cluster.has_quorum = True
    leader = (await admin.describe_cluster()).controller
    assert leader is not None
    assert (leader.id, leader.kind) == (QUORUM_LEADER, ControllerKind.KRAFT)
    cluster.quorum_refusal = ErrorCode.cluster_authorization_failed
    assert (await admin.describe_cluster()).controller is None
