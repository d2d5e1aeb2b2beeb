"""Requested moves of the role: by `kontroller controller hand-over` or `take-over`, or by a process that ends.

The request is a znode, `/kontroller/role_request`, which every process watches.

- If it names a process, that process takes the role from its holder, in the same transaction as for any takeover. That
  deletes the request, which is therefore good for one time. It is ephemeral, so that it ends with its command.
- If it names Kafka's brokers, the process with the role gives it back, and the others leave it alone, until the request
  is deleted or replaced.

A request counts only if it was written after the holder took the role, in ZooKeeper's order of transactions. So a stale
request, or one from a wrong clock, moves nothing.
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
"""Withdraws a request."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestedRole:
    """A request that exists."""

    node: ZkNode
    holder: BrokerId | None
    """The process to take the role; None: one of Kafka's brokers."""

    def is_after(self, controller: ZkNode | None) -> bool:
        """Return True if it was written after the holder of this `/controller` took the role."""
        return controller is None or self.node.mzxid > controller.czxid

    @property
    def used_up(self) -> tuple[WriteOp, ...]:
        """The write that uses up the request when the role is taken. A request for Kafka's brokers stays."""
        return () if self.holder is None else (Delete(path=paths.ROLE_REQUEST, version=self.node.version),)


def parse_role_request(node: ZkNode | None) -> RequestedRole | None:
    """Decode `/kontroller/role_request`; None if there is no request. An unreadable one counts as none."""
    if node is None:
        return None
    try:
        return RequestedRole(node=node, holder=codecs.decode_role_request(node.data).holder)
    except MalformedZnode as error:
        log.error("unreadable request for the role, ignored", error=str(error))
        return None


def make_process_request(process: BrokerId) -> Create:
    """Return the creation of a request for a process. It ends with the session that creates it."""
    data = codecs.encode_role_request(RoleRequest(holder=process))
    return Create(path=paths.ROLE_REQUEST, data=data, mode=CreateMode.EPHEMERAL)


def make_brokers_request() -> Create:
    """Return the creation of a request to leave the role to Kafka's brokers until it is withdrawn."""
    return Create(path=paths.ROLE_REQUEST, data=codecs.encode_role_request(RoleRequest(holder=None)))
