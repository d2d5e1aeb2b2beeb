"""Finds out whether a cluster has a quorum of controllers (KRaft), and which of them leads it.

In Metadata, KRaft brokers name a random broker as the controller, and forward its requests. DescribeQuorum reports the
real leader, and since Kafka 3.3 how far each voter lags (KIP-836).
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Protocol, TypeVar

from kio.schema.api_versions.v3 import ApiVersionsResponse
from kio.schema.describe_quorum.v0 import DescribeQuorumResponse
from kio.schema.describe_quorum.v1 import DescribeQuorumResponse as DescribeQuorumResponse1
from kio.schema.describe_quorum.v1.response import ReplicaState
from kio.schema.errors import ErrorCode

from controller_core.client.errors import Refused
from controller_core.client.transport.request_client import ControllerClient
from controller_core.model.draining.quorum_votes import Vote
from controller_core.model.ids import BrokerId
from controller_core.wire.requests.api_versions import SERVER_VERSIONS
from controller_core.wire.requests.quorum import QUORUM_LAG, QUORUM_LEADER


class _Told(Protocol):
    """A partition in an answer to DescribeQuorum of any version."""

    @property
    def error_code(self) -> ErrorCode: ...


Told = TypeVar("Told", bound=_Told)


@dataclass(frozen=True, slots=True, kw_only=True)
class Quorum:
    """The quorum as its leader reports it."""

    leader: BrokerId | None
    """None during an election."""
    epoch: int
    committed: int
    """The high watermark of the metadata log; -1 if a new leader does not know it yet."""
    written: int
    """The end of the leader's log."""
    voters: tuple[BrokerId, ...] = ()

    @property
    def is_led(self) -> bool:
        """True if there is a leader that knows the high watermark."""
        return self.leader is not None and self.committed >= 0


async def has_quorum(client: ControllerClient) -> bool:
    """Return True if the cluster has no ZooKeeper: only then do brokers support DescribeQuorum. Raises
    `AdminError`."""
    answer = await client.ask(SERVER_VERSIONS, ApiVersionsResponse)
    return any(int(each.api_key) == int(QUORUM_LEADER.__api_key__) for each in answer.api_keys)


async def ask_quorum(client: ControllerClient) -> Quorum | None:
    """Return the quorum, or None if there is none. Raises `AdminError`."""
    if not await has_quorum(client):
        return None
    return read_quorum(await client.ask(QUORUM_LEADER, DescribeQuorumResponse))


async def ask_votes(client: ControllerClient) -> tuple[Vote, ...]:
    """Return the votes as the leader reports them. Raises `AdminError`."""
    voters, now_ms = await _ask_lag(client)
    return tuple(_vote(each, now_ms) for each in voters)


async def ask_time_ms(client: ControllerClient) -> int:
    """Return the present time by the clock of the quorum's leader, in ms since 1970. Raises `AdminError`."""
    _, now_ms = await _ask_lag(client)
    if now_ms < 0:
        raise Refused("the clock of the quorum's leader", ErrorCode.unsupported_version, None)
    return now_ms


async def _ask_lag(client: ControllerClient) -> tuple[Sequence[ReplicaState], int]:
    """Return the voters as the leader reports them, and its present time; -1 if it is unknown."""
    answer = await client.ask(QUORUM_LAG, DescribeQuorumResponse1)
    found = the_partition(answer.error_code, (each for topic in answer.topics for each in topic.partitions))
    # The leader counts itself as seen now, so the latest time of all replicas is its present time.
    now_ms = max((_last_seen_ms(each) for each in (*found.current_voters, *found.observers)), default=-1)
    return found.current_voters, now_ms


def read_quorum(answer: DescribeQuorumResponse) -> Quorum:
    """Return the quorum in an answer. Raises `Refused`."""
    found = the_partition(answer.error_code, (each for topic in answer.topics for each in topic.partitions))
    replicas = (*found.current_voters, *found.observers)  # a leader may no longer be a voter
    own = (int(each.log_end_offset) for each in replicas if each.replica_id == found.leader_id)
    return Quorum(
        leader=BrokerId(found.leader_id) if found.leader_id >= 0 else None,
        epoch=int(found.leader_epoch),
        committed=int(found.high_watermark),
        written=max((int(found.high_watermark), *own)),
        voters=tuple(sorted(BrokerId(each.replica_id) for each in found.current_voters)),
    )


def the_partition(error_code: ErrorCode, partitions: Iterable[Told]) -> Told:
    """Return the only partition of an answer to DescribeQuorum with this error code. Raises `Refused`."""
    found = next(iter(partitions), None)
    code = error_code if error_code is not ErrorCode.none or found is None else found.error_code
    if found is None or code is not ErrorCode.none:
        reason = ErrorCode.unknown_topic_or_partition if code is ErrorCode.none else code
        raise Refused("the leader of the quorum", reason, None)
    return found


def _last_seen_ms(state: ReplicaState) -> int:
    return max(int(state.last_caught_up_timestamp), int(state.last_fetch_timestamp))


def _vote(state: ReplicaState, now_ms: int) -> Vote:
    caught_up_ms = int(state.last_caught_up_timestamp)
    return Vote(voter=BrokerId(int(state.replica_id)), behind_ms=None if caught_up_ms < 0 else now_ms - caught_up_ms)
