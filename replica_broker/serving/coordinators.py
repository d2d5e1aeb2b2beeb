"""FindCoordinator: the stock broker that coordinates a group or a transaction.

It is the leader of the internal topic's partition for the key's hash, computed like in every broker. This broker
coordinates nothing, so internal topics must stay on stock brokers; if it leads such a partition, there is no
coordinator. It does not create the internal topic either; a stock broker does that when asked.
"""

from typing import Any, Final

from kio.schema.errors import ErrorCode
from kio.schema.find_coordinator.v6.request import FindCoordinatorRequest
from kio.schema.find_coordinator.v6.response import Coordinator, FindCoordinatorResponse
from kio.schema.types import BrokerId as WireBrokerId
from kio.static.primitive import i8, i32
from kio.static.protocol import RequestPayload

from controller_core.admin.rights import EVERYTHING, Rights
from controller_core.model.authorization.acls import Operation, Resource, ResourceType
from controller_core.model.ids import PartitionId, TopicName, TopicPartition
from controller_core.wire.codecs.versions import Versions, convert
from controller_core.wire.messages import NO_THROTTLE
from replica_broker.membership.node import Node

TOPICS: Final = {0: TopicName("__consumer_offsets"), 1: TopicName("__transaction_state")}
"""The internal topics by key type."""
_RESOURCES: Final = {0: ResourceType.GROUP, 1: ResourceType.TRANSACTIONAL_ID}
_REFUSALS: Final = {
    ResourceType.GROUP: ErrorCode.group_authorization_failed,
    ResourceType.TRANSACTIONAL_ID: ErrorCode.transactional_id_authorization_failed,
}
_FIRST_OF_MANY: Final = 4
_OURS: Final = "this broker leads the partition but is no coordinator: move it to a stock broker"


def _lift(request: RequestPayload) -> FindCoordinatorRequest:
    """Convert a request to the newest version. Up to version 3 it has one key, and version 0 knows only groups."""
    asked: Any = request
    if request.__version__ >= _FIRST_OF_MANY:
        return convert(request, FindCoordinatorRequest)
    return FindCoordinatorRequest(key_type=i8(getattr(asked, "key_type", 0)), coordinator_keys=(asked.key,))


class _CoordinatorVersions(Versions[FindCoordinatorRequest]):
    """The versions of FindCoordinator. Up to version 3, the response has one key and no list."""

    def lower(self, response: Any, version: int) -> Any:
        if version >= _FIRST_OF_MANY or not isinstance(response, FindCoordinatorResponse):
            return super().lower(response, version)
        (only,) = response.coordinators
        return convert(only, self.response_type(version))


VERSIONS: Final = _CoordinatorVersions(FindCoordinatorRequest, oldest=0, lift=_lift)


def on_find_coordinator(
    node: Node, listener: str, request: FindCoordinatorRequest, rights: Rights = EVERYTHING
) -> FindCoordinatorResponse:
    """Answer for each key that the client may describe, with addresses of the client's listener."""
    kind = _RESOURCES.get(request.key_type)
    return FindCoordinatorResponse(
        throttle_time=NO_THROTTLE,
        coordinators=tuple(
            _none(key, _REFUSALS[kind], None)
            if kind is not None and not rights.may(Operation.DESCRIBE, Resource(kind, key))
            else _coordinator(node, listener, request.key_type, key)
            for key in request.coordinator_keys
        ),
    )


def java_hash(text: str) -> int:
    """Return `String.hashCode` of Java, which uses UTF-16 and 32 bits."""
    utf_16 = text.encode("utf-16-be", "surrogatepass")
    value = 0
    for high, low in zip(utf_16[::2], utf_16[1::2], strict=True):
        value = (31 * value + (high << 8 | low)) & 0xFFFFFFFF
    return value - (1 << 32) if value >> 31 else value


def find_partition(key: str, partitions: int) -> PartitionId:
    """Return the partition of the internal topic that a group or transaction belongs to."""
    hashed = java_hash(key)
    return PartitionId((0 if hashed == -(1 << 31) else abs(hashed)) % partitions)


def _coordinator(node: Node, listener: str, key_type: int, key: str) -> Coordinator:
    topic = TOPICS.get(key_type)
    if topic is None or (not key and key_type != 0):
        return _none(key, ErrorCode.invalid_request, None)
    partitions = node.metadata.partitions(topic)
    if not partitions:
        return _none(key, ErrorCode.coordinator_not_available, f"topic {topic} does not exist")
    state = node.metadata.partition(TopicPartition(topic, find_partition(key, len(partitions))))
    if state is not None and state.leader == node.id:
        return _none(key, ErrorCode.coordinator_not_available, _OURS)
    found = [] if state is None else [one for one in node.neighbours(listener) if one.id == state.leader]
    leader = next(iter(found), None)
    if leader is None:
        return _none(key, ErrorCode.coordinator_not_available, None)
    return Coordinator(
        key=key,
        node_id=WireBrokerId(leader.id),
        host=leader.host,
        port=i32(leader.port),
        error_code=ErrorCode.none,
        error_message=None,
    )


def _none(key: str, error_code: ErrorCode, why: str | None) -> Coordinator:
    return Coordinator(
        key=key, node_id=WireBrokerId(-1), host="", port=i32(-1), error_code=error_code, error_message=why
    )
