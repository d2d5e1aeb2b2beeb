"""How brokers are spoken to: as they speak to each other, by the properties that their `server.properties` has for it.

What a property says for one listener (`listener.name.internal.ssl.keystore.location`) goes before what it says for all. A
login is the listener's and the mechanism's (`listener.name.internal.plain.sasl.jaas.config`); `sasl.jaas.config` alone,
which brokers pass over, is what Java reads from a file of logins (its section `KafkaServer`).

The file is read again for each connection, so passwords and certificates may change under a process that runs. Files that
it names without a folder are beside it.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final, TypeAlias

from pydantic import ValidationError

from controller_core.security.properties_file import InvalidProperties, read_properties
from controller_core.security.property_types import what_is_wrong
from controller_core.security.tls_files import TlsFiles
from controller_core.security.tls_properties import TlsProperties
from controller_core.wire.connections.security import MECHANISMS, Login, Security, SecuritySource

PLAINTEXT: Final = "PLAINTEXT"
PROTOCOLS: Final = (PLAINTEXT, "SSL", "SASL_PLAINTEXT", "SASL_SSL")
_MECHANISM: Final = "sasl.mechanism.inter.broker.protocol"
_CONTROLLERS_MECHANISM: Final = "sasl.mechanism.controller.protocol"
_JAAS: Final = "sasl.jaas.config"

SourceOfListener: TypeAlias = Callable[[str, str], SecuritySource | None]
"""How a listener of brokers is spoken to, by its name and its protocol; None: without anything."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ListenerSecurity:
    """What there is to say of a listener: also for who does not connect by this library."""

    protocol: str = PLAINTEXT
    tls: TlsFiles | None = None
    login: Login | None = None

    def security(self) -> Security:
        """How to connect now. Raises `InvalidProperties` where a certificate cannot be used."""
        return Security(tls=self.tls.client_context() if self.tls else None, login=self.login)


class BrokerProperties:
    """What a file said when it was read."""

    def __init__(self, properties: Mapping[str, str], folder: Path) -> None:
        """`folder`: where files are that have no other."""
        self._properties = dict(properties)
        self._folder = folder

    def protocol_of(self, listener: str) -> str | None:
        """What is spoken at a listener; None where the properties do not say. Raises `InvalidProperties`."""
        spoken = {protocol: protocol for protocol in PROTOCOLS}
        for pair in filter(None, self._said("listener.security.protocol.map").split(",")):
            name, colon, protocol = pair.strip().partition(":")
            if not colon or protocol.upper() not in PROTOCOLS:
                raise InvalidProperties(
                    f"listener.security.protocol.map has {pair!r}: write LISTENER:PROTOCOL, {one_of(PROTOCOLS)}"
                )
            spoken[name.upper()] = protocol.upper()
        return spoken.get(listener.upper())

    @property
    def maps_listeners(self) -> bool:
        """Whether it is said of each listener what it speaks."""
        return bool(self._said("listener.security.protocol.map"))

    @property
    def between_brokers(self) -> str:
        """The name of the listener by which brokers reach each other."""
        return self._said("inter.broker.listener.name") or self._said("security.inter.broker.protocol") or PLAINTEXT

    @property
    def protocol_between_brokers(self) -> str:
        """What is spoken at that listener. Raises `InvalidProperties`."""
        listener = self.between_brokers
        protocol = self.protocol_of(listener)
        if protocol is None:
            raise InvalidProperties(
                f"the listener {listener} between brokers is not in listener.security.protocol.map: add {listener}:PROTOCOL"
            )
        return protocol

    def of_brokers(self) -> ListenerSecurity:
        """How the listener between brokers is spoken to. Raises `InvalidProperties`."""
        return self.of_listener(self.between_brokers, self.protocol_between_brokers)

    def of_listener(self, listener: str, protocol: str) -> ListenerSecurity:
        """How a listener is spoken to that speaks this protocol. Raises `InvalidProperties`, which names the property."""
        if protocol not in PROTOCOLS:
            raise InvalidProperties(f"the listener {listener} speaks {protocol}, which is none of {one_of(PROTOCOLS)}")
        return ListenerSecurity(
            protocol=protocol,
            tls=self.tls_files(listener) if protocol.endswith("SSL") else None,
            login=self._login(listener) if protocol.startswith("SASL") else None,
        )

    def tls_files(self, listener: str) -> TlsFiles:
        """What is shown at a listener, and who is trusted there. Raises `InvalidProperties`."""
        own = self.own(listener)
        is_overridden = any(key.startswith("ssl.") for key in own)
        try:
            properties = TlsProperties.model_validate({**self._properties, **own})
        except ValidationError as error:
            raise InvalidProperties(f"the properties of brokers: {what_is_wrong(error)}") from None
        return properties.tls_files(self._folder, f"{prefix_of(listener)}ssl" if is_overridden else "ssl")

    def own(self, listener: str) -> dict[str, str]:
        """What is said of one listener alone, by the names that it would have for all."""
        prefix = prefix_of(listener)
        return {key.removeprefix(prefix): value for key, value in self._properties.items() if key.startswith(prefix)}

    def said(self, name: str, listener: str) -> str:
        """What a property says for a listener; empty where it says nothing."""
        return self._properties.get(prefix_of(listener) + name, self._said(name)).strip()

    def _login(self, listener: str) -> Login:
        own, prefix = self.own(listener), prefix_of(listener)
        said_by = _CONTROLLERS_MECHANISM if self._is_of_controllers(listener) else _MECHANISM
        mechanism = self._said(said_by) or "GSSAPI"
        if mechanism not in MECHANISMS:
            raise InvalidProperties(f"{said_by} is {mechanism}, which is not supported: use {one_of(MECHANISMS)}")
        of_listener = f"{mechanism.lower()}.{_JAAS}"
        if of_listener in own:
            return Login.of_jaas(own[of_listener], mechanism=mechanism, name=prefix + of_listener)
        if _JAAS not in self._properties:
            raise InvalidProperties(
                f"there is no login: set {prefix}{of_listener}, or {_JAAS} where brokers read theirs from a file of Java's"
            )
        return Login.of_jaas(self._properties[_JAAS], mechanism=mechanism, name=_JAAS)

    def _is_of_controllers(self, listener: str) -> bool:
        """Whether it is one of a quorum of controllers, at which brokers may log in in another way than at each other."""
        names = self._said("controller.listener.names").upper().split(",")
        return listener.upper() in map(str.strip, names)

    def _said(self, name: str) -> str:
        return self._properties.get(name, "").strip()


class SecuredBrokers:
    """The brokers of a cluster, as a file of properties says how to reach them; without one, PLAINTEXT alone."""

    def __init__(self, file: Path | None) -> None:
        self._file = file

    def read(self) -> BrokerProperties:
        """What the file says now. Raises `InvalidProperties`."""
        if self._file is None:
            return BrokerProperties({}, Path())
        return BrokerProperties(read_properties(self._file), self._file.parent)

    def check(self, listener: str | None = None) -> None:
        """Raises `InvalidProperties` for what can be seen to be wrong before anybody is connected with: of a listener, or
        of the one between brokers."""
        properties = self.read()
        name = listener or properties.between_brokers
        protocol = properties.protocol_of(name)
        if protocol is not None:
            properties.of_listener(name, protocol).security()

    def source(self, listener: str, protocol: str) -> SecuritySource | None:
        """See `SourceOfListener`."""
        if protocol == PLAINTEXT:
            return None

        def security() -> Security:
            if self._file is None:
                raise InvalidProperties(
                    f"its listener {listener} speaks {protocol}: say by --properties how, or take one that is {PLAINTEXT}"
                )
            return self.read().of_listener(listener, protocol).security()

        return security

    def source_of(self, listener: str) -> SecuritySource | None:
        """The same by the protocol that the file has for the listener now, PLAINTEXT where it does not say. Raises
        `InvalidProperties`."""
        return self.source(listener, self.read().protocol_of(listener) or PLAINTEXT)


NO_FILE: Final = SecuredBrokers(None)


def prefix_of(listener: str) -> str:
    """How the names of properties begin that are one listener's."""
    return f"listener.name.{listener.lower()}."


def one_of(names: tuple[str, ...]) -> str:
    return f"one of {', '.join(names)}"
