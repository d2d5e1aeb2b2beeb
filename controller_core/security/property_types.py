"""Property types for pydantic: optional files, secrets, and errors without values."""

from pathlib import Path
from typing import Annotated, Any

from pydantic import BeforeValidator, SecretStr, ValidationError


def _or_none(value: Any) -> Any:
    return value or None


OptionalFile = Annotated[Path | None, BeforeValidator(_or_none)]
OptionalSecret = Annotated[SecretStr | None, BeforeValidator(_or_none)]
"""An optional secret. An empty value counts as not set, as with `OptionalFile`."""


def reveal_secret(secret: SecretStr | None) -> str | None:
    """Return the secret itself, or None if it is not set."""
    return secret.get_secret_value() if secret is not None else None


def describe_errors(error: ValidationError) -> str:
    """Return each wrong property with the reason, without its value, which may be a secret."""
    return "; ".join(f"{'.'.join(map(str, each['loc']))}: {each['msg']}" for each in error.errors())
