"""Requests to a cluster without ZooKeeper: one request each, whatever the number of topics."""

from datetime import timedelta
from typing import Final

from kio.schema.api_versions.v4 import ApiVersionsResponse
from kio.schema.describe_log_dirs.v5 import DescribeLogDirsResponse
from kio.schema.describe_quorum.v0 import DescribeQuorumResponse
from kio.schema.errors import ErrorCode
from kio.schema.list_partition_reassignments.v0 import ListPartitionReassignmentsResponse
from kio.schema.metadata.v11 import MetadataResponse
from kio.static.primitive import i32Timedelta

from controller_core.client.errors import AdminError, NotAdmittedError, Refused, Unreachable
from controller_core.client.quorum import Quorum, read_quorum
from controller_core.client.transport.kept_client import KeptClient
from controller_core.polling.answers import MetadataParts, Moves, find_comparable_parts, read_moves
from controller_core.wire.requests.api_versions import SERVER_FEATURES
from controller_core.wire.requests.log_dirs import CORDONS
from controller_core.wire.requests.metadata import ALL_TOPICS
from controller_core.wire.requests.partitions import make_list_reassignments_request
from controller_core.wire.requests.quorum import QUORUM_LEADER

_DESCRIBE_QUORUM: Final = int(QUORUM_LEADER.__api_key__)
_TIMEOUT: Final = i32Timedelta.parse(timedelta(seconds=4))
_MOVES: Final = make_list_reassignments_request(None, _TIMEOUT)


class NoKRaftError(NotAdmittedError):
    """The cluster has no quorum of controllers: it has ZooKeeper, or is too old."""


async def ask_versions(client: KeptClient) -> ApiVersionsResponse:
    """Return the server's supported and finalized features, and its log offset. Raises `AdminError`,
    such as `NoKRaftError`."""
    answer = await client.ask(SERVER_FEATURES, ApiVersionsResponse)
    known = {int(each.api_key) for each in answer.api_keys}
    if answer.error_code is ErrorCode.unsupported_version or (known and _DESCRIBE_QUORUM not in known):
        raise NoKRaftError(f"{client.server} is a broker with ZooKeeper, or older than Kafka 4")
    return answer


async def ask_quorum(client: KeptClient) -> Quorum:
    """Return the quorum as its leader reports it. Raises `AdminError`."""
    try:
        return read_quorum(await client.ask(QUORUM_LEADER, DescribeQuorumResponse))
    except Refused as error:
        raise _make_error(error.code, "the quorum of controllers") from error


async def ask_moves(client: KeptClient) -> Moves:
    """Return all partitions that are being reassigned, as the controller reports them. Raises `AdminError`."""
    answer = await client.ask(_MOVES, ListPartitionReassignmentsResponse)
    if answer.error_code is not ErrorCode.none:
        raise _make_error(answer.error_code, "the list of reassignments")
    return read_moves(answer)


async def ask_cordoned(client: KeptClient, versions: ApiVersionsResponse) -> bool:
    """Return True if all log directories of a broker are cordoned, so that it takes no new replicas (KIP-1066).

    Brokers before Kafka 4.3 do not report cordons, and take new replicas. `versions`: what the broker supports. Raises
    `AdminError`."""
    newest = next((int(each.max_version) for each in versions.api_keys if each.api_key == CORDONS.__api_key__), -1)
    if newest < CORDONS.__version__:
        return False
    answer = await client.ask(CORDONS, DescribeLogDirsResponse)
    usable = [each for each in answer.results if each.error_code is ErrorCode.none]
    return bool(usable) and all(each.is_cordoned for each in usable)


class Metadata:
    """The brokers and topics, parsed only if they differ from the last time."""

    def __init__(self) -> None:
        self._parts: MetadataParts | None = None
        self._answer: MetadataResponse | None = None

    async def ask(self, client: KeptClient) -> MetadataResponse:
        """Return the metadata: the same object as before if nothing but the order of controllers differs. Raises
        `AdminError`."""
        content = await client.ask_unread(ALL_TOPICS)
        parts = find_comparable_parts(content)
        if self._answer is None or parts != self._parts:
            self._answer = client.read(content, MetadataResponse)
            self._parts = parts
        return self._answer


def _make_error(code: ErrorCode, what: str) -> AdminError:
    if code in (ErrorCode.cluster_authorization_failed, ErrorCode.topic_authorization_failed):
        return NotAdmittedError(f"{what} is not revealed to this user: allow it Describe on the cluster")
    return Unreachable(f"no server reports {what}: {code.name}")
