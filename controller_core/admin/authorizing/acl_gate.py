"""Decides at the listener who may ask what, by ACLs, before a request is read: what needs a right on the whole cluster.

On a listener that asks who somebody is, ACLs alone decide. On one that does not, everybody is `User:ANONYMOUS`, and the
addresses must allow it as well: an ACL for the anonymous is one for whoever reaches the port. What needs a right on single
topics is judged when it was read (`split_apis`).
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
class _Needed:
    operation: Operation
    asks_role_first: bool = False
    """Whether Kafka says NOT_CONTROLLER before it looks at ACLs; else after that."""


NEEDED: Final[Mapping[int, _Needed]] = {
    7: _Needed(Operation.CLUSTER_ACTION),  # ControlledShutdown
    56: _Needed(Operation.CLUSTER_ACTION),  # AlterPartition
    67: _Needed(Operation.CLUSTER_ACTION),  # AllocateProducerIds
    43: _Needed(Operation.ALTER),  # ElectLeaders
    45: _Needed(Operation.ALTER),  # AlterPartitionReassignments
    57: _Needed(Operation.ALTER),  # UpdateFeatures
    51: _Needed(Operation.ALTER, asks_role_first=True),  # AlterUserScramCredentials
    34: _Needed(Operation.ALTER),  # AlterReplicaLogDirs
    35: _Needed(Operation.DESCRIBE),  # DescribeLogDirs
    46: _Needed(Operation.DESCRIBE),  # ListPartitionReassignments
}
"""The right on the cluster that an API needs, as `KafkaApis` has it."""


class AclGate:
    """A `Gate` of ACLs. `by_address`: the one that counts as well where nobody is asked who he is; `in_charge`: whether
    there is a term, as for `AddressGate`."""

    def __init__(
        self, authorization: Authorization, by_address: Gate, in_charge: Callable[[], Awaitable[bool]]
    ) -> None:
        self._authorization = authorization
        self._by_address = by_address
        self._in_charge = in_charge

    def is_broker(self, caller: Caller) -> bool:
        """See `Gate`."""
        return self._by_address.is_broker(caller)

    async def why_not(self, api_key: int, caller: Caller) -> ErrorCode | None:
        """See `Gate`. Raises `NoAnswerNow` where ACLs are not known yet."""
        if not caller.is_authenticated:
            why_not = await self._by_address.why_not(api_key, caller)
            if why_not is not None:
                return why_not
        needed = NEEDED.get(api_key)
        if needed is None:
            return None
        if needed.asks_role_first and not await self._in_charge():
            return ErrorCode.not_controller
        rights = await self._authorization.rights_of(caller)
        return None if rights.may(needed.operation, THE_CLUSTER) else ErrorCode.cluster_authorization_failed
