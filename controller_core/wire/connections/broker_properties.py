"""The security of connections to brokers, from the properties by which brokers connect to each other.

A property of one listener (`listener.name.internal.ssl.keystore.location`) takes precedence over the general one.
Logins are set per listener and mechanism (`listener.name.internal.plain.sasl.jaas.config`). A bare `sasl.jaas.config`,
which brokers ignore, is the section `KafkaServer` of Java's login file.

The file is read for each connection, so passwords and certificates may change while the process runs. Relative file
names are relative to the property file.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Self, TypeAlias

from pydantic import ValidationError

from controller_core.security.oauth.token_login import OAUTHBEARER, TokenLogin
from controller_core.security.properties_file import InvalidProperties, read_properties, trim_values
from controller_core.security.property_types import describe_errors
from controller_core.security.tls_files import TlsFiles
from controller_core.security.tls_properties import TlsProperties
from controller_core.wire.connections.security import MECHANISMS, Login, Security, SecuritySource

PLAINTEXT: Final = "PLAINTEXT"
PROTOCOLS: Final = (PLAINTEXT, "SSL", "SASL_PLAINTEXT", "SASL_SSL")
_MECHANISM: Final = "sasl.mechanism.inter.broker.protocol"
_CONTROLLERS_MECHANISM: Final = "sasl.mechanism.controller.protocol"
_JAAS: Final = "sasl.jaas.config"

SourceOfListener: TypeAlias = Callable[[str, str], SecuritySource | None]
"""Returns the security of a broker's listener, by its name and protocol. None means no security."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ListenerSecurity:
    """The security settings of a listener, also for clients other than this library."""

    protocol: str = PLAINTEXT
    tls: TlsFiles | None = None
    login: Login | TokenLogin | None = None

    def security(self) -> Security:
        """Return the settings of this library. Raises `InvalidProperties`."""
        return Security(tls=self.tls.make_client_context() if self.tls else None, login=self.login)


class BrokerProperties:
    """The properties of a file at the time it was read."""

    def __init__(self, properties: Mapping[str, str], folder: Path) -> None:
        """`folder` resolves relative file names."""
        self._properties = trim_values(properties)
        self.folder: Final = folder

    def protocol_of(self, listener: str) -> str | None:
        """Return the protocol of a listener, or None if the properties do not have it. Raises `InvalidProperties`."""
        spoken = {protocol: protocol for protocol in PROTOCOLS}
        for pair in filter(None, self._get_general("listener.security.protocol.map").split(",")):
            name, colon, protocol = pair.strip().partition(":")
            if not colon or protocol.upper() not in PROTOCOLS:
                raise InvalidProperties(
                    f"listener.security.protocol.map has {pair!r}: write LISTENER:PROTOCOL, {one_of(PROTOCOLS)}"
                )
            spoken[name.upper()] = protocol.upper()
        return spoken.get(listener.upper())

    @property
    def maps_listeners(self) -> bool:
        """True if the properties map listeners to protocols."""
        return bool(self._get_general("listener.security.protocol.map"))

    @property
    def between_brokers(self) -> str:
        """The name of the inter-broker listener."""
        return (
            self._get_general("inter.broker.listener.name")
            or self._get_general("security.inter.broker.protocol")
            or PLAINTEXT
        )

    @property
    def protocol_between_brokers(self) -> str:
        """The protocol of the inter-broker listener. Raises `InvalidProperties`."""
        listener = self.between_brokers
        protocol = self.protocol_of(listener)
        if protocol is None:
            raise InvalidProperties(
                f"the inter-broker listener {listener} is not in listener.security.protocol.map: "
                f"add {listener}:PROTOCOL"
            )
        return protocol

    def read_inter_broker_security(self) -> ListenerSecurity:
        """Return the security of the inter-broker listener. Raises `InvalidProperties`."""
        return self.read_listener_security(self.between_brokers, self.protocol_between_brokers)

    def read_listener_security(self, listener: str, protocol: str) -> ListenerSecurity:
        """Return the security of a listener with this protocol. Raises `InvalidProperties`, which names the
        property."""
        if protocol not in PROTOCOLS:
            raise InvalidProperties(f"the listener {listener} has the protocol {protocol}: use {one_of(PROTOCOLS)}")
        return ListenerSecurity(
            protocol=protocol,
            tls=self.tls_files(listener) if protocol.endswith("SSL") else None,
            login=self._login(listener) if protocol.startswith("SASL") else None,
        )

    def tls_files(self, listener: str) -> TlsFiles:
        """Return the certificate files for a listener. Raises `InvalidProperties`."""
        own = self.own(listener)
        is_overridden = any(key.startswith("ssl.") for key in own)
        try:
            properties = TlsProperties.model_validate({**self._properties, **own})
        except ValidationError as error:
            raise InvalidProperties(f"the properties of brokers: {describe_errors(error)}") from None
        return properties.tls_files(self.folder, f"{prefix_of(listener)}ssl" if is_overridden else "ssl")

    def own(self, listener: str) -> dict[str, str]:
        """Return the properties of one listener alone, by their general names."""
        prefix = prefix_of(listener)
        return {key.removeprefix(prefix): value for key, value in self._properties.items() if key.startswith(prefix)}

    def get(self, name: str, listener: str) -> str:
        """Return the value of a property for a listener; empty if it is not set."""
        return self._properties.get(prefix_of(listener) + name, self._get_general(name))

    def has(self, name: str, listener: str) -> bool:
        """Return True if a property is set for a listener, even if it is empty."""
        return prefix_of(listener) + name in self._properties or name in self._properties

    def find_mechanism_properties(self, listener: str, mechanism: str) -> dict[str, str]:
        """Return the properties that hold for a mechanism of a listener, by their general names."""
        prefix = f"{mechanism.lower()}."
        layers = (self._properties, self.own(listener))
        named = ({key.removeprefix(prefix): each[key] for key in each if key.startswith(prefix)} for each in layers)
        general, of_listener = named
        return {**self._properties, **general, **layers[1], **of_listener}

    def find_jaas(self, listener: str, mechanism: str) -> tuple[str, str] | None:
        """Return the name and the value of a listener's login for a mechanism, or None if there is none."""
        of_listener = f"{mechanism.lower()}.{_JAAS}"
        if of_listener in (own := self.own(listener)):
            return prefix_of(listener) + of_listener, own[of_listener]
        return (_JAAS, self._properties[_JAAS]) if _JAAS in self._properties else None

    def _login(self, listener: str) -> Login | TokenLogin:
        said_by = _CONTROLLERS_MECHANISM if self._is_of_controllers(listener) else _MECHANISM
        mechanism = self._get_general(said_by) or "GSSAPI"
        if mechanism not in MECHANISMS:
            raise InvalidProperties(f"{said_by} is {mechanism}, which is not supported: use {one_of(MECHANISMS)}")
        found = self.find_jaas(listener, mechanism)
        if found is None:
            raise InvalidProperties(
                f"there is no login: set {prefix_of(listener)}{mechanism.lower()}.{_JAAS}, or {_JAAS} if brokers use "
                "Java's login file"
            )
        name, text = found
        if mechanism == OAUTHBEARER:
            said = self.find_mechanism_properties(listener, mechanism)
            return TokenLogin.parse_jaas(text, said, name=name, folder=self.folder)
        return Login.parse_jaas(text, mechanism=mechanism, name=name)

    def _is_of_controllers(self, listener: str) -> bool:
        """Return True for a listener of the controller quorum, which brokers may log in to by another mechanism."""
        names = self._get_general("controller.listener.names").upper().split(",")
        return listener.upper() in map(str.strip, names)

    def _get_general(self, name: str) -> str:
        return self._properties.get(name, "")


class SecuredBrokers:
    """The brokers of a cluster, reached as a property file says. Without a file, only by PLAINTEXT."""

    def __init__(self, file: Path | None) -> None:
        self._file = file

    @classmethod
    def open(cls, file: Path | None, listener: str | None = None) -> Self:
        """Return the brokers of a file that was checked, for a listener or the inter-broker one.

        Raises `InvalidProperties` for errors that are visible without a connection."""
        brokers = cls(file)
        properties = brokers.read()
        name = listener or properties.between_brokers
        protocol = properties.protocol_of(name)
        if protocol is not None:
            properties.read_listener_security(name, protocol).security()
        return brokers

    def read(self) -> BrokerProperties:
        """Return the current content of the file. Raises `InvalidProperties`."""
        if self._file is None:
            return BrokerProperties({}, Path())
        return BrokerProperties(read_properties(self._file), self._file.parent)

    def source(self, listener: str, protocol: str) -> SecuritySource | None:
        """See `SourceOfListener`."""
        if protocol == PLAINTEXT:
            return None

        def security() -> Security:
            if self._file is None:
                raise InvalidProperties(
                    f"the listener {listener} uses {protocol}: give its settings by --properties, "
                    f"or use a {PLAINTEXT} listener"
                )
            return self.read().read_listener_security(listener, protocol).security()

        return security

    def source_of(self, listener: str) -> SecuritySource | None:
        """Return the source for the listener's protocol in the file, or for PLAINTEXT by default. Raises
        `InvalidProperties`."""
        return self.source(listener, self.read().protocol_of(listener) or PLAINTEXT)


NO_FILE: Final = SecuredBrokers(None)


def prefix_of(listener: str) -> str:
    """Return the prefix of a listener's properties."""
    return f"listener.name.{listener.lower()}."


def one_of(names: tuple[str, ...]) -> str:
    return f"one of {', '.join(names)}"
