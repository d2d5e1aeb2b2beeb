"""A cluster in one event loop: simulated ZooKeeper and brokers around the production `Controller`.

Followers do not fetch. `replicate` lets every leader report the followers that were told to follow it in its own epoch,
which is what a real leader would find in sync.
"""

from collections.abc import Iterable
from dataclasses import replace

from structlog.typing import EventDict

from controller_core.model.ids import (
    BrokerEpoch,
    BrokerId,
    TopicPartition,
)
from controller_core.model.metadata import (
    PartitionState,
)
from controller_core.wire.messages import (
    AlterPartitionResponse,
    ControlledShutdownRequest,
    ControlledShutdownResponse,
    ErrorCode,
)
from simulation.broker_state import SimulatedReplica
from simulation.brokers import SimulatedBroker
from simulation.cluster.controllers import Controllers
from simulation.cluster.names import ids
from simulation.cluster.requests import alter_partition


class Cluster(Controllers):
    """Brokers, ZooKeeper and controller processes. Plain methods act at once; the controller reacts in `settle`."""

    def __init__(self, *, empty_zookeeper: bool = False) -> None:
        super().__init__(empty_zookeeper=empty_zookeeper)
        self.logs: list[EventDict] = []
        """The log lines so far."""
        self.surprises_expected = False
        self._answered: dict[tuple[BrokerId, TopicPartition], PartitionState] = {}
        """The states from the answers to the leaders' last AlterPartition."""

    def start_broker(self, number: int) -> None:
        """Start or restart a broker and register it. It loses its memory."""
        super().start_broker(number)
        self._forget_answers(BrokerId(number))

    def leader_of(self, partition: TopicPartition) -> SimulatedBroker | None:
        """Return the broker that acts as the leader, the one with the largest epoch if there are several."""
        leaders = [self.brokers[b] for b in self.live if self.brokers[b].leads(partition)]
        return max(leaders, key=lambda broker: broker.replicas[partition].leader_epoch, default=None)

    async def alter_isr(self, partition: TopicPartition, isr: Iterable[int]) -> ErrorCode | None:
        """Send the leader's request for an ISR. Return None if there is no leader or no answer."""
        leader = self.leader_of(partition)
        if leader is None:
            return None
        view = self._view(leader, partition)
        assert view.topic_id is not None
        request = alter_partition(leader, view.topic_id, partition, view, ids(isr))
        response = await self.ask(leader.id, request)
        if response is None:
            return None
        assert isinstance(response, AlterPartitionResponse)
        if response.error_code is not ErrorCode.none:
            return response.error_code
        result = response.topics[0].partitions[0]
        if isinstance(result.outcome, PartitionState):
            self._answered[leader.id, partition] = result.outcome
        return result.error_code

    async def join_isr(self, partition: TopicPartition, *numbers: int) -> None:
        """Add in-sync brokers to the ISR at the leader's request."""
        leader = self.leader_of(partition)
        assert leader is not None, f"nobody leads {partition}"
        isr = self._view(leader, partition).isr
        assert await self.alter_isr(partition, (*isr, *numbers)) is ErrorCode.none

    async def replicate(self) -> None:
        """Let every leader report the followers that keep up, until there are no more."""
        await self.settle()
        changed = True
        while changed:
            changed = False
            for partition in self._list_partitions():
                if joining := self._find_joining(partition):
                    leader = self.leader_of(partition)
                    assert leader is not None
                    isr = self._view(leader, partition).isr
                    changed |= await self.alter_isr(partition, (*isr, *joining)) is ErrorCode.none

    def has_joining_followers(self) -> bool:
        """Return True if `replicate` would report a follower now. It costs less than to settle."""
        return any(self._find_joining(partition) for partition in self._list_partitions())

    def _list_partitions(self) -> list[TopicPartition]:
        return sorted({partition for broker in self.brokers.values() for partition in broker.replicas})

    def _find_joining(self, partition: TopicPartition) -> list[BrokerId]:
        """Return the followers that keep up and are not in the ISR, if the leader knows its controller."""
        leader = self.leader_of(partition)
        if leader is None or leader.metadata.controller_id is None:
            return []
        view = self._view(leader, partition)
        return [b for b in view.replicas if b not in view.isr and self._follows(b, partition, view)]

    async def shut_down(self, number: int, epoch: int | None = None) -> ControlledShutdownResponse | None:
        """Send a broker's controlled shutdown, and keep it running. Return None if there is no answer."""
        broker = self.broker(number)
        request = ControlledShutdownRequest(
            broker_id=broker.id, broker_epoch=BrokerEpoch(broker.epoch if epoch is None else epoch)
        )
        response = await self.ask(broker.id, request)
        assert isinstance(response, ControlledShutdownResponse | None)
        return response

    def _follows(self, broker_id: BrokerId, partition: TopicPartition, leader: SimulatedReplica) -> bool:
        broker = self.brokers[broker_id]
        follows = broker_id in self.live and broker.follows(partition)
        source = self.brokers[leader.leader].log_bytes.get(partition, 0)
        has_caught_up = broker.log_bytes.get(partition, 0) >= source
        return follows and has_caught_up and broker.replicas[partition].leader_epoch == leader.leader_epoch

    def _view(self, leader: SimulatedBroker, partition: TopicPartition) -> SimulatedReplica:
        sent = leader.replicas[partition]
        known = self._answered.get((leader.id, partition))
        if known is None or known.partition_epoch <= sent.partition_epoch:
            return sent
        if known.leader_and_isr.leader_epoch != sent.leader_epoch:
            return sent
        return replace(sent, isr=known.leader_and_isr.isr, partition_epoch=known.partition_epoch)

    def _forget_answers(self, broker: BrokerId) -> None:
        for known in [known for known in self._answered if known[0] == broker]:
            del self._answered[known]
