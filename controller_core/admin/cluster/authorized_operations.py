"""The operations that a client may do, as a bit set (KIP-430). Without ACLs, all operations of a resource."""

from collections.abc import Mapping
from typing import Final

from kio.static.primitive import i32

from controller_core.admin.rights import EVERYTHING, Rights
from controller_core.model.authorization.acls import THE_CLUSTER, Operation, Resource, ResourceType, make_topic_resource

_SUPPORTED: Final[Mapping[ResourceType, tuple[Operation, ...]]] = {
    ResourceType.TOPIC: (
        Operation.READ,
        Operation.WRITE,
        Operation.CREATE,
        Operation.DELETE,
        Operation.ALTER,
        Operation.DESCRIBE,
        Operation.DESCRIBE_CONFIGS,
        Operation.ALTER_CONFIGS,
    ),
    ResourceType.CLUSTER: (
        Operation.CREATE,
        Operation.ALTER,
        Operation.DESCRIBE,
        Operation.CLUSTER_ACTION,
        Operation.DESCRIBE_CONFIGS,
        Operation.ALTER_CONFIGS,
        Operation.IDEMPOTENT_WRITE,
    ),
}
"""The operations that exist on each resource type (Kafka's `AclEntry.supportedOperations`)."""


def operations_on(resource: Resource, rights: Rights) -> i32:
    """Return the operations that a caller may do on a resource."""
    supported = _SUPPORTED[resource.type]
    return i32(sum(1 << operation for operation in supported if rights.may(operation, resource, is_wanted=False)))


def operations_on_cluster(rights: Rights) -> i32:
    """Return the operations that a caller may do on the cluster; none if it may not describe the cluster."""
    may_know = rights.may(Operation.DESCRIBE, THE_CLUSTER)
    return operations_on(THE_CLUSTER, rights) if may_know else i32(0)


NOT_ASKED: Final = i32(-(2**31))
ON_TOPIC: Final = operations_on(make_topic_resource("any"), EVERYTHING)
ON_CLUSTER: Final = operations_on(THE_CLUSTER, EVERYTHING)
