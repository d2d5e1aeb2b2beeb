"""Who is to have the role, where somebody asked: `kontroller controller hand-over`, `take-over`, or a process that ends.

The request is a znode, `/kontroller/role_request`, which every process watches.

- It names a process: that one takes the role, from a Kafka broker or from another process of ours, in the one transaction
  with which any role is taken. That deletes the request, too, so that it is good for one time. Whoever asks makes it
  ephemeral, so that it ends with the command that wants it.
- It names Kafka's brokers: whoever of ours has the role gives it back, and the others leave it alone, until the request is
  deleted or replaced.

A request counts against a holder only if it was written after that holder took the role, by ZooKeeper's own order of
transactions: one that was left behind, or written by a clock that is wrong, moves nothing.
"""

from dataclasses import dataclass
from typing import Final

import structlog

from controller_core.model.ids import BrokerId
from controller_core.zk import codecs, paths
from controller_core.zk.codecs import MalformedZnode, RoleRequest
from controller_core.zk.session import Create, CreateMode, Delete, WriteOp, ZkNode

log = structlog.get_logger()

NO_MORE: Final = Delete(path=paths.ROLE_REQUEST)
"""Takes a request back."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestedRole:
    """A request that is there."""

    node: ZkNode
    holder: BrokerId | None
    """The process that is to have the role; None: one of Kafka's brokers."""

    def is_after(self, controller: ZkNode | None) -> bool:
        """Whether it was written after the holder of this `/controller` took the role."""
        return controller is None or self.node.mzxid > controller.czxid

    @property
    def used_up(self) -> tuple[WriteOp, ...]:
        """What whoever takes the role does about it: that a broker is to have it stays said."""
        return () if self.holder is None else (Delete(path=paths.ROLE_REQUEST, version=self.node.version),)


def requested_role(node: ZkNode | None) -> RequestedRole | None:
    """What `/kontroller/role_request` says. One that cannot be read asks for nothing."""
    if node is None:
        return None
    try:
        return RequestedRole(node=node, holder=codecs.decode_role_request(node.data).holder)
    except MalformedZnode as error:
        log.error("unreadable request for the role, ignored", error=str(error))
        return None


def asking_for(process: BrokerId) -> Create:
    """A request that a process take the role; it ends with the session of whoever makes it."""
    data = codecs.encode_role_request(RoleRequest(holder=process))
    return Create(path=paths.ROLE_REQUEST, data=data, mode=CreateMode.EPHEMERAL)


def asking_for_brokers() -> Create:
    """A request that ours leave the role to Kafka's brokers, until it is taken back."""
    return Create(path=paths.ROLE_REQUEST, data=codecs.encode_role_request(RoleRequest(holder=None)))
