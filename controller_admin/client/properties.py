"""The properties of a client, by the names that Kafka's own clients have for them, from a mapping or a file."""

import os
import re
import shlex
import ssl
from collections.abc import Mapping
from pathlib import Path
from tempfile import NamedTemporaryFile
from typing import Annotated, Any, Final, Literal, Self

import javaproperties
from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, SecretStr, ValidationError, model_validator

from controller_admin.client.errors import InvalidArgument
from controller_core.wire.client.request_client import Address, parse_addresses
from controller_core.wire.client.security import MECHANISMS, PLAIN, Login, Security

_MAX_FILE_BYTES: Final = 1 << 20
_JAAS_PAIR: Final = re.compile(r"(\w+)=(.*)", re.DOTALL)


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
    def of(cls, properties: Mapping[str, object]) -> Self:
        """Of a mapping. Raises `InvalidArgument`, which names the property."""
        try:
            return cls.model_validate(dict(properties))
        except ValidationError as error:
            said = "; ".join(f"{'.'.join(map(str, each['loc']))}: {each['msg']}" for each in error.errors())
            raise InvalidArgument(f"the client's properties: {said}") from None

    @classmethod
    def read(cls, file: Path, given: Mapping[str, object]) -> Self:
        """Of a properties file, and what was given beside it, which goes before. Raises `InvalidArgument`."""
        return cls.of({**read_properties(file), **given})

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
        has_tls = self.security_protocol in ("SSL", "SASL_SSL")
        has_login = self.security_protocol.startswith("SASL")
        return Security(tls=self._tls() if has_tls else None, login=self._login() if has_login else None)

    def _login(self) -> Login:
        assert self.sasl_jaas_config is not None, "it was looked for"
        options = _jaas_options(self.sasl_jaas_config.get_secret_value())
        try:
            return Login(mechanism=self.sasl_mechanism, username=options["username"], password=options["password"])
        except KeyError as error:
            module = "plain.Plain" if self.sasl_mechanism == PLAIN else "scram.Scram"
            example = f'org.apache.kafka.common.security.{module}LoginModule required username="u" password="p";'
            raise InvalidArgument(f"sasl.jaas.config has no {error}: write it as {example}") from None

    def _tls(self) -> ssl.SSLContext:
        try:
            context = self._trusting()
            self._present(context)
        except (OSError, ValueError) as error:
            raise InvalidArgument(f"the client's certificates cannot be used: {error}") from error
        context.check_hostname = bool(self.ssl_endpoint_identification_algorithm)
        return context

    def _trusting(self) -> ssl.SSLContext:
        """Who names whom to trust trusts nobody else; the certificate authorities of the system are for who names none."""
        if self.ssl_truststore_certificates is not None:
            return ssl.create_default_context(cadata=self.ssl_truststore_certificates.get_secret_value())
        if self.ssl_truststore_location is not None:
            _require_pem("truststore", self.ssl_truststore_type)
            return ssl.create_default_context(cafile=self.ssl_truststore_location)
        return ssl.create_default_context()

    def _present(self, context: ssl.SSLContext) -> None:
        password = self.ssl_key_password.get_secret_value() if self.ssl_key_password else None
        chain, key = self.ssl_keystore_certificate_chain, self.ssl_keystore_key
        if (chain is None) is not (key is None):
            given, missing = ("certificate.chain", "key") if key is None else ("key", "certificate.chain")
            raise ValueError(f"ssl.keystore.{given} is set, and ssl.keystore.{missing} is not: set both")
        if chain is not None and key is not None:
            with NamedTemporaryFile("w") as file:  # the standard library reads a key from a file alone
                file.write(f"{key.get_secret_value()}\n{chain.get_secret_value()}\n")
                file.flush()
                context.load_cert_chain(file.name, password=password or "")
        elif self.ssl_keystore_location is not None:
            _require_pem("keystore", self.ssl_keystore_type)
            context.load_cert_chain(self.ssl_keystore_location, password=password or "")


def read_properties(file: Path) -> dict[str, str]:
    """A properties file, as Java writes it. Raises `InvalidArgument`."""
    try:
        if os.path.getsize(file) > _MAX_FILE_BYTES:
            raise InvalidArgument(f"{file} is larger than {_MAX_FILE_BYTES} bytes: it is no file of properties")
        with file.open(encoding="utf-8") as lines:
            return dict(javaproperties.load(lines))
    except (OSError, UnicodeDecodeError, javaproperties.InvalidUEscapeError) as error:
        raise InvalidArgument(f"{file} cannot be read as properties: {error}") from error


def _require_pem(store: str, type_: str) -> None:
    if type_.upper() != "PEM":
        raise ValueError(
            f"ssl.{store}.type is {type_}: convert the {store} to PEM, as with openssl pkcs12, and set ssl.{store}.type=PEM"
        )


def _jaas_options(text: str) -> dict[str, str]:
    """`MODULE required name="value" ...;`"""
    try:
        words = shlex.split(text.strip().removesuffix(";"))
    except ValueError as error:
        raise InvalidArgument(f"sasl.jaas.config cannot be read: {error}") from None
    pairs = (_JAAS_PAIR.fullmatch(word) for word in words)
    return {match[1]: match[2] for match in pairs if match}
