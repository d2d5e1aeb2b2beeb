"""The security of a client, by the names of Kafka's own clients: `security.protocol`, `sasl.*`, `ssl.*`."""

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Literal, Self

from pydantic import BeforeValidator, ConfigDict, Field, SecretStr, ValidationError, model_validator

from controller_core.security.oauth.token_login import OAUTHBEARER, TokenLogin
from controller_core.security.properties_file import InvalidProperties
from controller_core.security.property_types import describe_errors
from controller_core.security.tls_properties import TlsProperties
from controller_core.wire.connections.security import MECHANISMS, Login, Security


class ClientSecurity(TlsProperties):
    """The security properties of a client. Others are ignored, as by Kafka's tools."""

    model_config = ConfigDict(arbitrary_types_allowed=True)

    security_protocol: Annotated[
        Literal["PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL"], BeforeValidator(lambda text: str(text).upper())
    ] = "PLAINTEXT"
    sasl_mechanism: str = "GSSAPI"
    sasl_jaas_config: SecretStr | None = None
    beside_login: dict[str, str] = Field(default_factory=dict, repr=False)
    """The properties that only a login with tokens has."""

    @model_validator(mode="before")
    @classmethod
    def _keep_properties_of_tokens(cls, given: Any) -> Any:
        if not isinstance(given, Mapping):
            return given
        kept = {name: str(given[name]) for name in given if name.startswith(("sasl.login.", "sasl.oauthbearer."))}
        return {**given, "beside.login": kept}

    @classmethod
    def parse_properties(cls, properties: Mapping[str, str]) -> Self:
        """Parse a client's properties. Raises `InvalidProperties`, which names the property and shows no value."""
        try:
            return cls.model_validate(properties)
        except ValidationError as error:
            raise InvalidProperties(f"the client's properties: {describe_errors(error)}") from None

    @model_validator(mode="after")
    def _can_log_in(self) -> Self:
        if not self.security_protocol.startswith("SASL"):
            return self
        if self.sasl_mechanism not in MECHANISMS:
            raise ValueError(
                f"sasl.mechanism {self.sasl_mechanism} is not supported: use one of {', '.join(MECHANISMS)}"
            )
        if self.sasl_jaas_config is None:
            raise ValueError("security.protocol uses SASL: set sasl.jaas.config")
        return self

    def make_security(self, folder: Path = Path()) -> Security:
        """Return the security of a connection. `folder` resolves relative file names.

        Raises `InvalidProperties` if a certificate or a login cannot be used.
        """
        protocol = self.security_protocol
        return Security(
            tls=self.tls_files(folder).make_client_context() if protocol in ("SSL", "SASL_SSL") else None,
            login=self._login(folder) if protocol.startswith("SASL") else None,
        )

    def _login(self, folder: Path) -> Login | TokenLogin:
        assert self.sasl_jaas_config is not None, "it was checked"
        text = self.sasl_jaas_config.get_secret_value()
        if self.sasl_mechanism == OAUTHBEARER:
            return TokenLogin.parse_jaas(text, self.beside_login, name="sasl.jaas.config", folder=folder)
        return Login.parse_jaas(text, mechanism=self.sasl_mechanism, name="sasl.jaas.config")
