"""Decides whether somebody may do something, as Kafka's AclAuthorizer does.

Super users may do everything. Where nothing is said about a resource, a setting decides. Where something is, an entry that
denies weighs more than all that allow, and nobody may what no entry allows him. To be allowed to read, write, delete or
alter something is to be allowed to describe it; denials are not extended so.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from ipaddress import IPv6Address
from typing import Final

from controller_core.model.access import Address
from controller_core.model.authorization.acls import ANY_HOST, ANY_PRINCIPAL, AclTable, Entry, Operation, Resource
from controller_core.model.authorization.principal import Caller, Principal

_GRANTING: Final[Mapping[Operation, tuple[Operation, ...]]] = {
    Operation.DESCRIBE: (Operation.READ, Operation.WRITE, Operation.DELETE, Operation.ALTER),
    Operation.DESCRIBE_CONFIGS: (Operation.ALTER_CONFIGS,),
}
"""What else an entry may allow so that an operation is allowed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AuthorizerRules:
    """What does not stand in ACLs."""

    super_users: frozenset[Principal] = frozenset()
    allows_unless_acl: bool = False
    """As `allow.everyone.if.no.acl.found`: whether all may do everything with what no ACL is about."""

    def is_super_user(self, caller: Caller) -> bool:
        """Whether he may do everything, whatever ACLs say."""
        return caller.principal in self.super_users

    def allows(self, acls: AclTable, caller: Caller, operation: Operation, resource: Resource) -> bool:
        """Whether he may do that. No ACL lets him where it is not known from where he asks: one may deny that host."""
        if self.is_super_user(caller):
            return True
        if caller.address is None:
            return False
        found = acls.of(resource)
        if not found:
            return self.allows_unless_acl
        denying, allowing = _deciding(str(caller.principal), host_of(caller.address), operation)
        is_denied = any(not denying.isdisjoint(entries) for entries in found)
        return not is_denied and any(not allowing.isdisjoint(entries) for entries in found)


@lru_cache(maxsize=4096)
def _deciding(principal: str, host: str, operation: Operation) -> tuple[frozenset[Entry], frozenset[Entry]]:
    """All entries that would deny it to who asks so, and all that would allow it."""

    def entries(operations: Iterable[Operation], *, is_allowed: bool) -> frozenset[Entry]:
        return frozenset(
            Entry(is_allowed, each_principal, each, each_host)
            for each in operations
            for each_principal in (principal, ANY_PRINCIPAL)
            for each_host in (host, ANY_HOST)
        )

    denying = (operation, Operation.ALL)
    allowing = (*denying, *_GRANTING.get(operation, ()))
    return entries(denying, is_allowed=False), entries(allowing, is_allowed=True)


@lru_cache(maxsize=1024)
def host_of(address: Address) -> str:
    """An address as ACLs name it, which is as Java prints it: of IPv6 all eight groups, without leading zeros."""
    if not isinstance(address, IPv6Address):
        return str(address)
    return ":".join(f"{int(group, 16):x}" for group in address.exploded.split(":"))
