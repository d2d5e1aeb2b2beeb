"""The rules by which a listener accepts tokens, with the properties of Kafka's own validator (KIP-768)."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from controller_core.security.jaas import read_options
from controller_core.security.oauth.token_login import OAUTHBEARER, Endpoint, read_place, read_tls
from controller_core.security.properties_file import InvalidProperties
from controller_core.security.property_types import describe_errors
from controller_core.security.tls_properties import make_property_name

JWKS_URL: Final = "sasl.oauthbearer.jwks.endpoint.url"
_HANDLER: Final = "sasl.server.callback.handler.class"
_HANDLERS: Final = tuple(
    f"org.apache.kafka.common.security.oauthbearer.{package}OAuthBearerValidatorCallbackHandler"
    for package in ("", "secured.")
)
_DAY_MS: Final = 24 * 60 * 60 * 1000


@dataclass(frozen=True, slots=True, kw_only=True)
class TokenRules:
    """The rules. The defaults are Kafka's."""

    keys: Endpoint | Path
    """The place of the public keys that sign tokens (JWKS)."""
    refresh_ms: int = 3_600_000
    audiences: frozenset[str] = frozenset()
    issuer: str | None = None
    clock_skew_s: int = 30
    scope_claim: str = "scope"
    subject_claim: str = "sub"


class InvalidToken(Exception):
    """The token is not accepted. The message is for the log, and quotes nothing of the client's."""


class NoKeys(Exception):
    """The keys are not known. The message says what to change."""


@dataclass(frozen=True, slots=True, kw_only=True)
class VerifiedToken:
    """The content of an accepted token."""

    name: str
    expires_in_s: float


class _ValidatorProperties(BaseModel):
    """The properties. Ranges and defaults are Kafka's, which has no default for timeouts."""

    model_config = ConfigDict(
        alias_generator=make_property_name, extra="ignore", frozen=True, hide_input_in_errors=True
    )

    sasl_server_callback_handler_class: str = ""
    sasl_oauthbearer_jwks_endpoint_url: str = ""
    sasl_oauthbearer_jwks_endpoint_refresh_ms: int = Field(default=3_600_000, ge=1, le=365 * _DAY_MS)
    sasl_oauthbearer_jwks_endpoint_retry_backoff_ms: int = Field(default=100, ge=1, le=_DAY_MS)
    sasl_oauthbearer_jwks_endpoint_retry_backoff_max_ms: int = Field(default=10_000, ge=1, le=_DAY_MS)
    sasl_login_connect_timeout_ms: int = Field(default=10_000, ge=1, le=_DAY_MS)
    sasl_login_read_timeout_ms: int = Field(default=10_000, ge=1, le=_DAY_MS)
    sasl_oauthbearer_expected_audience: str = ""
    sasl_oauthbearer_expected_issuer: str = ""
    sasl_oauthbearer_clock_skew_seconds: int = Field(default=30, ge=0, le=24 * 60 * 60)
    sasl_oauthbearer_scope_claim_name: str = Field(default="scope", min_length=1)
    sasl_oauthbearer_sub_claim_name: str = Field(default="sub", min_length=1)


def read_token_rules(properties: Mapping[str, str], jaas: str, *, prefix: str, folder: Path) -> TokenRules:
    """Return the rules of a listener. Raises `InvalidProperties`.

    `jaas` is the listener's JAAS line, which may have certificates for the place of the keys. `prefix` is that of the
    properties' full names. `folder` resolves relative paths.
    """
    try:
        said = _ValidatorProperties.model_validate(dict(properties))
    except ValidationError as error:
        raise InvalidProperties(f"the properties of {OAUTHBEARER}: {describe_errors(error)}") from None
    handler = said.sasl_server_callback_handler_class.strip()
    if handler not in ("", *_HANDLERS):
        raise InvalidProperties(
            f"{prefix}{_HANDLER} is {handler[:200]}, a Java class that is not supported: set it to {_HANDLERS[0]}"
        )
    if not said.sasl_oauthbearer_jwks_endpoint_url.strip():
        raise InvalidProperties(
            f"{OAUTHBEARER} is enabled, and unsecured tokens are not supported: set {JWKS_URL} to the keys of the "
            f"identity provider, and {prefix}{_HANDLER} to {_HANDLERS[0]}, which brokers need too"
        )
    place = read_place(said.sasl_oauthbearer_jwks_endpoint_url, JWKS_URL)
    audiences = (each.strip() for each in said.sasl_oauthbearer_expected_audience.split(","))
    return TokenRules(
        keys=folder / place
        if isinstance(place, Path)
        else Endpoint(
            url=place,
            tls=read_tls(read_options(jaas, f"{prefix}sasl.jaas.config"), f"{prefix}sasl.jaas.config", folder),
            connect_timeout_ms=said.sasl_login_connect_timeout_ms,
            read_timeout_ms=said.sasl_login_read_timeout_ms,
            retry_backoff_ms=said.sasl_oauthbearer_jwks_endpoint_retry_backoff_ms,
            retry_backoff_max_ms=said.sasl_oauthbearer_jwks_endpoint_retry_backoff_max_ms,
        ),
        refresh_ms=said.sasl_oauthbearer_jwks_endpoint_refresh_ms,
        audiences=frozenset(filter(None, audiences)),
        issuer=said.sasl_oauthbearer_expected_issuer.strip() or None,
        clock_skew_s=said.sasl_oauthbearer_clock_skew_seconds,
        scope_claim=said.sasl_oauthbearer_scope_claim_name.strip(),
        subject_claim=said.sasl_oauthbearer_sub_claim_name.strip(),
    )
