"""The authorizer's properties in a broker's `server.properties`: whether ACLs are used, and which users are super
users."""

from collections.abc import Mapping
from pathlib import Path
from typing import Final

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from controller_core.model.authorization.decision import AuthorizerRules
from controller_core.model.authorization.principal import Principal
from controller_core.security.properties_file import InvalidProperties, read_properties
from controller_core.security.property_types import describe_errors
from controller_core.wire.authentication.listener_settings import DEFAULT_PRINCIPAL_BUILDER

ACL_AUTHORIZER: Final = "kafka.security.authorizer.AclAuthorizer"
AUTHORIZER_CLASS: Final = "authorizer.class.name"
_SUPER_USERS: Final = "super.users"
_ACLS_IN: Final = "authorizer.zookeeper.url"
_PRINCIPAL_BUILDER: Final = "principal.builder.class"


def read_authorizer_rules(file: Path | None) -> AuthorizerRules | None:
    """Return the rules of a property file, or None if no ACLs are used. Raises `InvalidProperties`."""
    return None if file is None else parse_authorizer_rules(read_properties(file))


def read_authorizer_class(file: Path | None) -> str | None:
    """Return the name of the authorizer's class in a property file, or None if there is none. It may be any class.

    Raises `InvalidProperties`.
    """
    return (read_properties(file).get(AUTHORIZER_CLASS, "").strip() or None) if file is not None else None


def parse_authorizer_rules(properties: Mapping[str, str]) -> AuthorizerRules | None:
    """Return the rules in a broker's properties, or None if they name no authorizer. Raises `InvalidProperties`.

    Settings that cannot be applied are refused, because ignoring them would allow what they deny: an unknown authorizer,
    a principal builder that gives callers other names, and ACLs in another ZooKeeper.
    """
    try:
        given = _AuthorizerProperties.model_validate(dict(properties))
    except ValidationError as error:
        raise InvalidProperties(f"the properties of the authorizer: {describe_errors(error)}") from None
    if not given.class_name:
        return None
    if given.class_name != ACL_AUTHORIZER:
        raise InvalidProperties(
            f"{AUTHORIZER_CLASS} is {given.class_name}, whose rules are unknown here; the only supported authorizer is "
            f"{ACL_AUTHORIZER}, that of clusters with ZooKeeper"
        )
    _require_known_principals(properties)
    if given.acls_in and given.acls_in != given.zookeeper:
        raise InvalidProperties(
            f"{_ACLS_IN} is {given.acls_in}, but ACLs are read from the cluster's ZooKeeper (zookeeper.connect): "
            f"keep them there, and remove {_ACLS_IN}"
        )
    return AuthorizerRules(super_users=_principals(given.super_users), allows_unless_acl=given.allows_unless_acl)


def _require_known_principals(properties: Mapping[str, str]) -> None:
    """Raise `InvalidProperties` if any listener has its own principal builder."""
    for name, value in properties.items():
        is_builder = name == _PRINCIPAL_BUILDER or name.endswith(f".{_PRINCIPAL_BUILDER}")
        if is_builder and value.strip() not in ("", DEFAULT_PRINCIPAL_BUILDER):
            raise InvalidProperties(
                f"{name} is {value.strip()}, whose principals are unknown here, so ACLs cannot be checked for them; the "
                f"only supported one is {DEFAULT_PRINCIPAL_BUILDER}"
            )


def _principals(text: str) -> frozenset[Principal]:
    """Parse principals that are separated by semicolons, because names of certificates contain commas."""
    try:
        return frozenset(Principal.parse(part.strip()) for part in text.split(";") if part.strip())
    except ValueError as error:
        raise InvalidProperties(f"{_SUPER_USERS}: {error}") from error


class _AuthorizerProperties(BaseModel):
    model_config = ConfigDict(extra="ignore", frozen=True, hide_input_in_errors=True, str_strip_whitespace=True)

    class_name: str = Field(default="", alias=AUTHORIZER_CLASS)
    super_users: str = Field(default="", alias=_SUPER_USERS)
    acls_in: str = Field(default="", alias=_ACLS_IN)
    zookeeper: str = Field(default="", alias="zookeeper.connect")
    allows_unless_acl: bool = Field(default=False, alias="allow.everyone.if.no.acl.found")
