"""Authorizes requests that need a right on the whole cluster, at the listener, before they are decoded.

On a listener with authentication, ACLs alone decide. On one without, every client is `User:ANONYMOUS`, and an ACL for
that user would admit everybody who reaches the port. So the client's address must be allowed as well. Rights on single
topics are checked after decoding (`split_apis`).
"""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Final

from kio.schema.errors import ErrorCode

from controller_core.admin.authorizing.authorization import Authorization
from controller_core.model.authorization.acls import THE_CLUSTER, Operation
from controller_core.model.authorization.principal import Caller
from controller_core.wire.limits.gate import Gate


@dataclass(frozen=True, slots=True)
class Needed:
    """The right on the cluster that an API needs."""

    operation: Operation
    or_else: Operation | None = None
    """Another operation whose permission is enough."""
    asks_role_first: bool = False
    """True if Kafka answers NOT_CONTROLLER before it checks ACLs; otherwise it checks them first."""


NEEDED: Final[Mapping[int, Needed]] = {
    7: Needed(Operation.CLUSTER_ACTION),  # ControlledShutdown
    56: Needed(Operation.CLUSTER_ACTION),  # AlterPartition
    67: Needed(Operation.CLUSTER_ACTION),  # AllocateProducerIds
    43: Needed(Operation.ALTER),  # ElectLeaders
    45: Needed(Operation.ALTER),  # AlterPartitionReassignments
    57: Needed(Operation.ALTER),  # UpdateFeatures
    51: Needed(Operation.ALTER, asks_role_first=True),  # AlterUserScramCredentials
    34: Needed(Operation.ALTER),  # AlterReplicaLogDirs
    35: Needed(Operation.DESCRIBE),  # DescribeLogDirs
    46: Needed(Operation.DESCRIBE),  # ListPartitionReassignments
}
"""The right on the cluster that each API of controllers needs, as in `KafkaApis`."""


class AclGate:
    """A `Gate` of ACLs.

    `by_address` also has to allow clients without authentication. `in_charge` returns True if a term is running, as for
    `AddressGate`.
    """

    def __init__(
        self,
        authorization: Authorization,
        by_address: Gate,
        in_charge: Callable[[], Awaitable[bool]],
        needed: Mapping[int, Needed] = NEEDED,
    ) -> None:
        self._authorization = authorization
        self._by_address = by_address
        self._in_charge = in_charge
        self._needed = needed

    def is_broker(self, caller: Caller) -> bool:
        return self._by_address.is_broker(caller)

    def is_administrator(self, caller: Caller) -> bool:
        return self._by_address.is_administrator(caller)

    async def why_not(self, api_key: int, caller: Caller) -> ErrorCode | None:
        """See `Gate`. Raises `NoAnswerNow` if the ACLs are not known yet."""
        if not caller.is_authenticated:
            why_not = await self._by_address.why_not(api_key, caller)
            if why_not is not None:
                return why_not
        needed = self._needed.get(api_key)
        if needed is None:
            return None
        if needed.asks_role_first and not await self._in_charge():
            return ErrorCode.not_controller
        rights = await self._authorization.rights_of(caller)
        if needed.or_else is not None and rights.may(needed.or_else, THE_CLUSTER, is_wanted=False):
            return None
        return None if rights.may(needed.operation, THE_CLUSTER) else ErrorCode.cluster_authorization_failed
