"""The interfaces that replicas use: leaders, ISR writers and topic configurations.

- `LeaderLink`: `replica_broker.replicas.following.tcp_leader_link.TcpLeaderLink` for a real leader, and
`simulation.replicas.leader_links.SimulatedLeaderLink` for tests.
- `IsrWriter`: `leading.alter_partition.AlterPartitionWriter` asks the controller (KIP-497);
`leading.state_znode.StateZnodeWriter` writes the state znode itself, as in seed 004.
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
    """The address of a leader, from the command that named it."""

    broker: BrokerId
    host: str
    port: int


class LeaderLinkError(Exception):
    """A leader did not answer. The subclass says whether a retry can help."""


class LeaderUnreachable(LeaderLinkError):
    """No connection, a closed connection, or a timeout. Retriable, because reads change nothing."""


class LeaderAnswerUnreadable(LeaderLinkError):
    """An answer that violates the protocol. The connection is closed; retriable on a new one, after a pause."""


class LeaderLink(Protocol):
    """A follower's connection to a leader, opened on demand. One request at a time.

    Every method raises `LeaderLinkError`. Errors of single partitions are in the answers.
    """

    async def fetch(self, asked: Fetch) -> Mapping[TopicPartition, Fetched]:
        """Fetch from the leader (version 17). A partition that is missing in the result was not answered."""
        ...

    async def ends_of_epochs(
        self, asked: Mapping[TopicPartition, tuple[LeaderEpoch, LeaderEpoch]], replica_id: BrokerId
    ) -> Mapping[TopicPartition, EpochEnd | ErrorCode]:
        """Return the ends of epochs in the leader's log (OffsetForLeaderEpoch, version 4).

        `asked` has pairs of (current leader epoch, requested epoch).
        """
        ...

    async def list_offsets(
        self, asked: Mapping[TopicPartition, tuple[LeaderEpoch, int]], replica_id: BrokerId
    ) -> Mapping[TopicPartition, int | ErrorCode]:
        """Return the offsets of timestamps in the leader's log (version 9). LATEST is the log's end for a follower.

        `asked` has pairs of (current leader epoch, timestamp).
        """
        ...

    async def close(self) -> None:
        """Close the connection. A request in flight fails with `LeaderUnreachable`. Idempotent."""
        ...


LeaderLinks = Callable[[LeaderEndpoint], LeaderLink]
"""Returns the link to a leader, not yet connected."""


@dataclass(frozen=True, slots=True, kw_only=True)
class IsrToWrite:
    """An ISR that a leader wants to write, and the state that the decision is based on."""

    topic_partition: TopicPartition
    topic_id: TopicId | None
    leader: BrokerId
    leader_epoch: LeaderEpoch
    partition_epoch: PartitionEpoch
    isr: tuple[BrokerId, ...]
    recovery_state: LeaderRecoveryState = LeaderRecoveryState.RECOVERED


@dataclass(frozen=True, slots=True, kw_only=True)
class IsrWritten:
    """The state after a write. If the ISR was already written, it includes later changes."""

    leader_epoch: LeaderEpoch
    partition_epoch: PartitionEpoch
    isr: tuple[BrokerId, ...]
    recovery_state: LeaderRecoveryState = LeaderRecoveryState.RECOVERED


@dataclass(frozen=True, slots=True, kw_only=True)
class IsrRefused:
    """The ISR was not written and will not be: the state has changed, or a member may not join."""

    error_code: ErrorCode

    @property
    def leaves_state(self) -> bool:
        """True if the leader's state is still right, so that it may propose another ISR.

        Otherwise it waits for the controller.
        """
        return self.error_code in (ErrorCode.ineligible_replica, ErrorCode.operation_not_attempted)


class IsrWriteUncertain(Exception):
    """The result of an ISR write is unknown, or it was not sent. Retriable, but only with the same ISR."""


class IsrWriter(Protocol):
    """Writes an ISR if the state is still the one that the leader knows (`LeaderAndISRVersionInZK`)."""

    async def write(self, isr: IsrToWrite) -> IsrWritten | IsrRefused:
        """Write the ISR. Raises only `IsrWriteUncertain`."""
        ...


class AlterPartitionChannel(Protocol):
    """Sends requests to the current controller, with this broker's current epoch."""

    async def alter_partition(self, topics: Sequence[AskedTopic]) -> AlterPartitionResponse:
        """Send AlterPartition, version 3. Raises `IsrWriteUncertain` if there is no answer."""
        ...


class TopicConfigs(Protocol):
    """The current configuration of topics, known at any time."""

    def log_config(self, topic: TopicName) -> LogConfig: ...

    def min_insync_replicas(self, topic: TopicName) -> int: ...
