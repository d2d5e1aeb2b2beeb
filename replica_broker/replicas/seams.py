"""What replicas ask of the world: their leaders, whoever writes the ISR, and the configuration of topics.

- `LeaderLink`: `replica_broker.replicas.following.tcp_leader_link.TcpLeaderLink` for a real leader, and
  `simulation.replicas.leader_links.SimulatedLeaderLink` for tests.
- `IsrWriter`: `leading.alter_partition.AlterPartitionWriter` asks the controller (KIP-497);
  `leading.state_znode.StateZnodeWriter` writes the state znode itself, as seed 004 has it.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol

from controller_core.model.ids import BrokerId, LeaderEpoch, PartitionEpoch, TopicId, TopicName, TopicPartition
from controller_core.model.metadata import LeaderRecoveryState
from controller_core.wire.messages import AlterPartitionResponse, ErrorCode
from controller_core.wire.messages.alter_partition import AskedTopic
from replica_broker.log.config import LogConfig
from replica_broker.replicas.requests import EpochEnd, Fetch, Fetched


class LeaderEndpoint(NamedTuple):
    """Where a leader is reached, as the command that named it says."""

    broker: BrokerId
    host: str
    port: int


class LeaderLinkError(Exception):
    """A leader did not answer. The subclass says whether asking again can help."""


class LeaderUnreachable(LeaderLinkError):
    """No connection, a connection that closed, or no answer in time. Retriable: reading changes nothing."""


class LeaderAnswerUnreadable(LeaderLinkError):
    """The answer is not what the protocol allows. The connection is closed; retriable on a new one, after a pause."""


class LeaderLink(Protocol):
    """A follower's way to a leader. One request at a time; it connects where there is no connection.

    Every method raises `LeaderLinkError`. The errors of partitions are in the answers."""

    async def fetch(self, asked: Fetch) -> Mapping[TopicPartition, Fetched]:
        """What the leader has (Fetch, version 17). A partition that is missing in the answer was not answered."""
        ...

    async def ends_of_epochs(
        self, asked: Mapping[TopicPartition, tuple[LeaderEpoch, LeaderEpoch]], replica_id: BrokerId
    ) -> Mapping[TopicPartition, EpochEnd | ErrorCode]:
        """Where epochs end in the leader's log (OffsetForLeaderEpoch, version 4), by (current leader epoch, epoch
        asked)."""
        ...

    async def list_offsets(
        self, asked: Mapping[TopicPartition, tuple[LeaderEpoch, int]], replica_id: BrokerId
    ) -> Mapping[TopicPartition, int | ErrorCode]:
        """The offsets of (current leader epoch, timestamp): LATEST is the leader's log end for a follower (version
        9)."""
        ...

    async def close(self) -> None:
        """Closes the connection; a request in flight fails with `LeaderUnreachable`. Idempotent."""
        ...


LeaderLinks = Callable[[LeaderEndpoint], LeaderLink]
"""Makes the link to a leader. Does not connect yet."""


@dataclass(frozen=True, slots=True, kw_only=True)
class IsrToWrite:
    """An ISR that a leader wants written, and the state that it was decided from."""

    topic_partition: TopicPartition
    topic_id: TopicId | None
    leader: BrokerId
    leader_epoch: LeaderEpoch
    partition_epoch: PartitionEpoch
    isr: tuple[BrokerId, ...]
    recovery_state: LeaderRecoveryState = LeaderRecoveryState.RECOVERED


@dataclass(frozen=True, slots=True, kw_only=True)
class IsrWritten:
    """The state that holds now: what was asked, or, where that was done already, what has become of it since."""

    leader_epoch: LeaderEpoch
    partition_epoch: PartitionEpoch
    isr: tuple[BrokerId, ...]
    recovery_state: LeaderRecoveryState = LeaderRecoveryState.RECOVERED


@dataclass(frozen=True, slots=True, kw_only=True)
class IsrRefused:
    """It was not written, and will not be: somebody else has changed the state, or a member may not join."""

    error_code: ErrorCode

    @property
    def leaves_state(self) -> bool:
        """Whether the state is what the leader knew: it may propose another ISR. Else it waits for the controller."""
        return self.error_code in (ErrorCode.ineligible_replica, ErrorCode.operation_not_attempted)


class IsrWriteUncertain(Exception):
    """Whether the ISR was written is unknown, or it could not be asked for. Retriable, with the same ISR only."""


class IsrWriter(Protocol):
    """Writes an ISR on the condition that the state is the one that the leader knows (`LeaderAndISRVersionInZK`)."""

    async def write(self, isr: IsrToWrite) -> IsrWritten | IsrRefused:
        """Raises `IsrWriteUncertain`, and nothing else."""
        ...


class AlterPartitionChannel(Protocol):
    """The way to whoever is the controller, under this broker's present epoch."""

    async def alter_partition(self, topics: Sequence[AskedTopic]) -> AlterPartitionResponse:
        """The controller's answer to AlterPartition, version 3. Raises `IsrWriteUncertain` where there is none."""
        ...


class TopicConfigs(Protocol):
    """The configuration of topics, as it is now; all of it is known at any time."""

    def log_config(self, topic: TopicName) -> LogConfig: ...

    def min_insync_replicas(self, topic: TopicName) -> int: ...
