"""The client finds out from a broker's metadata if partitions are led by their preferred replicas."""

from typing import cast

import pytest
from kio.schema.errors import ErrorCode
from kio.schema.metadata.v11 import MetadataResponse
from kio.schema.metadata.v11.response import MetadataResponsePartition, MetadataResponseTopic
from kio.schema.types import BrokerId as WireBrokerId
from kio.schema.types import TopicName as WireTopicName
from kio.static.primitive import i32

from controller_core.client.cluster import Call
from controller_core.client.elections import verify_preferred
from controller_core.client.reassigning.reassignments import Progress
from controller_core.model.ids import PartitionId, TopicName, TopicPartition
from tests.unit.client.transport.servers import NO_TIME

ORDERS = TopicPartition(TopicName("orders"), PartitionId(0))


class Told:
    """A `Call` whose server knows the partition `orders-0`, or nothing."""

    def __init__(self, leader: int, replicas: list[int], isr: list[int]) -> None:
        self._leader, self._replicas, self._isr = leader, replicas, isr

    async def metadata(self, *topics: str, of_all: bool = False) -> MetadataResponse:
        partition = MetadataResponsePartition(
            error_code=ErrorCode.none,
            partition_index=i32(0),
            leader_id=WireBrokerId(self._leader),
            leader_epoch=i32(0),
            replica_nodes=tuple(map(WireBrokerId, self._replicas)),
            isr_nodes=tuple(map(WireBrokerId, self._isr)),
            offline_replicas=(),
        )
        topic = MetadataResponseTopic(
            error_code=ErrorCode.none,
            name=WireTopicName("orders"),
            topic_id=None,
            is_internal=False,
            partitions=(partition,) if self._replicas else (),
        )
        return MetadataResponse(
            throttle_time=NO_TIME, brokers=(), cluster_id=None, controller_id=WireBrokerId(1), topics=(topic,)
        )


@pytest.mark.parametrize(
    ("told", "progress"),
    [
        pytest.param(Told(1, [1, 2], [1, 2]), Progress.COMPLETED, id="the preferred replica leads"),
        pytest.param(Told(2, [1, 2], [1, 2]), Progress.IN_PROGRESS, id="it could lead"),
        pytest.param(Told(2, [1, 2], [2]), Progress.FAILED, id="it is not in sync"),
        pytest.param(Told(-1, [1, 2], [2]), Progress.FAILED, id="nobody leads, and it is not in sync"),
        pytest.param(Told(-1, [], []), Progress.FAILED, id="there is no such partition"),
    ],
)
async def test_an_election_is_verified_by_who_leads_and_who_is_in_sync(told: Told, progress: Progress) -> None:
    assert await verify_preferred(cast(Call, told), [ORDERS]) == {ORDERS: progress}
