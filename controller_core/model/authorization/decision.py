"""Decides whether somebody may do something, as Kafka's AclAuthorizer does.

Super users may do everything. Where nothing is said about a resource, a setting decides. Where something is, an entry that
denies weighs more than all that allow, and nobody may what no entry allows him. To be allowed to read, write, delete or
alter something is to be allowed to describe it; denials are not extended so.
"""

from collections.abc import Iterable, Mapping, Set
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
        asking = _Asking(str(caller.principal), host_of(caller.address))
        denied = asking.entries(operation, (), is_allowed=False)
        allowed = asking.entries(operation, _GRANTING.get(operation, ()), is_allowed=True)
        return not _has_one(found, denied) and _has_one(found, allowed)


@dataclass(frozen=True, slots=True)
class _Asking:
    """Who asks, as entries have it."""

    principal: str
    host: str

    def entries(self, operation: Operation, granting: Iterable[Operation], *, is_allowed: bool) -> list[Entry]:
        """All entries that would say so of the operation."""
        return [
            Entry(is_allowed, principal, each, host)
            for each in (operation, Operation.ALL, *granting)
            for principal in (self.principal, ANY_PRINCIPAL)
            for host in (self.host, ANY_HOST)
        ]


def _has_one(found: Iterable[Set[Entry]], wanted: Iterable[Entry]) -> bool:
    return any(entry in entries for entries in found for entry in wanted)


@lru_cache(maxsize=1024)
def host_of(address: Address) -> str:
    """An address as ACLs name it, which is as Java prints it: of IPv6 all eight groups, without leading zeros."""
    if not isinstance(address, IPv6Address):
        return str(address)
    return ":".join(f"{int(group, 16):x}" for group in address.exploded.split(":"))
