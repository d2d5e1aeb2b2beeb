"""The properties of a client, by the names that Kafka's own clients have for them, from a mapping or a file."""

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Literal, Self

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, SecretStr, ValidationError, model_validator

from controller_admin.client.errors import InvalidArgument
from controller_core.security.jaas import read_jaas
from controller_core.security.properties_file import InvalidProperties, read_properties
from controller_core.security.tls_files import TlsFiles
from controller_core.wire.client.request_client import Address, parse_addresses
from controller_core.wire.client.security import MECHANISMS, PLAIN, Login, Security
from controller_core.zk.secured.properties import NO_ZK_SECURITY, ZkSecurity, zk_security_of


def _dotted(name: str) -> str:
    return name.replace("_", ".")


def _or_none(value: Any) -> Any:
    return value or None


File = Annotated[Path | None, BeforeValidator(_or_none)]
Pem = Annotated[SecretStr | None, BeforeValidator(_or_none)]


class ClientProperties(BaseModel):
    """What a client has to know. Other properties of Kafka's are left alone, as by Kafka's tools."""

    model_config = ConfigDict(alias_generator=_dotted, extra="ignore", frozen=True, hide_input_in_errors=True)

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
    ssl_truststore_type: str = "JKS"
    ssl_truststore_location: File = None
    ssl_truststore_certificates: Pem = None
    ssl_keystore_type: str = "JKS"
    ssl_keystore_location: File = None
    ssl_keystore_certificate_chain: Pem = None
    ssl_keystore_key: Pem = None
    ssl_key_password: SecretStr | None = None
    ssl_endpoint_identification_algorithm: str = "https"

    @classmethod
    def of(cls, properties: Mapping[str, object], folder: Path = Path()) -> Self:
        """Of a mapping; `folder`: where the files of ZooKeeper's are that have no other. Raises `InvalidArgument`, which
        names the property."""
        try:
            of_zookeeper = {name: str(value) for name, value in properties.items() if name.startswith("zookeeper.")}
            return cls.model_validate({**properties, "zookeeper.security": zk_security_of(of_zookeeper, folder)})
        except InvalidProperties as error:
            raise InvalidArgument(str(error)) from error
        except ValidationError as error:
            said = "; ".join(f"{'.'.join(map(str, each['loc']))}: {each['msg']}" for each in error.errors())
            raise InvalidArgument(f"the client's properties: {said}") from None

    @classmethod
    def read(cls, file: Path, given: Mapping[str, object]) -> Self:
        """Of a properties file, and what was given beside it, which goes before. Raises `InvalidArgument`."""
        try:
            return cls.of({**read_properties(file), **given}, file.parent)
        except InvalidProperties as error:
            raise InvalidArgument(str(error)) from error

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
        try:
            return Security(
                tls=self._tls_files().client_context() if self.security_protocol in ("SSL", "SASL_SSL") else None,
                login=self._login() if self.security_protocol.startswith("SASL") else None,
            )
        except InvalidProperties as error:
            raise InvalidArgument(str(error)) from error

    def _login(self) -> Login:
        assert self.sasl_jaas_config is not None, "it was looked for"
        kind = "plain.Plain" if self.sasl_mechanism == PLAIN else "scram.Scram"
        user = read_jaas(
            self.sasl_jaas_config.get_secret_value(),
            name="sasl.jaas.config",
            module=f"org.apache.kafka.common.security.{kind}LoginModule",
        )
        return Login(mechanism=self.sasl_mechanism, username=user.username, password=user.password)

    def _tls_files(self) -> TlsFiles:
        return TlsFiles(
            truststore_location=self.ssl_truststore_location,
            truststore_certificates=_shown(self.ssl_truststore_certificates),
            truststore_type=self.ssl_truststore_type,
            keystore_location=self.ssl_keystore_location,
            keystore_certificate_chain=_shown(self.ssl_keystore_certificate_chain),
            keystore_key=_shown(self.ssl_keystore_key),
            keystore_type=self.ssl_keystore_type,
            key_password=_shown(self.ssl_key_password),
            verifies_host_name=bool(self.ssl_endpoint_identification_algorithm),
        )


def _shown(secret: SecretStr | None) -> str | None:
    return secret.get_secret_value() if secret is not None else None
