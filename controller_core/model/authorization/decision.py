"""Authorization decisions, made as Kafka's AclAuthorizer makes them.

Super users may do everything. If no ACL matches a resource, a setting decides. Otherwise a denying entry outweighs all
allowing ones, and what no entry allows is denied. Permission to read, write, delete or alter implies permission to
describe. Denials imply nothing more.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from ipaddress import IPv6Address
from typing import Final

from controller_core.model.access import Address
from controller_core.model.authorization.acls import (
    ANY_HOST,
    ANY_NAME,
    ANY_PRINCIPAL,
    AclTable,
    Entry,
    Operation,
    Resource,
    ResourceType,
)
from controller_core.model.authorization.principal import Caller, Principal

_GRANTING: Final[Mapping[Operation, tuple[Operation, ...]]] = {
    Operation.DESCRIBE: (Operation.READ, Operation.WRITE, Operation.DELETE, Operation.ALTER),
    Operation.DESCRIBE_CONFIGS: (Operation.ALTER_CONFIGS,),
}
"""The operations whose permission implies another one, by the implied operation."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AuthorizerRules:
    """The rules that are not ACLs."""

    super_users: frozenset[Principal] = frozenset()
    allows_unless_acl: bool = False
    """`allow.everyone.if.no.acl.found`: True allows everybody everything on resources that no ACL matches."""

    def is_super_user(self, caller: Caller) -> bool:
        """Return True if the caller may do everything, whatever ACLs say."""
        return caller.principal in self.super_users

    def allows(self, acls: AclTable, caller: Caller, operation: Operation, resource: Resource) -> bool:
        """Return True if the caller may perform the operation.

        No ACL allows it if the caller's address is unknown, because an ACL might deny that host.
        """
        if self.is_super_user(caller):
            return True
        if caller.address is None:
            return False
        found = acls.find_entries(resource)
        if not found:
            return self.allows_unless_acl
        denying, allowing = _make_deciding(str(caller.principal), format_host(caller.address), operation)
        is_denied = any(not denying.isdisjoint(entries) for entries in found)
        return not is_denied and any(not allowing.isdisjoint(entries) for entries in found)

    def allows_on_any(self, acls: AclTable, caller: Caller, operation: Operation, kind: ResourceType) -> bool:
        """Return True if there may be a resource of the type on which the caller may perform the operation.

        As in AclAuthorizer, an allowing ACL counts unless a denying one covers all its names, and
        `allow.everyone.if.no.acl.found` is enough unless a denying ACL has the name `*`.
        """
        if self.is_super_user(caller):
            return True
        if caller.address is None:
            return False
        denying, allowing = _make_deciding(str(caller.principal), format_host(caller.address), operation)
        denied = acls.find_patterns(kind, denying)
        if ANY_NAME in denied.names:
            return False
        if self.allows_unless_acl:
            return True
        allowed = acls.find_patterns(kind, allowing)

        def is_covered(name: str) -> bool:
            return any(name[:length] in denied.prefixes for length in range(1, len(name) + 1))

        return any(not is_covered(prefix) for prefix in allowed.prefixes) or any(
            name == ANY_NAME or (name not in denied.names and not is_covered(name)) for name in allowed.names
        )


@lru_cache(maxsize=4096)
def _make_deciding(principal: str, host: str, operation: Operation) -> tuple[frozenset[Entry], frozenset[Entry]]:
    """Return all entries that would deny this to the caller, and all that would allow it."""

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
def format_host(address: Address) -> str:
    """Format an address as ACLs and Java do: all eight groups of an IPv6 address, without leading zeros."""
    if not isinstance(address, IPv6Address):
        return str(address)
    return ":".join(f"{int(group, 16):x}" for group in address.exploded.split(":"))
