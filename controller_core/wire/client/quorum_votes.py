"""Reads the voters of a quorum and how far each lags, by DescribeQuorum of Kafka 3.3 (KIP-836)."""

from kio.schema.describe_quorum.v1 import DescribeQuorumResponse
from kio.schema.describe_quorum.v1.response import ReplicaState

from controller_core.model.draining.quorum_votes import Vote
from controller_core.model.ids import BrokerId
from controller_core.wire.client.quorum import the_partition
from controller_core.wire.client.request_client import ControllerClient
from controller_core.wire.requests.quorum import QUORUM_LAG


async def ask_votes(client: ControllerClient) -> tuple[Vote, ...]:
    """Return the votes as the leader reports them. Raises `RequestError` and `QuorumRefused`."""
    answer = await client.ask(QUORUM_LAG, DescribeQuorumResponse)
    found = the_partition(answer.error_code, (each for topic in answer.topics for each in topic.partitions))
    # The leader counts itself as seen now, so the latest time of all replicas is its present time.
    now_ms = max((_last_seen_ms(each) for each in (*found.current_voters, *found.observers)), default=-1)
    return tuple(_vote(each, now_ms) for each in found.current_voters)


def _last_seen_ms(state: ReplicaState) -> int:
    return max(int(state.last_caught_up_timestamp), int(state.last_fetch_timestamp))


def _vote(state: ReplicaState, now_ms: int) -> Vote:
    caught_up_ms = int(state.last_caught_up_timestamp)
    return Vote(voter=BrokerId(int(state.replica_id)), behind_ms=None if caught_up_ms < 0 else now_ms - caught_up_ms)
