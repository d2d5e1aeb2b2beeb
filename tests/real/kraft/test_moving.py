"""A cluster without ZooKeeper whose partitions move back and forth: no view shows a half-moved one without its move."""

import asyncio
from collections.abc import Iterator, Mapping

import pytest

from controller_core.client.transport.kept_client import KeptClient
from controller_core.client.transport.request_client import parse_addresses
from controller_core.model.ids import BrokerId, TopicName, TopicPartition
from controller_core.model.snapshot import Snapshot
from controller_operator.kafka.actions import SubmitReassignment
from controller_operator.kafka.requests.moves import submit
from controller_operator.observation.observation import Observation
from controller_operator.observation.poller import ClusterPoller
from devcluster.clients.tools import TOPICS, run_tool
from devcluster.clusters.kraft import KRaftCluster
from devcluster.clusters.run_folder import RunFolder
from devcluster.filling.parts import Part
from simulation.cluster.names import tp
from tests.real.kraft.releases import RELEASES

pytestmark = [pytest.mark.real(Part.KRAFT), pytest.mark.timeout(300)]

ORDERS = TopicName("orders")
ROUNDS = 12
DEADLINE_S = 200

Places = Mapping[TopicPartition, tuple[BrokerId, ...]]


def places(*replicas: tuple[int, ...]) -> Places:
    return {tp(ORDERS, number): tuple(map(BrokerId, each)) for number, each in enumerate(replicas)}


HERE, THERE = places((1, 2), (2, 1), (1, 2)), places((3, 4), (4, 3), (3, 4))


@pytest.fixture(scope="module", params=RELEASES)
def kafka(request: pytest.FixtureRequest, servers_folder: RunFolder) -> Iterator[KRaftCluster]:
    """Four brokers, and partitions on two of them."""
    name = f"moving-{request.param}"
    with KRaftCluster(servers_folder, name=name, brokers=4, version=request.param) as cluster:
        places_of_brokers = ",".join(":".join(map(str, each)) for each in HERE.values())
        run_tool(
            TOPICS,
            *("--bootstrap-server", cluster.bootstrap_servers, "--create", "--topic", ORDERS),
            *("--replica-assignment", places_of_brokers),
        )
        yield cluster


def list_resting(view: Snapshot) -> Mapping[TopicPartition, tuple[BrokerId, ...]]:
    """Return the replicas of the partitions that do not move."""
    assignments = {partition: view.assignment_of(partition) for partition in HERE}
    return {
        partition: each.replicas
        for partition, each in assignments.items()
        if each is not None and not each.is_being_reassigned
    }


async def test_a_partition_is_where_it_was_or_moves_or_is_where_it_is_to_be(kafka: KRaftCluster) -> None:
    """The controllers report the end of a move before any broker shows it; a started move is seen at once."""
    addresses = parse_addresses(kafka.bootstrap_servers)
    poller, client = ClusterPoller(lambda: (KeptClient(addresses), "PLAINTEXT")), KeptClient(addresses)
    wrong: list[tuple[str, TopicPartition, tuple[BrokerId, ...]]] = []
    views = 0

    def judge(view: Snapshot, when: str, *allowed: Places) -> None:
        nonlocal views
        views += 1
        wrong.extend(
            (when, partition, replicas)
            for partition, replicas in list_resting(view).items()
            if replicas not in [each[partition] for each in allowed]
        )

    def hear(observation: Observation) -> None:
        if observation.view is not None and observation.view.topics:
            judge(observation.view, "told", HERE, THERE)

    poller.add_listener(hear)
    poller.start()
    try:
        async with asyncio.timeout(DEADLINE_S):
            for target in (THERE, HERE) * (ROUNDS // 2):
                reply = await submit(SubmitReassignment(partitions=target), client)
                assert reply.accepted == set(target)
                while list_resting(view := await poller.refresh()) != target:
                    judge(view, "asked for", target)
    finally:
        await poller.stop()
        client.close()
    assert wrong == []
    assert views > ROUNDS
