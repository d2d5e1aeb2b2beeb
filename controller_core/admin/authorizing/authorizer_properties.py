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

ACL_AUTHORIZER: Final = "kafka.security.authorizer.AclAuthorizer"
AUTHORIZER_CLASS: Final = "authorizer.class.name"
_SUPER_USERS: Final = "super.users"


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

    An unknown authorizer is refused, because ignoring it would allow everything that it denies.
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
    return AuthorizerRules(super_users=_principals(given.super_users), allows_unless_acl=given.allows_unless_acl)


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
    allows_unless_acl: bool = Field(default=False, alias="allow.everyone.if.no.acl.found")
