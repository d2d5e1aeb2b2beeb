"""Whether a cluster has delegation tokens, and how often its controller looks for those that are over."""

from collections.abc import Mapping
from pathlib import Path
from typing import Final

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from controller_core.security.properties_file import InvalidProperties, read_properties
from controller_core.security.property_types import OptionalSecret, what_is_wrong

_HOUR_MS: Final = 60 * 60 * 1000


def token_check_interval_ms(file: Path | None) -> int | None:
    """What a file of properties says; None where the cluster has no tokens. Raises `InvalidProperties`."""
    return None if file is None else token_check_interval_ms_of(read_properties(file))


def token_check_interval_ms_of(properties: Mapping[str, str]) -> int | None:
    """Of the properties of a broker. Raises `InvalidProperties`."""
    try:
        given = _TokenProperties.model_validate(dict(properties))
    except ValidationError as error:
        raise InvalidProperties(f"the properties of delegation tokens: {what_is_wrong(error)}") from None
    return given.interval_ms if given.secret_key or given.master_key else None


class _TokenProperties(BaseModel):
    model_config = ConfigDict(extra="ignore", frozen=True, hide_input_in_errors=True)

    secret_key: OptionalSecret = Field(default=None, alias="delegation.token.secret.key")
    master_key: OptionalSecret = Field(default=None, alias="delegation.token.master.key")
    """Its name before Kafka 3.0."""
    interval_ms: int = Field(default=_HOUR_MS, ge=1, alias="delegation.token.expiry.check.interval.ms")
