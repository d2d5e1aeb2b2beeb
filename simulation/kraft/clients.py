"""Clients of a simulated KRaft cluster, without a network.

Messages pass as bytes, so that values that cannot be encoded or decoded fail as they would in reality.
"""

import asyncio
from collections.abc import Sequence

from kio.index import load_request_schema
from kio.schema.describe_quorum.v0 import DescribeQuorumRequest
from kio.schema.list_partition_reassignments.v0 import ListPartitionReassignmentsRequest
from kio.static.protocol import RequestPayload, ResponsePayload

from controller_core.client.errors import OutcomeUnknown
from controller_core.client.transport.kept_client import DEFAULT_TIMEOUT_MS, KeptClient
from controller_core.client.transport.request_client import Address
from controller_core.wire.codecs.frames import decode_request, encode_request, encode_response, read_request_head
from simulation.kraft.changes import apply_request
from simulation.kraft.cluster import QuorumCluster
from simulation.kraft.questions import PORT, answer_question

SERVERS = (Address("broker-1", PORT),)


def make_answer(cluster: QuorumCluster, request: RequestPayload) -> ResponsePayload:
    """Return a broker's answer. Raises `OutcomeUnknown` if the request needs controllers and they have no leader."""
    known = answer_question(cluster, request)
    is_passed_on = known is None or isinstance(request, DescribeQuorumRequest | ListPartitionReassignmentsRequest)
    if is_passed_on and not cluster.is_led:
        raise OutcomeUnknown("the broker waits for controllers that have no leader") from TimeoutError()
    return apply_request(cluster, request) if known is None else known


class SimulatedKeptClient(KeptClient):
    """A `KeptClient` of a simulated cluster. All brokers give the same answers."""

    def __init__(self, cluster: QuorumCluster, servers: Sequence[Address] = SERVERS) -> None:
        super().__init__(servers)
        self._cluster = cluster

    def restrict_to(self, address: Address) -> KeptClient:
        return SimulatedKeptClient(self._cluster, (address,))

    async def ask_unread(self, request: RequestPayload) -> bytes:
        """Send a request and return the response's bytes. See `KeptClient.ask_unread`."""
        content = encode_request(request, 1, "simulated")[4:]
        head = read_request_head(content)
        arrived = decode_request(load_request_schema(head.api_key, head.api_version), content)
        try:
            return encode_response(make_answer(self._cluster, arrived), 1)[4:]
        except OutcomeUnknown:
            await asyncio.sleep(DEFAULT_TIMEOUT_MS / 1000)
            self.move_on()
            raise
