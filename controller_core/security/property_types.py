"""Properties as pydantic reads them: what may be left out, what nobody is shown, and what is said of one that is wrong."""

from pathlib import Path
from typing import Annotated, Any

from pydantic import BeforeValidator, SecretStr, ValidationError


def _or_none(value: Any) -> Any:
    return value or None


OptionalFile = Annotated[Path | None, BeforeValidator(_or_none)]
OptionalSecret = Annotated[SecretStr | None, BeforeValidator(_or_none)]
"""What is set to nothing is not set."""


def shown(secret: SecretStr | None) -> str | None:
    """For whoever needs the secret itself."""
    return secret.get_secret_value() if secret is not None else None


def what_is_wrong(error: ValidationError) -> str:
    """Each property that is wrong by its name, and why, without what it says."""
    return "; ".join(f"{'.'.join(map(str, each['loc']))}: {each['msg']}" for each in error.errors())
