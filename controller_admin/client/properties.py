"""The properties of a client, by the names that Kafka's own clients have for them, from a mapping or a file."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Literal, Self

from pydantic import BeforeValidator, ConfigDict, Field, SecretStr, ValidationError, model_validator

from controller_admin.client.errors import InvalidArgument
from controller_core.security.properties_file import InvalidProperties, read_properties
from controller_core.security.property_types import what_is_wrong
from controller_core.security.tls_properties import TlsProperties
from controller_core.wire.client.request_client import Address, parse_addresses
from controller_core.wire.connections.security import MECHANISMS, Login, Security, SecuritySource
from controller_core.zk.secured.properties import NO_ZK_SECURITY, ZkSecurity, zk_security_of


@contextmanager
def as_invalid_argument() -> Iterator[None]:
    """Properties that cannot be used, in the errors of this library. Raises `InvalidArgument`."""
    try:
        yield
    except InvalidProperties as error:
        raise InvalidArgument(str(error)) from error


class ClientProperties(TlsProperties):
    """What a client has to know. Other properties of Kafka's are left alone, as by Kafka's tools."""

    model_config = ConfigDict(arbitrary_types_allowed=True)  # a context of TLS is one

    bootstrap_servers: Annotated[tuple[Address, ...], BeforeValidator(lambda text: parse_addresses(str(text)))]
    client_id: str = Field(default="kontroller-admin", max_length=249)
    default_api_timeout_ms: int = Field(default=60_000, ge=1, le=86_400_000)
    socket_connection_setup_timeout_ms: int = Field(default=5_000, ge=1, le=86_400_000)
    zookeeper_connect: str | None = None
    """Not Kafka's: only ZooKeeper knows the topics that are marked for deletion."""
    zookeeper_security: ZkSecurity = NO_ZK_SECURITY
    """As the properties of a broker say it, whose names begin with `zookeeper.`."""

    security_protocol: Literal["PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL"] = "PLAINTEXT"
    sasl_mechanism: str = "GSSAPI"
    sasl_jaas_config: SecretStr | None = None

    @classmethod
    def of(cls, properties: Mapping[str, object], folder: Path = Path()) -> Self:
        """Of a mapping; `folder`: where the files of ZooKeeper's are that have no other. Raises `InvalidArgument`, which
        names the property."""
        of_zookeeper = {name: str(value) for name, value in properties.items() if name.startswith("zookeeper.")}
        with as_invalid_argument():
            security = zk_security_of(of_zookeeper, folder)
        try:
            return cls.model_validate({**properties, "zookeeper.security": security})
        except ValidationError as error:
            raise InvalidArgument(f"the client's properties: {what_is_wrong(error)}") from None

    @classmethod
    def read(cls, file: Path, given: Mapping[str, object]) -> Self:
        """Of a properties file, and what was given beside it, which goes before. Raises `InvalidArgument`."""
        with as_invalid_argument():
            return cls.of({**read_properties(file), **given}, file.parent)

    @model_validator(mode="after")
    def _can_log_in(self) -> Self:
        if not self.security_protocol.startswith("SASL"):
            return self
        if self.sasl_mechanism not in MECHANISMS:
            raise ValueError(
                f"sasl.mechanism {self.sasl_mechanism} is not supported: use one of {', '.join(MECHANISMS)}"
            )
        if self.sasl_jaas_config is None:
            raise ValueError("security.protocol is a SASL one: set sasl.jaas.config")
        return self

    def security(self) -> Security:
        """How to connect. Raises `InvalidArgument` where a certificate or a login cannot be used."""
        with as_invalid_argument():
            return self._security()

    def security_source(self) -> SecuritySource | None:
        """The same for each connection anew: certificates may be renewed meanwhile. Raises as `security`, at once."""
        self.security()
        return None if self.security_protocol == "PLAINTEXT" else self._security

    def _security(self) -> Security:
        return Security(
            tls=self.tls_files().client_context() if self.security_protocol in ("SSL", "SASL_SSL") else None,
            login=self._login() if self.security_protocol.startswith("SASL") else None,
        )

    def _login(self) -> Login:
        assert self.sasl_jaas_config is not None, "it was looked for"
        text = self.sasl_jaas_config.get_secret_value()
        return Login.of_jaas(text, mechanism=self.sasl_mechanism, name="sasl.jaas.config")
