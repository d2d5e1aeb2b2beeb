"""Decodes the znodes of ACLs: the entries of one resource, and the notifications of changes.

Kafka writes both (`ZkAclStore`, `ZkAclChangeStore`): literal names and `*` below `/kafka-acl`, prefixes below
`/kafka-acl-extended`. ACLs of resource types that are not checked are not read.
"""

from typing import Any, Final

from controller_core.model.authorization.acls import Entry, Operation, Pattern, ResourceType
from controller_core.zk import paths
from controller_core.zk.codecs import MalformedZnode
from controller_core.zk.codecs.json_fields import describe, field, json_object

_VERSION: Final = 1
_OPERATIONS: Final = {operation.title: operation for operation in Operation}
_PERMISSIONS: Final = {"Allow": True, "Deny": False}
_TYPES: Final = {name: kind for kind in ResourceType for name in (kind.value.upper(), kind.name)}
"""The resource types by their names in both kinds of notifications: `TransactionalId` and `TRANSACTIONAL_ID`."""
_PREFIXED: Final = "PREFIXED"


def parent_of(kind: ResourceType, *, is_prefix: bool) -> str:
    """Return the path of the parent of all ACLs of one resource type and pattern type."""
    return f"{paths.PREFIXED_ACLS if is_prefix else paths.ACLS}/{kind.value}"


def acl_path(pattern: Pattern) -> str:
    """Return the path of a pattern's entries."""
    return f"{parent_of(pattern.type, is_prefix=pattern.is_prefix)}/{pattern.name}"


def decode_acl(path: str, data: bytes) -> frozenset[Entry]:
    """Return the entries of one pattern. Like in Kafka, an empty znode has none. Raises `MalformedZnode`."""
    if not data:
        return frozenset()
    json = json_object(path, data)
    if (version := field(path, json, "version", int)) != _VERSION:
        raise MalformedZnode(path, f'"version" must be {_VERSION}, found {describe(version)}')
    return frozenset(_entry(path, entry) for entry in field(path, json, "acls", list))


def _entry(path: str, json: Any) -> Entry:
    if not isinstance(json, dict):
        raise MalformedZnode(path, f'"acls" must hold objects, found {describe(json)}')
    principal = field(path, json, "principal", str)
    if ":" not in principal:
        raise MalformedZnode(path, f'"principal" must be TYPE:NAME, found {describe(principal)}')
    return Entry(
        is_allowed=_one_of(path, json, "permissionType", _PERMISSIONS),
        principal=principal,
        operation=_one_of(path, json, "operation", _OPERATIONS),
        host=field(path, json, "host", str),
    )


def _one_of(path: str, json: dict[str, Any], name: str, known: dict[str, Any]) -> Any:
    value = field(path, json, name, str)
    if value not in known:
        raise MalformedZnode(path, f'"{name}" must be one of {", ".join(known)}, found {describe(value)}')
    return known[value]


def decode_acl_change(path: str, data: bytes) -> Pattern | None:
    """Return the pattern whose ACL has changed, or None for an unknown resource type. Raises `MalformedZnode`.

    Notifications of literal names are `Topic:NAME`. Those of the extended store are JSON, for prefixes and literal
    names.
    """
    if not path.startswith(f"{paths.EXTENDED_ACL_CHANGES}/"):
        kind, colon, name = data.decode(errors="replace").partition(":")
        if not colon:
            raise MalformedZnode(path, f"must be TYPE:NAME, found {describe(kind)}")
        is_prefix = False
    else:
        json = json_object(path, data)
        kind, name = field(path, json, "resourceType", str), field(path, json, "name", str)
        is_prefix = field(path, json, "patternType", str) == _PREFIXED
    known = _TYPES.get(kind.upper())
    return None if known is None else Pattern(known, name, is_prefix)
