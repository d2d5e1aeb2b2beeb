"""The security of a connection to ZooKeeper, from the properties that a broker's `server.properties` has for it.

Two properties are Kontroller's own: `zookeeper.sasl.jaas.config` is the section `Client` of Java's login file, and
`zookeeper.auth.digest` is the argument of `addauth digest` in ZooKeeper's shell. The file is read for each connection,
so passwords and certificates may change while the process runs. Relative file names are relative to the property file,
as in a mounted Secret.
"""

import ssl
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Literal, TypeAlias

from pydantic import BaseModel, ConfigDict, ValidationError

from controller_core.security.jaas import NameAndPassword, read_jaas
from controller_core.security.properties_file import InvalidProperties, read_properties
from controller_core.security.property_types import OptionalFile, OptionalSecret, describe_errors, reveal_secret
from controller_core.security.tls_files import TlsFiles

_LOGIN_MODULE: Final = "org.apache.zookeeper.server.auth.DigestLoginModule"
_NETTY: Final = "org.apache.zookeeper.ClientCnxnSocketNetty"
_KERBEROS: Final = "com.sun.security.auth.module.Krb5LoginModule"


@dataclass(frozen=True, slots=True, kw_only=True)
class ZkSecurity:
    """The security of a connection. The default is an anonymous, unencrypted one."""

    tls: ssl.SSLContext | None = None
    sasl: NameAndPassword | None = None
    """A login by SASL DIGEST-MD5, as brokers use it."""
    digest: NameAndPassword | None = None
    """An identity for ACLs of ZooKeeper's scheme `digest`. ZooKeeper accepts any."""
    sets_acls: bool = False
    """True if znodes get ACLs as with `zookeeper.set.acl`."""


NO_ZK_SECURITY: Final = ZkSecurity()
ZkSecuritySource: TypeAlias = Callable[[], ZkSecurity]
"""Returns the security. It is called before each connection, in a separate thread. Raises `InvalidProperties`."""


def make_zk_security_source(file: Path | None) -> ZkSecuritySource:
    """Return a source that reads a property file. Without a file, nothing is secured."""
    if file is None:
        return lambda: NO_ZK_SECURITY
    return lambda: parse_zk_security(read_properties(file), file.parent)


def parse_zk_security(properties: Mapping[str, str], folder: Path) -> ZkSecurity:
    """Return the security from the properties of a broker or a ZooKeeper client. `folder` resolves relative file names.

    Raises `InvalidProperties`, which names the property.
    """
    try:
        return _ZkProperties.model_validate(dict(properties)).security(folder)
    except ValidationError as error:
        raise InvalidProperties(f"the properties of ZooKeeper: {describe_errors(error)}") from None


def _make_kafka_name(name: str) -> str:
    return "zookeeper." + name.replace("_", ".")


class _ZkProperties(BaseModel):
    """The properties by Kafka's names (KIP-515). All others in the file are ignored."""

    model_config = ConfigDict(alias_generator=_make_kafka_name, extra="ignore", frozen=True, hide_input_in_errors=True)

    set_acl: bool = False
    sasl_jaas_config: OptionalSecret = None
    auth_digest: OptionalSecret = None
    ssl_client_enable: bool = False
    clientCnxnSocket: Literal["", "org.apache.zookeeper.ClientCnxnSocketNetty"] = ""  # noqa: N815 - as Kafka calls it
    ssl_truststore_location: OptionalFile = None
    ssl_truststore_type: str | None = None
    ssl_keystore_location: OptionalFile = None
    ssl_keystore_type: str | None = None
    ssl_keystore_password: OptionalSecret = None
    ssl_endpoint_identification_algorithm: str = "HTTPS"

    def security(self, folder: Path) -> ZkSecurity:
        files = self._tls_files(folder) if self.ssl_client_enable else None
        security = ZkSecurity(
            tls=files.make_client_context() if files else None,
            sasl=self._sasl(),
            digest=self._digest(),
            sets_acls=self.set_acl,
        )
        is_somebody = security.sasl or security.digest or (files and files.keystore_location)
        if self.set_acl and not is_somebody:
            raise InvalidProperties(
                "zookeeper.set.acl is true, which needs a login: set zookeeper.sasl.jaas.config, "
                "zookeeper.auth.digest, or zookeeper.ssl.keystore.location with a certificate that ZooKeeper trusts"
            )
        return security

    def _sasl(self) -> NameAndPassword | None:
        if self.sasl_jaas_config is None:
            return None
        text = self.sasl_jaas_config.get_secret_value()
        if _KERBEROS in text:
            raise InvalidProperties(
                "zookeeper.sasl.jaas.config asks for Kerberos, which is not supported: use "
                f"{_LOGIN_MODULE} or certificates"
            )
        return read_jaas(text, name="zookeeper.sasl.jaas.config", module=_LOGIN_MODULE)

    def _digest(self) -> NameAndPassword | None:
        if self.auth_digest is None:
            return None
        username, colon, password = self.auth_digest.get_secret_value().partition(":")
        if not (username and colon and password):
            raise InvalidProperties("zookeeper.auth.digest is not USER:PASSWORD: write it in this form")
        return NameAndPassword(username=username, password=password)

    def _tls_files(self, folder: Path) -> TlsFiles:
        return TlsFiles(
            prefix="zookeeper.ssl",
            truststore_location=self.ssl_truststore_location and folder / self.ssl_truststore_location,
            truststore_type=_type_of(self.ssl_truststore_location, self.ssl_truststore_type),
            keystore_location=self.ssl_keystore_location and folder / self.ssl_keystore_location,
            keystore_type=_type_of(self.ssl_keystore_location, self.ssl_keystore_type),
            key_password=reveal_secret(self.ssl_keystore_password),
            verifies_host_name=bool(self.ssl_endpoint_identification_algorithm),
        )


def _type_of(location: Path | None, type_: str | None) -> str:
    """Return the type of a store. Like ZooKeeper's client, derive it from the file name if it is not set. Certificates
    are PEM."""
    suffix = location.suffix.removeprefix(".") if location is not None else ""
    return type_ or ("PEM" if suffix in ("", "crt", "key") else suffix)
