"""The delegation token properties of a cluster: whether it has tokens, and how often expired ones are removed."""

from collections.abc import Mapping
from pathlib import Path
from typing import Final

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from controller_core.security.properties_file import InvalidProperties, read_properties
from controller_core.security.property_types import OptionalSecret, describe_errors

_HOUR_MS: Final = 60 * 60 * 1000


def read_token_check_interval_ms(file: Path | None) -> int | None:
    """Return the check interval from a property file, or None if the cluster has no tokens. Raises
    `InvalidProperties`."""
    return None if file is None else parse_token_check_interval_ms(read_properties(file))


def parse_token_check_interval_ms(properties: Mapping[str, str]) -> int | None:
    """Return the check interval from a broker's properties, or None if the cluster has no tokens. Raises
    `InvalidProperties`."""
    try:
        given = _TokenProperties.model_validate(dict(properties))
    except ValidationError as error:
        raise InvalidProperties(f"the properties of delegation tokens: {describe_errors(error)}") from None
    return given.interval_ms if given.secret_key or given.master_key else None


class _TokenProperties(BaseModel):
    model_config = ConfigDict(extra="ignore", frozen=True, hide_input_in_errors=True)

    secret_key: OptionalSecret = Field(default=None, alias="delegation.token.secret.key")
    master_key: OptionalSecret = Field(default=None, alias="delegation.token.master.key")
    """The name of the secret key before Kafka 3.0."""
    interval_ms: int = Field(default=_HOUR_MS, ge=1, alias="delegation.token.expiry.check.interval.ms")
