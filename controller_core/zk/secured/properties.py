"""How a connection to ZooKeeper is made secure: by the properties that a broker's `server.properties` has for it.

Where there is none, `zookeeper.sasl.jaas.config` is what Java reads from a file of logins (its section `Client`), and
`zookeeper.auth.digest` is what `addauth digest` says in ZooKeeper's shell. The file is read again for each connection, so
passwords and certificates may change under a process that runs. Files that it names without a folder are beside it: as
Secrets are mounted.
"""

import ssl
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Literal, TypeAlias

from pydantic import BaseModel, ConfigDict, ValidationError

from controller_core.security.jaas import NameAndPassword, read_jaas
from controller_core.security.properties_file import InvalidProperties, read_properties
from controller_core.security.property_types import OptionalFile, OptionalSecret, shown, what_is_wrong
from controller_core.security.tls_files import TlsFiles

_LOGIN_MODULE: Final = "org.apache.zookeeper.server.auth.DigestLoginModule"
_NETTY: Final = "org.apache.zookeeper.ClientCnxnSocketNetty"
_KERBEROS: Final = "com.sun.security.auth.module.Krb5LoginModule"


@dataclass(frozen=True, slots=True, kw_only=True)
class ZkSecurity:
    """The default is a connection that anybody may make."""

    tls: ssl.SSLContext | None = None
    sasl: NameAndPassword | None = None
    """SASL by DIGEST-MD5, as brokers log in."""
    digest: NameAndPassword | None = None
    """A name that the ACLs of ZooKeeper's scheme `digest` know; ZooKeeper refuses nobody for it."""
    sets_acls: bool = False
    """Whether znodes are made as under `zookeeper.set.acl`."""


NO_ZK_SECURITY: Final = ZkSecurity()
ZkSecuritySource: TypeAlias = Callable[[], ZkSecurity]
"""Is asked before each connection, in a thread of its own. Raises `InvalidProperties`."""


def zk_security_source(file: Path | None) -> ZkSecuritySource:
    """What a file of properties says; without one, nothing is secured."""
    if file is None:
        return lambda: NO_ZK_SECURITY
    return lambda: zk_security_of(read_properties(file), file.parent)


def zk_security_of(properties: Mapping[str, str], folder: Path) -> ZkSecurity:
    """Of the properties of a broker, or of a client of ZooKeeper. `folder`: where files are that have no other.

    Raises `InvalidProperties`, which names the property."""
    try:
        return _ZkProperties.model_validate(dict(properties)).security(folder)
    except ValidationError as error:
        raise InvalidProperties(f"the properties of ZooKeeper: {what_is_wrong(error)}") from None


def _of_kafka(name: str) -> str:
    return "zookeeper." + name.replace("_", ".")


class _ZkProperties(BaseModel):
    """By Kafka's names (KIP-515). What else the file says is not about ZooKeeper."""

    model_config = ConfigDict(alias_generator=_of_kafka, extra="ignore", frozen=True, hide_input_in_errors=True)

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
            tls=files.client_context() if files else None,
            sasl=self._sasl(),
            digest=self._digest(),
            sets_acls=self.set_acl,
        )
        is_somebody = security.sasl or security.digest or (files and files.keystore_location)
        if self.set_acl and not is_somebody:
            raise InvalidProperties(
                "zookeeper.set.acl is true and nobody logs in: set zookeeper.sasl.jaas.config, zookeeper.auth.digest, or "
                "zookeeper.ssl.keystore.location with a certificate that ZooKeeper knows"
            )
        return security

    def _sasl(self) -> NameAndPassword | None:
        if self.sasl_jaas_config is None:
            return None
        text = self.sasl_jaas_config.get_secret_value()
        if _KERBEROS in text:
            raise InvalidProperties(
                f"zookeeper.sasl.jaas.config asks for Kerberos, which is not supported: use {_LOGIN_MODULE} or certificates"
            )
        return read_jaas(text, name="zookeeper.sasl.jaas.config", module=_LOGIN_MODULE)

    def _digest(self) -> NameAndPassword | None:
        if self.auth_digest is None:
            return None
        username, colon, password = self.auth_digest.get_secret_value().partition(":")
        if not (username and colon and password):
            raise InvalidProperties("zookeeper.auth.digest is no USER:PASSWORD: write it so")
        return NameAndPassword(username=username, password=password)

    def _tls_files(self, folder: Path) -> TlsFiles:
        return TlsFiles(
            prefix="zookeeper.ssl",
            truststore_location=self.ssl_truststore_location and folder / self.ssl_truststore_location,
            truststore_type=_type_of(self.ssl_truststore_location, self.ssl_truststore_type),
            keystore_location=self.ssl_keystore_location and folder / self.ssl_keystore_location,
            keystore_type=_type_of(self.ssl_keystore_location, self.ssl_keystore_type),
            key_password=shown(self.ssl_keystore_password),
            verifies_host_name=bool(self.ssl_endpoint_identification_algorithm),
        )


def _type_of(location: Path | None, type_: str | None) -> str:
    """ZooKeeper's client tells the type by the name of the file where nothing else is said; certificates are PEM."""
    suffix = location.suffix.removeprefix(".") if location is not None else ""
    return type_ or ("PEM" if suffix in ("", "crt", "key") else suffix)
