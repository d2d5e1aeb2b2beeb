"""The login of a client that gets its tokens from an identity provider (KIP-768) or from a file."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit
from urllib.request import url2pathname

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from controller_core.security.jaas import read_options
from controller_core.security.oauth.messages import Extensions, check_extensions
from controller_core.security.properties_file import InvalidProperties
from controller_core.security.property_types import describe_errors
from controller_core.security.tls_files import TlsFiles
from controller_core.security.tls_properties import TlsProperties, make_property_name

OAUTHBEARER: Final = "OAUTHBEARER"
MODULE: Final = "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule"
ENDPOINT_URL: Final = "sasl.oauthbearer.token.endpoint.url"
_HANDLERS: Final = tuple(
    f"org.apache.kafka.common.security.oauthbearer.{package}OAuthBearerLoginCallbackHandler"
    for package in ("", "secured.")
)
LOGIN_HANDLER: Final = _HANDLERS[0]
_EXTENSION: Final = "extension_"
_DAY_MS: Final = 24 * 60 * 60 * 1000


@dataclass(frozen=True, slots=True, kw_only=True)
class RefreshTimes:
    """The properties that say when a token is replaced before it expires. The defaults are Kafka's."""

    window_factor: float = 0.8
    window_jitter: float = 0.05
    min_period_s: int = 60
    buffer_s: int = 300

    def find_age_s(self, lifetime_s: float, random: float) -> float:
        """Return the age in seconds at which a token is replaced. `random` is from 0 to 1."""
        age_s = lifetime_s * (self.window_factor + self.window_jitter * random)
        if self.min_period_s + self.buffer_s > lifetime_s:
            return age_s  # as in Kafka, both are ignored for short-lived tokens
        return max(min(age_s, lifetime_s - self.buffer_s), self.min_period_s)


@dataclass(frozen=True, slots=True, kw_only=True)
class Endpoint:
    """A server of an identity provider, and how it is asked."""

    url: str
    tls: TlsFiles | None = None
    """None means the authorities that the system trusts."""
    connect_timeout_ms: int = 10_000
    read_timeout_ms: int = 10_000
    retry_backoff_ms: int = 100
    retry_backoff_max_ms: int = 10_000


@dataclass(frozen=True, slots=True, kw_only=True)
class TokenLogin:
    """The identity of a client, for SASL/OAUTHBEARER: the origin of its tokens."""

    source: Endpoint | Path
    client_id: str = ""
    client_secret: str = field(default="", repr=False)
    scope: str = ""
    encodes_header: bool = False
    """True if the id and the secret are URL-encoded, as RFC 6749 wants it, and many providers do not."""
    extensions: Extensions = ()
    refresh: RefreshTimes = RefreshTimes()

    @property
    def mechanism(self) -> str:
        """The name of the mechanism."""
        return OAUTHBEARER

    @property
    def username(self) -> str:
        """The name of the client in messages. The principal is in the token."""
        return self.client_id or f"the token in {self.source}"

    @classmethod
    def parse_jaas(cls, text: str, properties: Mapping[str, str], *, name: str, folder: Path) -> "TokenLogin":
        """Parse a JAAS line and the properties beside it. `name` is the name of its property; `folder` resolves
        relative paths. Raises `InvalidProperties`, which shows no secret."""
        said = _parse(properties)
        options = read_options(text, name)
        extensions = tuple(
            (option.removeprefix(_EXTENSION), value)
            for option, value in options.items()
            if option.startswith(_EXTENSION)
        )
        if error := check_extensions(extensions):
            raise InvalidProperties(f"{name} has the option {_EXTENSION}{error}")
        source = said.find_source(options, name, folder)
        if isinstance(source, Path):
            return cls(source=source, extensions=extensions)
        for option in ("clientId", "clientSecret"):
            if not options.get(option, "").strip():
                example = f'{MODULE} required clientId="c" clientSecret="s";'
                raise InvalidProperties(f"{name} has no {option!r}: write it as {example}")
        return cls(
            source=source,
            client_id=options["clientId"].strip(),
            client_secret=options["clientSecret"].strip(),
            scope=options.get("scope", "").strip(),
            encodes_header=said.sasl_oauthbearer_header_urlencode,
            extensions=extensions,
            refresh=RefreshTimes(
                window_factor=said.sasl_login_refresh_window_factor,
                window_jitter=said.sasl_login_refresh_window_jitter,
                min_period_s=said.sasl_login_refresh_min_period_seconds,
                buffer_s=said.sasl_login_refresh_buffer_seconds,
            ),
        )


class _LoginProperties(BaseModel):
    """The properties beside the JAAS line. Ranges and defaults are Kafka's, which has no default for timeouts."""

    model_config = ConfigDict(
        alias_generator=make_property_name, extra="ignore", frozen=True, hide_input_in_errors=True
    )

    sasl_login_callback_handler_class: str = ""
    sasl_oauthbearer_token_endpoint_url: str = ""
    sasl_oauthbearer_header_urlencode: bool = False
    sasl_login_connect_timeout_ms: int = Field(default=10_000, ge=1, le=_DAY_MS)
    sasl_login_read_timeout_ms: int = Field(default=10_000, ge=1, le=_DAY_MS)
    sasl_login_retry_backoff_ms: int = Field(default=100, ge=1, le=_DAY_MS)
    sasl_login_retry_backoff_max_ms: int = Field(default=10_000, ge=1, le=_DAY_MS)
    sasl_login_refresh_window_factor: float = Field(default=0.8, ge=0.5, le=1.0)
    sasl_login_refresh_window_jitter: float = Field(default=0.05, ge=0.0, le=0.25)
    sasl_login_refresh_min_period_seconds: int = Field(default=60, ge=0, le=900)
    sasl_login_refresh_buffer_seconds: int = Field(default=300, ge=0, le=3600)

    def find_source(self, options: Mapping[str, str], name: str, folder: Path) -> Endpoint | Path:
        handler = self.sasl_login_callback_handler_class.strip()
        if handler not in ("", *_HANDLERS):
            raise InvalidProperties(
                f"sasl.login.callback.handler.class is {handler[:200]}, a Java class that is not supported: set it to "
                f"{LOGIN_HANDLER}, and {ENDPOINT_URL} to the URL of your identity provider"
            )
        place = read_place(self.sasl_oauthbearer_token_endpoint_url, ENDPOINT_URL)
        if isinstance(place, Path):
            return folder / place
        return Endpoint(
            url=place,
            tls=read_tls(options, name, folder),
            connect_timeout_ms=self.sasl_login_connect_timeout_ms,
            read_timeout_ms=self.sasl_login_read_timeout_ms,
            retry_backoff_ms=self.sasl_login_retry_backoff_ms,
            retry_backoff_max_ms=self.sasl_login_retry_backoff_max_ms,
        )


def _parse(properties: Mapping[str, str]) -> _LoginProperties:
    try:
        return _LoginProperties.model_validate(dict(properties))
    except ValidationError as error:
        raise InvalidProperties(f"the properties of {OAUTHBEARER}: {describe_errors(error)}") from None


def read_place(url: str, name: str) -> str | Path:
    """Return the URL of a server, or the path of a `file:` URL. `name` is the name of the property. Raises
    `InvalidProperties`."""
    try:
        parts = urlsplit(url.strip())
        # Its value is not shown, because a URL may hold a password.
        if parts.username is not None or parts.password is not None:
            raise InvalidProperties(f"{name} holds a user or a password: remove it from the URL")
        if parts.scheme == "file" and parts.hostname in (None, "localhost") and parts.path:
            return Path(url2pathname(parts.path))
        if parts.scheme in ("http", "https") and parts.hostname and parts.port != 0:
            return url.strip()
    except ValueError:  # of the port, or of brackets
        pass
    raise InvalidProperties(
        f"{name} {'is not a usable URL' if url.strip() else 'is not set'}: write https://HOST/PATH or file:///PATH"
    )


def read_tls(options: Mapping[str, str], name: str, folder: Path) -> TlsFiles | None:
    """Return the certificates among the options of a JAAS line, or None if there are none. Raises
    `InvalidProperties`."""
    if not any(option.startswith("ssl.") for option in options):
        return None
    try:
        return TlsProperties.model_validate(dict(options)).tls_files(folder, f"{name}: ssl")
    except ValidationError as error:
        raise InvalidProperties(f"{name}: {describe_errors(error)}") from None
